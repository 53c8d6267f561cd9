/// Masks or unmasks `bytes`, and turns `key` so that it fits the byte behind them.
pub(super) fn apply(key: &mut [u8; 4], bytes: &mut [u8]) {
    let [a, b, c, d] = *key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    key.rotate_left(bytes.len() % 4);
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(wide.to_ne_bytes()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_are_as_good_as_the_whole() {
        let plain: Vec<u8> = (0..100).collect();
        let expected: Vec<u8> = (plain.iter().zip([1, 20, 33, 255].iter().cycle()))
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        for piece in 1..=plain.len() {
            let mut bytes = plain.clone();
            let mut key = [1, 20, 33, 255];
            for piece in bytes.chunks_mut(piece) {
                apply(&mut key, piece);
            }
            assert_eq!(bytes, expected, "in pieces of {piece}");
        }
    }
}

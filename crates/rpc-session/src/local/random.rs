//! Fills tensors where they are, so that random inputs need not travel.

use std::hash::{BuildHasher, RandomState};

use rpc_proto::TypeCode;

use super::{Exception, LocalTensor};

pub(super) const FILL: &str = "tvm.contrib.random.random_fill";
pub(super) const FILL_FOR_MEASURE: &str = "tvm.contrib.random.random_fill_for_measure";

/// Bytes that are made at once.
const PIECE: usize = 64 << 10;

/// Random elements, from 1 up to 10 as the reference makes them: so that even integers of 8 bits are
/// not all 0, and nothing that is computed of them gets out of hand.
#[expect(
    clippy::needless_pass_by_value,
    reason = "so arguments come to a function"
)]
pub(super) fn fill(tensor: LocalTensor) -> Result<(), Exception> {
    let dtype = tensor.dtype();
    let unfit = || {
        Exception::new(
            "TypeError",
            format!(
                "{FILL}: expected a tensor of numbers of 8, 16, 32 or 64 bits, found one of {dtype}"
            ),
        )
    };
    let width = usize::from(dtype.bits / 8);
    if !matches!(dtype.bits, 8 | 16 | 32 | 64) || dtype.lanes.cast_signed() < 1 {
        return Err(unfit());
    }
    let mut rng = fastrand::Rng::with_seed(RandomState::new().hash_one(0));
    let mut element: Box<dyn FnMut() -> [u8; 8]> = match (dtype.code, dtype.bits) {
        (TypeCode::INT | TypeCode::UINT, _) => Box::new(move || rng.u64(1..10).to_le_bytes()),
        (TypeCode::BOOL, 8) => Box::new(move || rng.u64(0..2).to_le_bytes()),
        (TypeCode::FLOAT, 64) => Box::new(move || (1.0 + 9.0 * rng.f64()).to_le_bytes()),
        (TypeCode::FLOAT, 32) => Box::new(move || widened((1.0 + 9.0 * rng.f32()).to_bits())),
        // From 1 to 2: the exponent of 1, and any fraction.
        (TypeCode::FLOAT, 16) => Box::new(move || widened(0x3C00 | rng.u32(0..1 << 10))),
        (TypeCode::BFLOAT, 16) => Box::new(move || widened(0x3F80 | rng.u32(0..1 << 7))),
        _ => return Err(unfit()),
    };
    let mut piece = Vec::with_capacity(PIECE.min(tensor.nbytes()));
    for start in (0..tensor.nbytes()).step_by(PIECE) {
        let len = PIECE.min(tensor.nbytes() - start);
        piece.clear();
        while piece.len() < len {
            piece.extend_from_slice(&element()[..width]);
        }
        tensor.write_bytes(start, &piece[..len])?;
    }
    Ok(())
}

fn widened(bits: u32) -> [u8; 8] {
    u64::from(bits).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc_proto::DataType;

    fn filled(dtype: DataType) -> LocalTensor {
        let tensor = LocalTensor::zeros(&[7, 3001], dtype).unwrap();
        fill(tensor.clone()).unwrap();
        tensor
    }

    #[test]
    fn elements_are_from_one_to_ten() {
        let tensor = filled(DataType::FLOAT32);
        let floats = tensor.to_vec::<f32>().unwrap();
        assert!(floats.iter().all(|x| (1.0..=10.0).contains(x)));
        assert!(floats.windows(2).any(|pair| pair[0] != pair[1]));
        let floats = filled(DataType::FLOAT64).to_vec::<f64>().unwrap();
        assert!(floats.iter().all(|x| (1.0..10.0).contains(x)));
        let integers = filled(DataType::INT8).to_vec::<i8>().unwrap();
        assert!(integers.iter().all(|x| (1..10).contains(x)));
        let integers = filled(DataType::UINT64).to_vec::<u64>().unwrap();
        assert!(integers.iter().all(|x| (1..10).contains(x)));
        let bools = filled(DataType::BOOL).to_vec::<u8>().unwrap();
        assert!(bools.iter().all(|x| *x < 2));
    }

    #[test]
    fn halves_are_from_one_to_two() {
        for (dtype, one, two) in [
            (DataType::FLOAT16, 0x3C00, 0x4000),
            (DataType::BFLOAT16, 0x3F80, 0x4000),
        ] {
            let bytes = filled(dtype).read_bytes(0..1 << 10).unwrap();
            for bits in bytes.as_chunks().0 {
                assert!((one..two).contains(&u16::from_le_bytes(*bits)));
            }
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for dtype in ["handle", "int4", "void", "float8_e4m3fn"] {
            let dtype = dtype.parse().unwrap();
            let tensor = LocalTensor::zeros(&[2], dtype).unwrap();
            assert_eq!(fill(tensor).unwrap_err().kind(), "TypeError");
        }
        let none = LocalTensor::zeros(&[0], DataType::FLOAT32).unwrap();
        fill(none).unwrap();
    }
}

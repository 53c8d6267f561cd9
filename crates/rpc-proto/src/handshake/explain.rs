//! What the bytes of a handshake say, field by field.

use std::borrow::Cow;

use crate::codes::{HandshakeCode, RPC_MAGIC};
use crate::explain::{Explanation, Extent};
use crate::wire::Reader;
use crate::{DecodeError, Limits};

/// What the accepting side of a handshake answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The code.
    pub code: HandshakeCode,
    /// The key that follows [`HandshakeCode::SUCCESS`]; what is not UTF-8 in it is replaced.
    pub key: Option<Cow<'a, str>>,
}

/// How long the opening of a handshake is of which these are the first bytes.
///
/// # Errors
/// Another magic, or a length of the key that is negative or over its limit.
pub fn opening_extent(opening: &[u8], limits: Limits) -> Result<Extent, DecodeError> {
    let mut reader = Reader::new(opening, 0);
    if reader.remaining() < 4 {
        return Ok(Extent::AtLeast(4));
    }
    magic(&mut reader)?;
    key_extent(reader, limits)
}

/// How long the answer to a handshake is of which these are the first bytes.
///
/// # Errors
/// An unknown code, or a length of the key that is negative or over its limit.
pub fn answer_extent(answer: &[u8], limits: Limits) -> Result<Extent, DecodeError> {
    let mut reader = Reader::new(answer, 0);
    if reader.remaining() < 4 {
        return Ok(Extent::AtLeast(4));
    }
    match code(&mut reader)? {
        HandshakeCode::SUCCESS => key_extent(reader, limits),
        _ => Ok(Extent::Exactly(4)),
    }
}

fn key_extent(mut reader: Reader<'_>, limits: Limits) -> Result<Extent, DecodeError> {
    if reader.remaining() < 4 {
        return Ok(Extent::AtLeast(8));
    }
    Ok(Extent::Exactly(8 + key_length(&mut reader, limits)?))
}

/// Explains what a connecting peer says first: its key, which may be any text.
#[must_use]
pub fn explain_opening(opening: &[u8], limits: Limits) -> Explanation<'_, &str> {
    let mut reader = Reader::noting(opening);
    let mut read = || {
        magic(&mut reader)?;
        let length = key_length(&mut reader, limits)?;
        let key = reader.text("key of the peer", length)?;
        reader.finish("handshake")?;
        Ok(key)
    };
    let result = read();
    let fields = reader.into_fields();
    Explanation { fields, result }
}

/// Explains the answer.
#[must_use]
pub fn explain_answer(answer: &[u8], limits: Limits) -> Explanation<'_, Answer<'_>> {
    let mut reader = Reader::noting(answer);
    let mut read = || {
        let code = code(&mut reader)?;
        let key = match code {
            HandshakeCode::SUCCESS => {
                let length = key_length(&mut reader, limits)?;
                Some(reader.lossy_text("key of the peer", length)?)
            }
            _ => None,
        };
        reader.finish("answer to the handshake")?;
        Ok(Answer { code, key })
    };
    let result = read();
    let fields = reader.into_fields();
    Explanation { fields, result }
}

fn magic(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let magic = reader.i32("magic")?;
    if magic != RPC_MAGIC {
        let found = format!("{magic:#x}");
        return Err(DecodeError::unexpected("magic", 0, "0xff271", found));
    }
    reader.means(|| Some("server or proxy"));
    Ok(())
}

fn code(reader: &mut Reader<'_>) -> Result<HandshakeCode, DecodeError> {
    let code = HandshakeCode(reader.i32("handshake code")?);
    reader.means(|| code.name());
    if code.name().is_none() {
        let expected = "0xff271 (success), 0xff272 (duplicate key) or 0xff273 (key mismatch)";
        let found = format!("{:#x}", code.0);
        return Err(DecodeError::unexpected(
            "handshake code",
            0,
            expected,
            found,
        ));
    }
    Ok(code)
}

fn key_length(reader: &mut Reader<'_>, limits: Limits) -> Result<u64, DecodeError> {
    reader
        .count("length of the peer's key", limits.key)
        .map(u64::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::handshake::{Handshake, put_accept, put_refuse};

    fn opening(bytes: &[u8]) -> Explanation<'_, &str> {
        explain_opening(bytes, Limits::default())
    }

    fn answer(bytes: &[u8]) -> Explanation<'_, Answer<'_>> {
        explain_answer(bytes, Limits::default())
    }

    #[test]
    fn an_opening_has_three_fields() {
        let explained = opening(b"\x71\xf2\x0f\0\x09\0\0\0client:x1");
        let fields = explained.fields.iter();
        let fields: Vec<_> = fields
            .map(|field| (field.name, field.offset, field.value.to_string()))
            .collect();
        assert_eq!(
            fields,
            [
                ("magic", 0, "1045105".to_owned()),
                ("length of the peer's key", 4, "9".to_owned()),
                ("key of the peer", 8, "\"client:x1\"".to_owned()),
            ]
        );
        assert_eq!(explained.result, Ok("client:x1"));
    }

    #[test]
    fn an_answer_may_be_a_code_alone() {
        let mut refusal = Vec::new();
        put_refuse(HandshakeCode::MISMATCH, &mut refusal);
        let explained = answer(&refusal);
        assert_eq!(explained.fields[0].meaning.as_deref(), Some("key mismatch"));
        let code = HandshakeCode::MISMATCH;
        assert_eq!(explained.result, Ok(Answer { code, key: None }));
        assert_eq!(
            answer_extent(&refusal, Limits::default()),
            Ok(Extent::Exactly(4))
        );
    }

    #[test]
    fn a_stop_is_told() {
        let told = |bytes| {
            let explained = opening(bytes);
            (explained.stop(), explained.result.unwrap_err().to_string())
        };
        assert_eq!(
            told(b"GET / HTTP/1.1"),
            (
                Some(0),
                "magic at offset 0: expected 0xff271, found 0x20544547".to_owned()
            )
        );
        assert_eq!(
            told(b"\x71\xf2\x0f\0\xff\xff\xff\xff"),
            (
                Some(4),
                "length of the peer's key at offset 4: expected a count of at least 0, found -1"
                    .to_owned()
            )
        );
        assert_eq!(
            told(b"\x71\xf2\x0f\0\x02\0\0\0a\xff").0,
            Some(9),
            "where it is not UTF-8"
        );
        assert_eq!(
            answer(b"HTTP").result.unwrap_err().to_string(),
            "handshake code at offset 0: expected 0xff271 (success), 0xff272 (duplicate key) or \
             0xff273 (key mismatch), found 0x50545448"
        );
    }

    proptest! {
        #[test]
        fn a_handshake_is_as_long_as_it_says(key: String, behind: Vec<u8>) {
            let limits = Limits::default();
            let (mut opening, mut answer) = (Vec::new(), Vec::new());
            Handshake::new(&key, limits, &mut opening)?;
            put_accept(&key, limits, &mut answer)?;
            let exactly = Ok(Extent::Exactly(opening.len() as u64));
            for at_least in 0..8 {
                let needed = if at_least < 4 { 4 } else { 8 };
                let needed = Ok(Extent::AtLeast(needed));
                prop_assert_eq!(opening_extent(&opening[..at_least], limits), needed.clone());
                prop_assert_eq!(answer_extent(&answer[..at_least], limits), needed);
            }
            prop_assert_eq!(explain_opening(&opening, limits).result, Ok(&*key));
            let read = explain_answer(&answer, limits).result.map(|answer| answer.key);
            prop_assert_eq!(read, Ok(Some(Cow::Borrowed(&*key))));
            opening.extend(&behind);
            answer.extend(&behind);
            prop_assert_eq!(opening_extent(&opening, limits), exactly.clone());
            prop_assert_eq!(answer_extent(&answer, limits), exactly);
        }

        #[test]
        fn arbitrary_bytes_are_harmless(bytes: Vec<u8>) {
            let _ = (opening(&bytes).stop(), answer(&bytes).stop());
            let bytes = [b"\x71\xf2\x0f\x00", &*bytes].concat();
            let _ = (opening(&bytes).stop(), answer(&bytes).stop());
        }
    }
}

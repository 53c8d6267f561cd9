//! What the bytes at a tracker say, field by field.

use super::frame;
use crate::DecodeError;
use crate::codes::TRACKER_MAGIC;
use crate::explain::{Explanation, Extent};
use crate::wire::Reader;

/// Bytes of the greeting, in both directions.
pub const GREETING_LEN: u64 = 4;

/// How long the frame is of which these are the first bytes, with its length field.
///
/// # Errors
/// A length that is not positive or over `limit`: one of [`Limits::tracker_frame`](crate::Limits::tracker_frame) and
/// [`Limits::tracker_reply`](crate::Limits::tracker_reply).
pub fn frame_extent(frame: &[u8], limit: u32) -> Result<Extent, DecodeError> {
    Ok(match frame::length(frame, limit)? {
        None => Extent::AtLeast(4),
        Some(length) => Extent::Exactly(length as u64),
    })
}

/// Explains the greeting of either side.
#[must_use]
pub fn explain_greeting(greeting: &[u8]) -> Explanation<'_, ()> {
    let mut reader = Reader::noting(greeting);
    let mut read = || {
        let magic = reader.i32("magic")?;
        if magic != TRACKER_MAGIC {
            let found = format!("{magic:#x}");
            return Err(DecodeError::unexpected("magic", 0, "0x2f271", found));
        }
        reader.means(|| Some("tracker"));
        reader.finish("greeting")
    };
    let result = read();
    let fields = reader.into_fields();
    Explanation { fields, result }
}

/// Explains a frame as far as it is one: its length, and its text, which is for
/// [`Request::decode`](super::Request::decode) or [`Reply::decode`](super::Reply::decode).
#[must_use]
pub fn explain_frame(frame: &[u8], limit: u32) -> Explanation<'_, &[u8]> {
    let mut reader = Reader::noting(frame);
    let mut read = || {
        let length = frame::read_length(&mut reader, limit)?;
        reader.lossy_text("JSON", length.into())?;
        reader.finish("frame")?;
        Ok(&frame[4..])
    };
    let result = read();
    let fields = reader.into_fields();
    Explanation { fields, result }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_has_two_fields() {
        let explained = explain_frame(b"\x03\0\0\0[1]", 100);
        let fields = explained.fields.iter();
        let fields: Vec<_> = fields
            .map(|field| (field.name, field.offset, field.value.to_string()))
            .collect();
        assert_eq!(
            fields,
            [
                ("length of a tracker's frame", 0, "3".to_owned()),
                ("JSON", 4, "\"[1]\"".to_owned()),
            ]
        );
        assert_eq!(explained.result, Ok(&b"[1]"[..]));
        assert_eq!(
            frame_extent(b"\x03\0\0\0", 100),
            Ok(Extent::Exactly(7)),
            "with its length field"
        );
        assert_eq!(frame_extent(b"\x03\0\0", 100), Ok(Extent::AtLeast(4)));
    }

    #[test]
    fn a_stop_is_told() {
        let told = |bytes| explain_frame(bytes, 100).result.unwrap_err().to_string();
        assert_eq!(
            told(b"\0\0\0\0"),
            "length of a tracker's frame at offset 0: expected a length of at least 1, found 0"
        );
        assert_eq!(
            told(b"\x65\0\0\0"),
            "at offset 0: length of a tracker's frame is 101, more than the limit of 100"
        );
        assert_eq!(
            told(b"\x05\0\0\0[1]"),
            "JSON at offset 4 needs 5 bytes, but only 3 are left in the message"
        );
        assert_eq!(
            explain_greeting(b"\x71\xf2\x0f\0")
                .result
                .unwrap_err()
                .to_string(),
            "magic at offset 0: expected 0x2f271, found 0xff271"
        );
        assert_eq!(explain_greeting(b"\x71\xf2\x02\0").result, Ok(()));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_harmless(bytes: Vec<u8>) {
            let _ = (explain_frame(&bytes, 100).stop(), explain_greeting(&bytes).stop());
            let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
            let frame = [&length[..], &bytes].concat();
            prop_assert_eq!(explain_frame(&frame, 1000).result.is_ok(), !bytes.is_empty());
        }
    }
}

//! A frame on its way, for both sides of a connection: its length, then so many bytes.

use crate::DecodeError;
use crate::wire::Reader;

pub(super) const FIELD: &str = "length of a tracker's frame";

/// Bytes of the frame with its length field, once that is among what was `received`. The frame has one
/// byte at least, and at most `limit`.
pub(super) fn length(received: &[u8], limit: u32) -> Result<Option<usize>, DecodeError> {
    let Some(field) = received.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = read_length(&mut Reader::new(field, 0), limit)?;
    Ok(Some(4 + length as usize))
}

/// Reads the length field.
pub(super) fn read_length(reader: &mut Reader<'_>, limit: u32) -> Result<u32, DecodeError> {
    match reader.count(FIELD, limit)? {
        0 => {
            let expected = "a length of at least 1";
            Err(DecodeError::unexpected(FIELD, 0, expected, 0))
        }
        length => Ok(length),
    }
}

/// Moves bytes from `input` until `length` bytes are received; returns those that are left.
pub(super) fn fill<'a>(received: &mut Vec<u8>, length: usize, input: &'a [u8]) -> &'a [u8] {
    let missing = length.saturating_sub(received.len());
    let (part, behind) = input.split_at(missing.min(input.len()));
    received.extend_from_slice(part);
    behind
}

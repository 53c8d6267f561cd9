//! The last argument of a call, which may be too large for memory.

use super::{
    BYTES, BYTES_VIEW, RAW_STR, SMALL_BYTES, SMALL_STR, STR, TENSOR_VIEW, inner_index, value,
};
use crate::dialect::Tail;
use crate::packet::START;
use crate::tensor;
use crate::wire::Reader;
use crate::{Bulk, BulkKind, DecodeError, Limits, Values};

pub(in crate::dialect) fn bulk_argument(
    packet: &[u8],
    limits: Limits,
) -> Result<Option<Tail>, DecodeError> {
    let mut reader = Reader::new(packet, 0);
    reader.bytes("head of a call", START)?;
    reader.u64("function handle")?;
    let count = reader.count("number of values", limits.arguments)?;
    for left in (0..count).rev() {
        let found = bulk(&mut reader).and_then(|bulk| match bulk {
            Some(bulk) if left == 0 => Ok(Some(bulk)),
            Some(bulk) => reader.bytes("text or bytes", bulk.nbytes).map(|_| None),
            None => skip(&mut reader, limits).map(|()| None),
        });
        if let Some(bulk) = found.map_err(|error| with_those_behind(error, left))? {
            let head = reader.offset();
            return Ok(Some(Tail { head, bulk }));
        }
    }
    Ok(None)
}

/// Where bytes are missing, those of the values behind are missing, too. All is read from the start when
/// more has come, so that a peer should not make us try for each value.
fn with_those_behind(mut error: DecodeError, values: u32) -> DecodeError {
    /// Just a type index.
    const SHORTEST: u64 = 4;
    if let DecodeError::Truncated { needed, .. } = &mut error {
        *needed = needed.saturating_add(SHORTEST * u64::from(values));
    }
    error
}

/// Reads past the value that comes, which is neither text nor bytes.
fn skip(reader: &mut Reader<'_>, limits: Limits) -> Result<(), DecodeError> {
    let mut ahead = reader.clone();
    if ahead.i32("type index")? == TENSOR_VIEW {
        let len = tensor::len(ahead.clone(), limits)?;
        ahead.bytes("tensor", len)?;
        *reader = ahead;
        return Ok(());
    }
    value(reader, limits).map(drop)
}

pub(in crate::dialect) fn values_before_bulk<'a>(
    reader: &mut Reader<'a>,
    limits: Limits,
) -> Result<Values<'a>, DecodeError> {
    let count = reader.count("number of values", limits.arguments)?;
    let values = (1..count).map(|_| value(reader, limits)).collect();
    bulk(reader)?;
    values
}

/// Reads the value that comes up to its bytes, if it is text or bytes; else nothing.
fn bulk(reader: &mut Reader<'_>) -> Result<Option<Bulk>, DecodeError> {
    let mut ahead = reader.clone();
    let kind = match ahead.i32("type index")? {
        RAW_STR => BulkKind::Text,
        BYTES_VIEW => BulkKind::Bytes,
        SMALL_STR | STR => {
            inner_index(&mut ahead, STR, "65 inside a text")?;
            BulkKind::Text
        }
        SMALL_BYTES | BYTES => {
            inner_index(&mut ahead, BYTES, "66 inside bytes")?;
            BulkKind::Bytes
        }
        _ => return Ok(None),
    };
    let nbytes = ahead.u64("length")?;
    *reader = ahead;
    Ok(Some(Bulk { kind, nbytes }))
}

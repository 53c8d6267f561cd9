//! The last argument of a call, which may be too large for memory.

use super::{BYTES, BYTES_VIEW, RAW_STR, SMALL_BYTES, SMALL_STR, STR, inner_index, value};
use crate::dialect::Tail;
use crate::packet::START;
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
        match bulk(&mut reader)? {
            Some(bulk) if left == 0 => {
                let head = reader.offset();
                return Ok(Some(Tail { head, bulk }));
            }
            Some(bulk) => {
                reader.bytes("text or bytes", bulk.nbytes)?;
            }
            None => {
                value(&mut reader, limits)?;
            }
        }
    }
    Ok(None)
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

//! The last argument of a call, which may be too large for memory.

use super::{BYTES, Codes, NONE, STR, TENSOR_VIEW, sized, value};
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
    let codes = Codes::read(&mut reader, limits)?.codes;
    let (kind, mut behind) = match codes.split_last() {
        Some((&STR, before)) => (BulkKind::Text, before),
        Some((&BYTES, before)) => (BulkKind::Bytes, before),
        _ => return Ok(None),
    };
    while let Some((&code, rest)) = behind.split_first() {
        behind = rest;
        skip(code, &mut reader, limits).map_err(|error| with_those_behind(error, behind))?;
    }
    let nbytes = reader.u64("length")?;
    Ok(Some(Tail {
        head: reader.offset(),
        bulk: Bulk { kind, nbytes },
    }))
}

/// Where bytes are missing, those of the values behind are missing, too. All is read from the start when
/// more has come, so that a peer should not make us try for each value.
fn with_those_behind(mut error: DecodeError, behind: &[i32]) -> DecodeError {
    /// An integer, or the length of the last argument.
    const SHORTEST: u64 = 8;
    if let DecodeError::Truncated { needed, .. } = &mut error {
        let values = behind.iter().filter(|&&code| code != NONE).count() as u64 + 1;
        *needed = needed.saturating_add(SHORTEST * values);
    }
    error
}

/// Reads past a value.
fn skip(code: i32, reader: &mut Reader<'_>, limits: Limits) -> Result<(), DecodeError> {
    match code {
        STR | BYTES => sized(reader, "text or bytes").map(drop),
        TENSOR_VIEW => {
            let len = tensor::len(reader.clone(), limits)?;
            reader.bytes("tensor", len).map(drop)
        }
        // Where the code stands is for what is wrong with it, which is said when the packet is read.
        code => value(code, 0, reader, limits).map(drop),
    }
}

pub(in crate::dialect) fn values_before_bulk<'a>(
    reader: &mut Reader<'a>,
    limits: Limits,
) -> Result<Values<'a>, DecodeError> {
    let codes = Codes::read(reader, limits)?;
    let values = codes.values(codes.codes.len().saturating_sub(1), reader, limits);
    reader.u64("length")?;
    values
}

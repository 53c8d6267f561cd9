//! Where a packet's head ends.

use super::{LENGTH, START};
use crate::codes::PacketCode;
use crate::dialect::Tail;
use crate::explain::Extent;
use crate::limits::within;
use crate::tensor;
use crate::wire::Reader;
use crate::{DecodeError, Dialect, Limits};

/// A return or call packet of more bytes than this (or than [`Limits::packet`], if that is less) is
/// looked at for text or bytes to hand out as payload. Below it one buffer and one read are quicker.
const BULK: u64 = 64 << 10;

/// What [`scan`] sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// This many bytes, from the packet's first, are needed to say more.
    Incomplete {
        /// Bytes from the first byte of the packet.
        needed: u64,
    },
    /// A packet of no bytes at all: just a length of 0. It means nothing.
    Empty,
    /// The head is there.
    Packet {
        /// Bytes of the head.
        head: u64,
        /// Bytes of the payload behind it.
        payload: u64,
    },
}

/// Looks at the first bytes of a packet. Nothing is needed of the payload.
///
/// # Errors
/// A length that is too short for its packet or over its limit.
pub fn scan(input: &[u8], dialect: Dialect, limits: Limits) -> Result<Frame, DecodeError> {
    let available = input.len() as u64;
    let mut reader = Reader::new(input, 0);
    let total = match extent(&mut reader, limits)? {
        Extent::AtLeast(needed) => return Ok(Frame::Incomplete { needed }),
        Extent::Exactly(LENGTH) => return Ok(Frame::Empty),
        Extent::Exactly(total) => total,
    };
    let over = |over| DecodeError::OverLimit { offset: 0, over };
    if available < START {
        return Ok(Frame::Incomplete { needed: START });
    }
    let head = match PacketCode(reader.i32("packet code")?) {
        PacketCode::COPY_ACK => START,
        PacketCode::COPY_TO_REMOTE => {
            /// Data pointer, device and number of dimensions.
            const KNOWS_DIMENSIONS: u64 = 8 + 8 + 4;
            let needed = START + KNOWS_DIMENSIONS;
            if total < needed {
                return Err(truncated(needed, total));
            }
            if available < needed {
                return Ok(Frame::Incomplete { needed });
            }
            START + tensor::len(reader, limits)? + 8
        }
        PacketCode::RETURN if total > BULK.min(limits.packet) => {
            let needed = Dialect::BULK_RETURN_HEAD.min(total);
            if available < needed {
                return Ok(Frame::Incomplete { needed });
            }
            match head_before(dialect.bulk_return(input), total) {
                Ok(head) => head,
                Err(needed) => return Ok(Frame::Incomplete { needed }),
            }
        }
        PacketCode::CALL_FUNC if total > BULK.min(limits.packet) => {
            match head_before(dialect.bulk_argument(input, limits), total) {
                Ok(head) => head,
                Err(needed) => {
                    within("packet", needed, limits.packet).map_err(over)?;
                    return Ok(Frame::Incomplete { needed });
                }
            }
        }
        _ => total,
    };
    if head > total {
        return Err(truncated(head, total));
    }
    within("packet", head, limits.packet).map_err(over)?;
    let payload = total - head;
    within("payload", payload, limits.payload).map_err(over)?;
    if available < head {
        return Ok(Frame::Incomplete { needed: head });
    }
    Ok(Frame::Packet { head, payload })
}

/// How long the packet is that starts at `reader`, with its length field.
pub(super) fn extent(reader: &mut Reader<'_>, limits: Limits) -> Result<Extent, DecodeError> {
    if reader.remaining() < LENGTH {
        return Ok(Extent::AtLeast(LENGTH));
    }
    let nbytes = reader.u64("packet length")?;
    if (1..START - LENGTH).contains(&nbytes) {
        let expected = "0, or at least 4 for the code";
        return Err(DecodeError::unexpected(
            "packet length",
            0,
            expected,
            nbytes,
        ));
    }
    let longest = limits.payload.saturating_add(limits.packet);
    within("packet length", nbytes, longest.min(u64::MAX - LENGTH))
        .map_err(|over| DecodeError::OverLimit { offset: 0, over })?;
    Ok(Extent::Exactly(LENGTH + nbytes))
}

/// Bytes of the head of a packet of `total` bytes, or how many have to be there to tell: all of it is
/// head, unless there is text or bytes that reach to its end.
fn head_before(tail: Result<Option<Tail>, DecodeError>, total: u64) -> Result<u64, u64> {
    match tail {
        Ok(Some(Tail { head, bulk })) if head.checked_add(bulk.nbytes) == Some(total) => Ok(head),
        Err(DecodeError::Truncated { offset, needed, .. }) => match offset.checked_add(needed) {
            Some(needed) if needed <= total => Err(needed),
            _ => Ok(total),
        },
        _ => Ok(total),
    }
}

/// A packet whose length is too short for what it has to hold.
fn truncated(needed: u64, total: u64) -> DecodeError {
    DecodeError::Truncated {
        field: "packet",
        offset: 0,
        needed,
        available: total,
    }
}

//! The packets of a session, in both directions.
//!
//! On the wire a packet is its length (8 bytes, counting what follows), its code (4 bytes) and a body.
//! Here it is a *head*, which this crate reads and writes, and perhaps a *payload* of any size behind
//! it, which only the owner of the stream touches: [`scan`] finds where the one ends and the other
//! starts, [`Packet::decode`] reads the head, [`Packet::encode`] writes it.

mod args;
mod decode;
mod explain;
mod scan;
mod syscall;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;

pub use explain::{explain, extent};
pub use scan::{Frame, scan};
pub use syscall::{HandleKind, Syscall};

use crate::codes::PacketCode;
use crate::dialect::Place;
use crate::limits::within;
use crate::tensor;
use crate::wire::Put;
use crate::{Dialect, Limits, OverLimit, Returned, TensorView, Value, Values};

/// Bytes of a packet's length field and code.
pub(crate) const START: u64 = 12;
/// Bytes of the length field, which does not count itself.
pub(crate) const LENGTH: u64 = 8;
/// The same, as a length in memory.
pub(crate) const LENGTH_LEN: usize = 8;

/// What a payload is that stands for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BulkKind {
    /// Text, which should be UTF-8 but is not checked to be.
    Text,
    /// Bytes.
    Bytes,
}

/// A value of text or bytes that follows as payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bulk {
    /// Which of the two.
    pub kind: BulkKind,
    /// Bytes that follow.
    pub nbytes: u64,
}

impl Bulk {
    /// So many bytes of text.
    #[must_use]
    pub fn text(nbytes: u64) -> Self {
        let kind = BulkKind::Text;
        Self { kind, nbytes }
    }

    /// So many bytes of the kind bytes.
    #[must_use]
    pub fn bytes(nbytes: u64) -> Self {
        let kind = BulkKind::Bytes;
        Self { kind, nbytes }
    }
}

/// One packet of a session, without its payload.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// The session ends; there is no answer.
    Shutdown,
    /// Opens the session: answered by [`Packet::Return`] or [`Packet::Exception`].
    Init {
        /// The protocol version of the client, [`crate::codes::PROTOCOL_VERSION`].
        version: Cow<'a, str>,
        /// Name and arguments of the session's constructor, or nothing for the local session.
        constructor: Values<'a>,
    },
    /// Calls a function: answered by [`Packet::Return`] of a [`Returned`], or [`Packet::Exception`].
    Call {
        /// The function's handle.
        function: u64,
        /// The arguments.
        args: Values<'a>,
        /// One more argument, in the last place, that follows as payload.
        bulk: Option<Bulk>,
    },
    /// A result: one value, or for a call what [`Packet::returned`] makes of it.
    Return(Values<'a>),
    /// The result of a call that is text or bytes, which follow as payload.
    BulkReturn {
        /// Which of the two.
        kind: BulkKind,
        /// Bytes of the payload.
        nbytes: u64,
    },
    /// A failure.
    Exception {
        /// What the peer says of it.
        text: Cow<'a, str>,
    },
    /// Asks for bytes of a tensor: answered by [`Packet::CopyAck`] or [`Packet::Exception`].
    CopyFrom {
        /// The tensor; its byte offset counts.
        tensor: TensorView,
        /// How many bytes.
        nbytes: u64,
    },
    /// Brings bytes of a tensor as payload: answered by [`Packet::Return`] or [`Packet::Exception`].
    CopyTo {
        /// The tensor; its byte offset counts.
        tensor: TensorView,
        /// Bytes of the payload.
        nbytes: u64,
    },
    /// The bytes that were asked for, as payload.
    CopyAck {
        /// Bytes of the payload.
        nbytes: u64,
    },
    /// One of the thirteen fixed functions of a server.
    Syscall(Syscall<'a>),
}

impl<'a> Packet<'a> {
    /// An init packet of this version of the protocol.
    #[must_use]
    pub fn init(constructor: Values<'a>) -> Self {
        Self::Init {
            version: Cow::Borrowed(crate::codes::PROTOCOL_VERSION),
            constructor,
        }
    }

    /// A return packet of nothing: the answer to a copy and to most syscalls.
    #[must_use]
    pub fn void() -> Self {
        Self::Return(Values::from_iter([Value::None]))
    }

    /// The packet's code.
    #[must_use]
    pub fn code(&self) -> PacketCode {
        match self {
            Self::Shutdown => PacketCode::SHUTDOWN,
            Self::Init { .. } => PacketCode::INIT_SERVER,
            Self::Call { .. } => PacketCode::CALL_FUNC,
            Self::Return(_) | Self::BulkReturn { .. } => PacketCode::RETURN,
            Self::Exception { .. } => PacketCode::EXCEPTION,
            Self::CopyFrom { .. } => PacketCode::COPY_FROM_REMOTE,
            Self::CopyTo { .. } => PacketCode::COPY_TO_REMOTE,
            Self::CopyAck { .. } => PacketCode::COPY_ACK,
            Self::Syscall(syscall) => syscall.code(),
        }
    }

    /// The same packet, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Packet<'static> {
        match self {
            Self::Shutdown => Packet::Shutdown,
            Self::Init {
                version,
                constructor,
            } => Packet::Init {
                version: Cow::Owned(version.into_owned()),
                constructor: constructor.into_owned(),
            },
            Self::Call {
                function,
                args,
                bulk,
            } => Packet::Call {
                function,
                args: args.into_owned(),
                bulk,
            },
            Self::Return(values) => Packet::Return(values.into_owned()),
            Self::BulkReturn { kind, nbytes } => Packet::BulkReturn { kind, nbytes },
            Self::Exception { text } => Packet::Exception {
                text: Cow::Owned(text.into_owned()),
            },
            Self::CopyFrom { tensor, nbytes } => Packet::CopyFrom { tensor, nbytes },
            Self::CopyTo { tensor, nbytes } => Packet::CopyTo { tensor, nbytes },
            Self::CopyAck { nbytes } => Packet::CopyAck { nbytes },
            Self::Syscall(syscall) => Packet::Syscall(syscall.into_owned()),
        }
    }

    /// Bytes that have to follow the head.
    #[must_use]
    pub fn payload(&self) -> u64 {
        match *self {
            Self::CopyTo { nbytes, .. }
            | Self::CopyAck { nbytes }
            | Self::BulkReturn { nbytes, .. } => nbytes,
            Self::Call { bulk, .. } => bulk.map_or(0, |bulk| bulk.nbytes),
            _ => 0,
        }
    }

    /// Appends the head to `out`. The payload, if there is one, has to be sent behind it.
    ///
    /// # Errors
    /// More than [`Limits::arguments`] values, a tensor of more than [`Limits::dimensions`], or more
    /// bytes than [`Limits::packet`] or [`Limits::payload`]: `out` is then as it was.
    pub fn encode(
        &self,
        dialect: Dialect,
        limits: Limits,
        out: &mut Vec<u8>,
    ) -> Result<(), OverLimit> {
        self.check_counts(limits)?;
        // So that the sum with the head fits the length field, whatever the limit.
        let longest = limits.payload.min(i64::MAX.unsigned_abs());
        within("payload", self.payload(), longest)?;
        append(self.code(), self.payload(), limits, out, |out| {
            self.put_body(dialect, out);
        })
    }

    /// Checks the counts in the body.
    fn check_counts(&self, limits: Limits) -> Result<(), OverLimit> {
        match self {
            Self::Init {
                constructor: values,
                ..
            }
            | Self::Return(values) => check_values(values, values.len(), limits),
            Self::Call { args, bulk, .. } => {
                check_values(args, args.len() + usize::from(bulk.is_some()), limits)
            }
            Self::CopyFrom { tensor, .. }
            | Self::CopyTo { tensor, .. }
            | Self::Syscall(Syscall::AllocDataWithScope { tensor, .. }) => {
                tensor::check(tensor, limits)
            }
            Self::Syscall(Syscall::CopyAmong { from, to, .. }) => {
                tensor::check(from, limits)?;
                tensor::check(to, limits)
            }
            _ => Ok(()),
        }
    }

    fn put_body(&self, dialect: Dialect, out: &mut Vec<u8>) {
        match self {
            Self::Shutdown | Self::CopyAck { .. } => {}
            Self::Init {
                version,
                constructor,
            } => {
                out.put_u64(version.len() as u64);
                out.put(version.as_bytes());
                dialect.put_values(Place::Init, constructor, None, out);
            }
            Self::Call {
                function,
                args,
                bulk,
            } => {
                out.put_u64(*function);
                dialect.put_values(Place::Call, args, *bulk, out);
            }
            Self::Return(values) => dialect.put_values(Place::Return, values, None, out),
            &Self::BulkReturn { kind, nbytes } => {
                dialect.put_bulk_return(Bulk { kind, nbytes }, out);
            }
            Self::Exception { text } => {
                let text = [Value::Str(Cow::Borrowed(text))];
                dialect.put_values(Place::Return, &text, None, out);
            }
            Self::CopyFrom { tensor, nbytes } | Self::CopyTo { tensor, nbytes } => {
                tensor::put(tensor, out);
                out.put_u64(*nbytes);
            }
            Self::Syscall(syscall) => syscall.put(dialect, out),
        }
    }
}

/// Appends the return packet of a call to `out`. A [`Value::Tensor`] goes as a tensor that nobody owns.
///
/// # Errors
/// A tensor of more than [`Limits::dimensions`], or more bytes than [`Limits::packet`]; larger text and bytes go as [`Packet::BulkReturn`].
pub fn encode_returned(
    dialect: Dialect,
    returned: &Returned<'_>,
    limits: Limits,
    out: &mut Vec<u8>,
) -> Result<(), OverLimit> {
    if let Returned::Tensor { tensor, .. } | Returned::Value(Value::Tensor(tensor)) = returned {
        tensor::check(tensor, limits)?;
    }
    append(PacketCode::RETURN, 0, limits, out, |out| {
        dialect.put_returned(returned, out);
    })
}

/// Checks a sequence of `count` values, of which these are the first.
fn check_values(values: &[Value<'_>], count: usize, limits: Limits) -> Result<(), OverLimit> {
    // A count is a signed integer on the wire, whatever the limit.
    let most = limits.arguments.min(i32::MAX.unsigned_abs());
    within("number of values", count as u64, most.into())?;
    for value in values {
        if let Value::Tensor(tensor) = value {
            tensor::check(tensor, limits)?;
        }
    }
    Ok(())
}

/// Appends one packet: its length, its code and the body that `put_body` writes.
fn append(
    code: PacketCode,
    payload: u64,
    limits: Limits,
    out: &mut Vec<u8>,
    put_body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), OverLimit> {
    let start = out.len();
    out.put_u64(0);
    out.put_i32(code.0);
    put_body(out);
    let head = (out.len() - start) as u64;
    if let Err(over) = within("packet", head, limits.packet) {
        out.truncate(start);
        return Err(over);
    }
    let nbytes = head - LENGTH + payload;
    out[start..start + 8].copy_from_slice(&nbytes.to_le_bytes());
    Ok(())
}

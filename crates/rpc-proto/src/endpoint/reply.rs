//! What a request expects, and what comes.

use std::borrow::Cow;

use super::EndpointError;
use crate::codes::PacketCode;
use crate::{BulkKind, DecodeError, Dialect, Packet, Returned, Syscall, Value};

/// The peer's answer to a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reply<'b> {
    /// Done, with nothing to tell.
    Done,
    /// An address or a handle; 0 is null.
    Pointer(u64),
    /// An attribute of a device: nothing, an integer or a text.
    Attr(Value<'b>),
    /// The result of a call.
    Returned(Returned<'b>),
    /// The result of a call is text or bytes, which follow as payload.
    BulkReturn {
        /// Which of the two.
        kind: BulkKind,
        /// Bytes that follow.
        nbytes: u64,
    },
    /// The bytes of a tensor follow as payload, as many as were asked for.
    Data {
        /// Bytes that follow.
        nbytes: u64,
    },
    /// The peer failed, in its own words.
    Exception(Cow<'b, str>),
    /// An answer of a form that does not fit the request, or cannot be understood. The session goes
    /// on, but what the answer held (a handle, say) is lost.
    Malformed(DecodeError),
}

impl Reply<'_> {
    /// The same reply, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Reply<'static> {
        match self {
            Self::Done => Reply::Done,
            Self::Pointer(address) => Reply::Pointer(address),
            Self::Attr(value) => Reply::Attr(value.into_owned()),
            Self::Returned(returned) => Reply::Returned(returned.into_owned()),
            Self::BulkReturn { kind, nbytes } => Reply::BulkReturn { kind, nbytes },
            Self::Data { nbytes } => Reply::Data { nbytes },
            Self::Exception(text) => Reply::Exception(Cow::Owned(text.into_owned())),
            Self::Malformed(error) => Reply::Malformed(error),
        }
    }

    /// Bytes that follow as payload.
    #[must_use]
    pub fn payload(&self) -> u64 {
        match *self {
            Self::BulkReturn { nbytes, .. } | Self::Data { nbytes } => nbytes,
            _ => 0,
        }
    }
}

/// What kind of reply a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Nothing,
    /// A return packet of any values: real peers differ in them. That they can be read shows that the
    /// peer speaks the same dialect.
    AnyReturn,
    Void,
    Pointer,
    Attr,
    Returned,
    Data(u64),
}

impl Expected {
    /// What the request `packet` expects, or `None` when it is no request.
    pub(super) fn of(packet: &Packet<'_>) -> Option<Self> {
        Some(match packet {
            Packet::Shutdown => Self::Nothing,
            Packet::Init { .. } => Self::AnyReturn,
            Packet::Call { .. } => Self::Returned,
            Packet::CopyFrom { nbytes, .. } => Self::Data(*nbytes),
            Packet::CopyTo { .. } => Self::Void,
            Packet::Syscall(
                Syscall::GetGlobalFunc { .. }
                | Syscall::AllocData { .. }
                | Syscall::AllocDataWithScope { .. }
                | Syscall::CreateStream { .. }
                | Syscall::GetCurrentStream { .. },
            ) => Self::Pointer,
            Packet::Syscall(Syscall::GetAttr { .. }) => Self::Attr,
            Packet::Syscall(_) => Self::Void,
            _ => return None,
        })
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Data(_) => "a copy ack or an exception",
            Self::Returned => "the return of a call or an exception",
            _ => "the return of at most one value or an exception",
        }
    }

    /// Turns the packet that came into the reply.
    pub(super) fn reply<'b>(
        self,
        packet: Result<Packet<'b>, DecodeError>,
        head: &[u8],
        dialect: Dialect,
    ) -> Result<Reply<'b>, EndpointError> {
        let packet = match packet {
            Ok(packet) => packet,
            // The frame is whole, so an answer that cannot be read costs only its request.
            Err(error) => {
                return match (self, code(head)) {
                    (Self::Data(_), Some(PacketCode::RETURN)) => Err(error.into()),
                    (_, Some(PacketCode::RETURN | PacketCode::EXCEPTION)) => {
                        Ok(Reply::Malformed(error))
                    }
                    _ => Err(error.into()),
                };
            }
        };
        match (self, packet) {
            (_, Packet::Exception { text }) => Ok(Reply::Exception(text)),
            (Self::Data(expected), Packet::CopyAck { nbytes }) if nbytes == expected => {
                Ok(Reply::Data { nbytes })
            }
            (Self::Data(expected), Packet::CopyAck { nbytes: found }) => {
                Err(EndpointError::WrongLength { found, expected })
            }
            (Self::Returned, Packet::BulkReturn { kind, nbytes }) => {
                Ok(Reply::BulkReturn { kind, nbytes })
            }
            (Self::Returned, Packet::Return(values)) => Ok(
                Packet::returned(values, dialect).map_or_else(Reply::Malformed, Reply::Returned)
            ),
            (Self::AnyReturn, Packet::Return(_)) => Ok(Reply::Done),
            (Self::Void | Self::Pointer | Self::Attr, Packet::Return(values)) => {
                Ok(self.syscall_reply(&values))
            }
            (_, packet) => Err(EndpointError::Unexpected {
                found: packet.code(),
                expected: self.describe(),
            }),
        }
    }

    fn syscall_reply<'b>(self, values: &[Value<'b>]) -> Reply<'b> {
        match (self, values) {
            (Self::Void, _) => Reply::Done,
            (Self::Pointer, [Value::Pointer(address)]) => Reply::Pointer(*address),
            (Self::Pointer, [Value::None]) => Reply::Pointer(0),
            (Self::Attr, [value @ (Value::None | Value::Int(_) | Value::Str(_))]) => {
                Reply::Attr(value.clone())
            }
            (_, values) => {
                let expected = match self {
                    Self::Attr => "one value: none, an integer or a text",
                    _ => "one value: a pointer or none",
                };
                let found = match values {
                    [value] => value.kind().to_owned(),
                    values => format!("{} values", values.len()),
                };
                Reply::Malformed(DecodeError::Unexpected {
                    field: "result of a syscall",
                    offset: crate::packet::START,
                    expected,
                    found,
                })
            }
        }
    }
}

/// The code of a packet, from its head.
fn code(head: &[u8]) -> Option<PacketCode> {
    let code = head.get(8..12)?.try_into().ok()?;
    Some(PacketCode(i32::from_le_bytes(code)))
}

use super::{EndpointError, Next, next};
use crate::codes::{PROTOCOL_VERSION, PacketCode};
use crate::packet::encode_returned;
use crate::{Bulk, DecodeError, Dialect, Limits, OverLimit, Packet, Returned, Value};

/// Text and bytes of a result from this length on are sent from where they lie, instead of being
/// copied into the packet first.
const BORROW: usize = 4 << 10;

/// The longest text of an exception that is sent, in bytes; the rest is cut off.
const LONGEST_EXCEPTION: usize = 1 << 20;

/// The server's end of a session; see the [module](super) for how to drive it.
#[derive(Debug)]
pub struct ServerEndpoint {
    dialect: Dialect,
    limits: Limits,
    open: bool,
}

/// What [`ServerEndpoint::receive`] found.
#[derive(Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is matched where it is returned"
)]
#[non_exhaustive]
pub enum Asked<'b> {
    /// Too few bytes to say anything.
    Incomplete {
        /// Bytes of the input that are done with.
        consumed: usize,
        /// Bytes that have to be there behind those.
        needed: u64,
    },
    /// A request, to be answered once.
    Request {
        /// Bytes of the input that are done with.
        consumed: usize,
        /// The request; its [payload](Packet::payload) follows.
        packet: Packet<'b>,
    },
    /// A request that is not to be done: its answer is an exception that says why.
    Refused {
        /// Bytes of the input that are done with.
        consumed: usize,
        /// Bytes that follow and have to be skipped.
        payload: u64,
        /// Why.
        refusal: Refusal,
    },
    /// The client says goodbye. There is no answer.
    Ended,
}

/// Why a server does not do a request. The session goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A syscall does not take this argument.
    #[error(transparent)]
    Argument(DecodeError),
    /// There is no session yet.
    #[error("{found} packet before the session was opened by an init packet")]
    NotOpen {
        /// What came.
        found: PacketCode,
    },
    /// There is a session already.
    #[error("the session is open already, and cannot be opened again")]
    AlreadyOpen,
    /// The client speaks another version of the protocol.
    #[error("the server speaks version {PROTOCOL_VERSION} of the protocol, the client {found:?}")]
    Version {
        /// The client's version, shortened.
        found: String,
    },
}

impl ServerEndpoint {
    /// An endpoint of a fresh connection, after the handshake. It waits for an init packet.
    #[must_use]
    pub fn new(dialect: Dialect, limits: Limits) -> Self {
        Self {
            dialect,
            limits,
            open: false,
        }
    }

    /// Says that the session that an init packet asked for is there.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Reads what the client sent, from the first byte that was not consumed before.
    ///
    /// # Errors
    /// The client broke the protocol such that what follows cannot be trusted.
    pub fn receive<'b>(&self, input: &'b [u8]) -> Result<Asked<'b>, EndpointError> {
        let (head, payload, end) = match next(input, self.dialect, self.limits)? {
            Next::Incomplete { consumed, needed } => {
                return Ok(Asked::Incomplete { consumed, needed });
            }
            Next::Packet { head, payload, end } => (head, payload, end),
        };
        let refused = |refusal| Asked::Refused {
            consumed: end,
            payload,
            refusal,
        };
        let packet = match Packet::decode(head, payload, self.dialect, self.limits) {
            Ok(packet) => packet,
            Err(error @ DecodeError::Argument { .. }) if self.open => {
                return Ok(refused(Refusal::Argument(error)));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(match packet {
            Packet::Shutdown => Asked::Ended,
            Packet::Return(_)
            | Packet::BulkReturn { .. }
            | Packet::Exception { .. }
            | Packet::CopyAck { .. } => {
                return Err(EndpointError::Unexpected {
                    found: packet.code(),
                    expected: "a request",
                });
            }
            Packet::Init { .. } if self.open => refused(Refusal::AlreadyOpen),
            Packet::Init { version, .. } if version != PROTOCOL_VERSION => {
                let found = version.chars().take(20).collect();
                refused(Refusal::Version { found })
            }
            Packet::Init { .. } => Asked::Request {
                consumed: end,
                packet,
            },
            _ if !self.open => refused(Refusal::NotOpen {
                found: packet.code(),
            }),
            packet => Asked::Request {
                consumed: end,
                packet,
            },
        })
    }

    /// Appends an answer to `out`: a return, a copy ack, or the head of a bulk return. Its payload has
    /// to be sent behind it.
    ///
    /// # Errors
    /// It is over a limit; `out` is then as it was.
    pub fn answer(&self, packet: &Packet<'_>, out: &mut Vec<u8>) -> Result<(), OverLimit> {
        packet.encode(self.dialect, self.limits, out)
    }

    /// Appends the result of a call to `out`, and says what has to be sent behind it: large text and
    /// bytes are not copied.
    ///
    /// # Errors
    /// It is over a limit; `out` is then as it was.
    pub fn answer_call<'r>(
        &self,
        returned: &'r Returned<'_>,
        out: &mut Vec<u8>,
    ) -> Result<&'r [u8], OverLimit> {
        let (bulk, payload): (fn(u64) -> Bulk, &[u8]) = match returned {
            Returned::Value(Value::Str(text)) => (Bulk::text, text.as_bytes()),
            Returned::Value(Value::Bytes(bytes)) => (Bulk::bytes, bytes),
            _ => (Bulk::bytes, &[]),
        };
        if payload.len() < BORROW {
            encode_returned(self.dialect, returned, self.limits, out)?;
            return Ok(&[]);
        }
        let Bulk { kind, nbytes } = bulk(payload.len() as u64);
        self.answer(&Packet::BulkReturn { kind, nbytes }, out)?;
        Ok(payload)
    }

    /// Appends an exception to `out`. A very long text is cut.
    pub fn answer_exception(&self, text: &str, out: &mut Vec<u8>) {
        /// Length, code, count, type index and length of the text.
        const FRAME: usize = 28;
        let room = usize::try_from(self.limits.packet).unwrap_or(usize::MAX);
        let most = LONGEST_EXCEPTION.min(room.saturating_sub(FRAME));
        let mut end = most.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        // Where even the frame is over the limit, a client has no use for the text.
        let _ = self.answer(&Packet::Exception { text: text.into() }, out);
    }
}

#[cfg(test)]
mod tests;

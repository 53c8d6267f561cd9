use std::borrow::Cow;
use std::collections::VecDeque;

use super::reply::{Expected, Reply};
use super::{EndpointError, Next, next};
use crate::codes::{PacketCode, SESSION_TIMEOUT_PREFIX};
use crate::limits::within;
use crate::{Dialect, Limits, OverLimit, Packet};

/// The client's end of a session; see the [module](super) for how to drive it.
///
/// `T` is the caller's token for a request.
#[derive(Debug)]
pub struct ClientEndpoint<T> {
    dialect: Dialect,
    limits: Limits,
    outstanding: VecDeque<(Expected, T)>,
}

/// A request that cannot be sent. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is larger than what this end allows.
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    /// It is a packet that only servers send.
    #[error("a client cannot send {0} packets")]
    NotARequest(PacketCode),
}

/// What [`ClientEndpoint::receive`] found.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Received<'b, T> {
    /// Too few bytes to say anything.
    Incomplete {
        /// Bytes of the input that are done with.
        consumed: usize,
        /// Bytes that have to be there behind those.
        needed: u64,
    },
    /// The reply to the oldest request.
    Reply {
        /// Bytes of the input that are done with.
        consumed: usize,
        /// The token of that request.
        token: T,
        /// What the peer says.
        reply: Reply<'b>,
    },
    /// The peer ended the session.
    Ended {
        /// What it said when nothing was outstanding, for example that the time is up.
        text: Option<Cow<'b, str>>,
    },
}

impl<T> ClientEndpoint<T> {
    /// An endpoint of a fresh connection, after the handshake.
    #[must_use]
    pub fn new(dialect: Dialect, limits: Limits) -> Self {
        Self {
            dialect,
            limits,
            outstanding: VecDeque::new(),
        }
    }

    /// Requests that wait for a reply.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// The token of the request whose reply comes next.
    #[must_use]
    pub fn oldest(&self) -> Option<&T> {
        self.outstanding.front().map(|(_, token)| token)
    }

    /// Appends the head of a request to `out`, and expects its reply after those before it.
    /// [`Packet::Shutdown`] has no reply; its token is dropped.
    ///
    /// # Errors
    /// The request is too large, or asks for more bytes than [`Limits::payload`], or only a server may
    /// send it.
    pub fn request(
        &mut self,
        packet: &Packet<'_>,
        token: T,
        out: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        let expected = Expected::of(packet).ok_or(RequestError::NotARequest(packet.code()))?;
        if let Expected::Data(nbytes) = expected {
            within("bytes to copy", nbytes, self.limits.payload)?;
        }
        packet.encode(self.dialect, self.limits, out)?;
        if expected != Expected::Nothing {
            self.outstanding.push_back((expected, token));
        }
        Ok(())
    }

    /// Reads what the peer sent, from the first byte that was not consumed before.
    ///
    /// A reply whose content cannot be understood is [`Reply::Malformed`]: it is still the reply to
    /// its request, and the session goes on.
    ///
    /// # Errors
    /// The peer broke the protocol such that what follows cannot be trusted.
    pub fn receive<'b>(&mut self, input: &'b [u8]) -> Result<Received<'b, T>, EndpointError> {
        let (head, payload, end) = match next(input, self.dialect, self.limits)? {
            Next::Incomplete { consumed, needed } => {
                return Ok(Received::Incomplete { consumed, needed });
            }
            Next::Packet { head, payload, end } => (head, payload, end),
        };
        let packet = Packet::decode(head, payload, self.dialect, self.limits);
        if let Ok(Packet::Shutdown) = packet {
            return Ok(Received::Ended { text: None });
        }
        let Some((expected, _)) = self.outstanding.front() else {
            return unasked(packet?);
        };
        let reply = expected.reply(packet, head, self.dialect)?;
        let Some((_, token)) = self.outstanding.pop_front() else {
            unreachable!("the oldest request was just looked at");
        };
        Ok(Received::Reply {
            consumed: end,
            token,
            reply,
        })
    }

    /// The tokens of all requests that wait, when the session is over.
    pub fn abandon(&mut self) -> impl Iterator<Item = T> + '_ {
        self.outstanding.drain(..).map(|(_, token)| token)
    }
}

/// A packet that came when nothing was outstanding.
fn unasked<T>(packet: Packet<'_>) -> Result<Received<'_, T>, EndpointError> {
    match packet {
        Packet::Exception { text } if text.starts_with(SESSION_TIMEOUT_PREFIX) => {
            Ok(Received::Ended { text: Some(text) })
        }
        packet => Err(EndpointError::Unexpected {
            found: packet.code(),
            expected: "nothing",
        }),
    }
}

#[cfg(test)]
mod tests;

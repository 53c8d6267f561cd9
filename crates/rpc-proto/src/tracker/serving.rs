//! The tracker's side of one connection.

use std::mem;

use super::json::MessageError;
use super::{Request, frame};
use crate::codes::{RPC_MAGIC, TRACKER_MAGIC};
use crate::handshake::ForeignAnswer;
use crate::wire::Put;
use crate::{DecodeError, Limits};

/// One connection to a client or a server, seen from the tracker: bytes in, requests out.
///
/// The driver owns the stream and does this:
///
/// 1. Read, and hand all that came to [`ServingConnection::receive`], again and again until nothing of
///    it is left and no request came out; write what was appended. Until
///    [`ServingConnection::is_greeted`], that is the greeting.
/// 2. Answer each request with a [`Reply`](super::Reply), in their order; only a REQUEST may be
///    answered later than those behind it.
/// 3. After an error, close the connection; there is no answer to what is wrong.
///
/// A frame may come in pieces of any size, with others before and behind it. At most one frame that is
/// not complete is kept, and its length is compared with [`Limits::tracker_frame`] before any of it.
///
/// ```
/// use rpc_proto::Limits;
/// use rpc_proto::tracker::{Reply, Request, ServingConnection};
///
/// let mut out = Vec::new();
/// let mut connection = ServingConnection::new(Limits::default());
/// for piece in b"\x71\xf2\x02\x00\x03\x00\x00\x00[1]".chunks(3) {
///     let mut input = piece;
///     while let Some(request) = connection.receive(&mut input, &mut out)? {
///         assert_eq!(request, Request::Ping);
///         Reply::Done.encode(Limits::default(), &mut out)?;
///     }
/// }
/// assert_eq!(out, b"\x71\xf2\x02\x00\x01\x00\x00\x000");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ServingConnection {
    limits: Limits,
    state: State,
    /// What came of the greeting or of a frame that is not complete.
    received: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Greeted,
    Broken,
}

/// A peer of a tracker that broke the protocol. The connection is of no further use; there is no
/// answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServingError {
    /// The first bytes are none of the protocol.
    #[error("not a peer of a tracker: it began with {began}")]
    Foreign {
        /// The first bytes.
        began: ForeignAnswer,
    },
    /// The peer begins a session, as with a server or a proxy.
    #[error("not a peer of a tracker: it takes this for an RPC server or proxy")]
    SessionClient,
    /// The length of a frame is not allowed; nothing was allocated for it.
    #[error("the peer's frame is wrong")]
    Decode(#[from] DecodeError),
    /// The text of a frame is no request.
    #[error("the peer's request is wrong")]
    Message(#[from] MessageError),
    /// The peer closed the connection inside its greeting or a frame.
    #[error("the peer closed the connection inside a message ({received} of {needed} bytes)")]
    Closed {
        /// Bytes that came of it.
        received: u64,
        /// Bytes of it with its length field; 4 of a greeting, and until the length is known.
        needed: u64,
    },
    /// The connection failed before.
    #[error("the connection failed before and is of no further use")]
    Broken,
}

impl ServingConnection {
    /// The start of a fresh connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Greeting,
            received: Vec::new(),
        }
    }

    /// Whether the peer has shown that it is one of a tracker's.
    #[must_use]
    pub fn is_greeted(&self) -> bool {
        self.state == State::Greeted
    }

    /// Whether the peer has begun a message that is not complete: it may be silent between messages,
    /// but should not be inside one. Its greeting is one that is always due.
    #[must_use]
    pub fn is_inside_message(&self) -> bool {
        self.state == State::Greeting || !self.received.is_empty()
    }

    /// Takes what came from the peer, up to the end of the first complete request, which it returns;
    /// `input` is then what is behind it. Without a request, all of `input` is taken.
    ///
    /// Appends to `out` the greeting that answers the peer's.
    ///
    /// # Errors
    /// The peer is not one of a tracker's, or breaks the protocol.
    pub fn receive(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Request>, ServingError> {
        let request = self.take(input, out);
        if request.is_err() {
            self.state = State::Broken;
            self.received = Vec::new();
        }
        request
    }

    /// What it means that the peer's bytes end here; `None` between messages, where it may leave.
    #[must_use]
    pub fn end(&self) -> Option<ServingError> {
        if self.state == State::Broken {
            return Some(ServingError::Broken);
        }
        let needed = match self.frame_length() {
            Ok(Some(length)) if self.is_greeted() => length as u64,
            _ => 4,
        };
        (!self.received.is_empty()).then_some(ServingError::Closed {
            received: self.received.len() as u64,
            needed,
        })
    }

    fn take(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Request>, ServingError> {
        match self.state {
            State::Broken => return Err(ServingError::Broken),
            State::Greeted => {}
            State::Greeting => {
                if !self.greeting(input)? {
                    return Ok(None);
                }
                out.put_i32(TRACKER_MAGIC);
                self.state = State::Greeted;
            }
        }
        self.fill(4, input);
        let Some(length) = self.frame_length()? else {
            return Ok(None);
        };
        let missing = length - self.received.len();
        // Most frames come whole, and are read where they are.
        let request = match input.split_at_checked(missing) {
            None => {
                self.fill(length, input);
                return Ok(None);
            }
            Some((frame, behind)) if self.received.len() == 4 => {
                *input = behind;
                Request::decode(frame)
            }
            Some(_) => {
                self.fill(length, input);
                Request::decode(&self.received[4..])
            }
        };
        // Not cleared: one large frame must not hold its memory as long as the connection lives.
        drop(mem::take(&mut self.received));
        Ok(Some(request?))
    }

    /// Whether the greeting is complete.
    fn greeting(&mut self, input: &mut &[u8]) -> Result<bool, ServingError> {
        self.fill(4, input);
        let came = self.received.as_slice();
        if TRACKER_MAGIC.to_le_bytes() == came {
            self.received = Vec::new();
            return Ok(true);
        }
        if came == RPC_MAGIC.to_le_bytes() {
            return Err(ServingError::SessionClient);
        }
        // The magic numbers begin alike, so that a client of a server is only known by its last bytes.
        let known = [TRACKER_MAGIC, RPC_MAGIC];
        if known
            .iter()
            .any(|magic| magic.to_le_bytes().starts_with(came))
        {
            return Ok(false);
        }
        Err(ServingError::Foreign {
            began: ForeignAnswer::new(came.iter().chain(*input).copied()),
        })
    }

    fn frame_length(&self) -> Result<Option<usize>, DecodeError> {
        frame::length(&self.received, self.limits.tracker_frame)
    }

    /// Moves bytes from `input` until `length` bytes are received, or none are left.
    fn fill(&mut self, length: usize, input: &mut &[u8]) {
        *input = frame::fill(&mut self.received, length, input);
    }
}

#[cfg(test)]
mod tests;

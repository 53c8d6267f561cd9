//! The client's side of one connection to a tracker.

use std::mem;

use super::json::MessageError;
use super::{Reply, Request, frame};
use crate::codes::TRACKER_MAGIC;
use crate::handshake::ForeignAnswer;
use crate::wire::Put;
use crate::{DecodeError, Limits, OverLimit};

/// One connection to a tracker, seen from the client: bytes in, bytes and events out.
///
/// The driver owns the stream and does this:
///
/// 1. Write what [`Connection::new`] appended, in a write of its own: the reference's tracker wants
///    the greeting alone.
/// 2. Read, and hand all that came to [`Connection::receive`], until it returns an event: at first
///    [`Event::Ready`]. At the end of the input, [`Connection::end`] says what that means.
/// 3. [`Connection::send`] a request, and write what it appended in one write.
/// 4. As 2., until [`Event::Reply`]; then 3. again.
///
/// There is one request at a time, since answers have no mark of what they answer, and the tracker
/// says nothing unasked. After an error the connection is of no further use.
///
/// ```
/// use rpc_proto::Limits;
/// use rpc_proto::tracker::{Connection, Event, Request};
///
/// // The driver's loop; a real one reads its pieces from a stream.
/// let wait = |connection: &mut Connection, answer: &[u8]| {
///     for piece in answer.chunks(3) {
///         if let Some(event) = connection.receive(piece)? {
///             return Ok(event);
///         }
///     }
///     Err(connection.end())
/// };
///
/// let mut out = Vec::new();
/// let mut connection = Connection::new(Limits::default(), &mut out);
/// assert_eq!(out, b"\x71\xf2\x02\x00");
/// assert_eq!(wait(&mut connection, b"\x71\xf2\x02\x00")?, Event::Ready);
///
/// out.clear();
/// connection.send(&Request::Summary, &mut out)?;
/// assert_eq!(out, b"\x03\x00\x00\x00[6]");
/// let answer = b"\x2a\x00\x00\x00[0, {\"queue_info\": {}, \"server_info\": []}]";
/// let Event::Reply(reply) = wait(&mut connection, answer)? else {
///     unreachable!("there is one Ready");
/// };
/// assert!(reply.into_summary()?.servers.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    state: State,
    /// What came of the greeting or of the reply that is being waited for.
    received: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Idle,
    Waiting,
    Broken,
}

/// What a tracker did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It greeted: requests may be sent.
    Ready,
    /// It answered the request: the next one may be sent.
    Reply(Reply),
}

/// A connection to a tracker that failed, or was used wrongly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer greets with other bytes than a tracker.
    #[error("not an RPC tracker: answered with {answer}")]
    NotATracker {
        /// The first bytes of its answer.
        answer: ForeignAnswer,
    },
    /// The peer closed the connection instead of greeting, as an RPC server does.
    #[error(
        "not an RPC tracker: closed the connection after {received} of the 4 bytes of a greeting"
    )]
    NoGreeting {
        /// Bytes that came.
        received: u64,
    },
    /// The tracker closed the connection before its reply was complete.
    #[error("the tracker closed the connection instead of replying ({received} of {needed} bytes)")]
    ClosedInReply {
        /// Bytes that came.
        received: u64,
        /// Bytes of the reply with its length; 4 until the length is known.
        needed: u64,
    },
    /// The tracker closed the connection while nothing was asked.
    #[error("the tracker closed the connection")]
    Closed,
    /// The tracker sent bytes that nobody asked for.
    #[error("the tracker sent {bytes} bytes that nobody asked for")]
    Unrequested {
        /// How many.
        bytes: u64,
    },
    /// The length of a reply is not allowed; nothing was allocated for it.
    #[error("the tracker's reply is wrong")]
    Decode(#[from] DecodeError),
    /// The text of a reply is none of the protocol.
    #[error("the tracker's reply is wrong")]
    Message(#[from] MessageError),
    /// The request is larger than the limit; nothing was sent.
    #[error("the request cannot be sent")]
    TooLarge(#[from] OverLimit),
    /// A request was sent before the greeting or the last reply came.
    #[error("a tracker connection takes one request at a time, and is still waiting")]
    Busy,
    /// The connection failed before.
    #[error("the tracker connection failed before and is of no further use")]
    Broken,
}

impl Connection {
    /// A new connection; appends the greeting to `out`.
    #[must_use]
    pub fn new(limits: Limits, out: &mut Vec<u8>) -> Self {
        out.put_i32(TRACKER_MAGIC);
        Self {
            limits,
            state: State::Greeting,
            received: Vec::new(),
        }
    }

    /// Appends `request` to `out`, as one frame.
    ///
    /// # Errors
    ///
    /// [`ConnectionError::Busy`] or [`ConnectionError::TooLarge`], which leave everything as it was, or
    /// [`ConnectionError::Broken`].
    pub fn send(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<(), ConnectionError> {
        match self.state {
            State::Greeting | State::Waiting => Err(ConnectionError::Busy),
            State::Broken => Err(ConnectionError::Broken),
            State::Idle => {
                request.encode(self.limits, out)?;
                self.state = State::Waiting;
                Ok(())
            }
        }
    }

    /// Whether a request may be sent.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Takes what came from the tracker, in pieces of any size; all of it.
    ///
    /// # Errors
    ///
    /// The peer is no tracker, or breaks the protocol.
    pub fn receive(&mut self, input: &[u8]) -> Result<Option<Event>, ConnectionError> {
        let event = match self.state {
            _ if input.is_empty() => Ok(None),
            State::Greeting => self.greeting(input),
            State::Waiting => self.reply(input),
            State::Idle => Err(unrequested(input)),
            State::Broken => Err(ConnectionError::Broken),
        };
        match event {
            Ok(Some(_)) => self.state = State::Idle,
            Ok(None) => {}
            Err(_) => self.state = State::Broken,
        }
        event
    }

    /// What it means that the tracker's bytes end here.
    #[must_use]
    pub fn end(&self) -> ConnectionError {
        let received = self.received.len() as u64;
        match self.state {
            State::Greeting => ConnectionError::NoGreeting { received },
            State::Idle => ConnectionError::Closed,
            State::Waiting => ConnectionError::ClosedInReply {
                received,
                needed: match self.frame_length() {
                    Ok(Some(length)) => length as u64,
                    _ => 4,
                },
            },
            State::Broken => ConnectionError::Broken,
        }
    }

    fn greeting(&mut self, input: &[u8]) -> Result<Option<Event>, ConnectionError> {
        let magic = TRACKER_MAGIC.to_le_bytes();
        let behind = frame::fill(&mut self.received, 4, input);
        if !magic.starts_with(&self.received) {
            return Err(ConnectionError::NotATracker {
                answer: ForeignAnswer::new(self.received.iter().chain(behind).copied()),
            });
        }
        if self.received.len() < magic.len() {
            return Ok(None);
        }
        if !behind.is_empty() {
            return Err(unrequested(behind));
        }
        self.received = Vec::new();
        Ok(Some(Event::Ready))
    }

    fn reply(&mut self, input: &[u8]) -> Result<Option<Event>, ConnectionError> {
        let behind = frame::fill(&mut self.received, 4, input);
        let Some(length) = self.frame_length()? else {
            return Ok(None);
        };
        let behind = frame::fill(&mut self.received, length, behind);
        if self.received.len() < length {
            return Ok(None);
        }
        if !behind.is_empty() {
            return Err(unrequested(behind));
        }
        let frame = mem::take(&mut self.received);
        Ok(Some(Event::Reply(Reply::decode(&frame[4..])?)))
    }

    fn frame_length(&self) -> Result<Option<usize>, DecodeError> {
        frame::length(&self.received, self.limits.tracker_reply)
    }
}

fn unrequested(bytes: &[u8]) -> ConnectionError {
    ConnectionError::Unrequested {
        bytes: bytes.len() as u64,
    }
}

#[cfg(test)]
mod tests;

//! The two ends of a session, as state machines: [`ClientEndpoint`] and [`ServerEndpoint`].
//!
//! [`ClientEndpoint`] turns requests into bytes and bytes into replies. Replies carry no number: they
//! come in the order of the requests, so the endpoint keeps what each outstanding request expects, and
//! beside it a *token* of the caller's, by which the caller knows whose reply it is.
//!
//! # The contract of the client
//!
//! **Invariant:** what [`ClientEndpoint::request`] appended is sent whole, with its payload behind it,
//! before anything of a later request; and what [`ClientEndpoint::receive`] consumed is never shown to
//! it again. A driver, blocking or not, is then this loop:
//!
//! 1. For a request: `request(packet, token, &mut out)`, then write `out` and the payload.
//! 2. For a reply: keep the bytes that came in a buffer and call `receive(&buffer)`.
//! 3. On [`Received::Incomplete`], drop `consumed` bytes, read until `needed` bytes are there, go to 2.
//! 4. On [`Received::Reply`], drop `consumed` bytes. If the reply says that a payload follows
//!    ([`Reply::payload`]), take that many bytes from the buffer and then from the stream, to wherever
//!    they belong. Then hand the reply to the owner of the token.
//! 5. On [`Received::Ended`] or an error, the session is over: every token that
//!    [`ClientEndpoint::abandon`] gives back will see no reply.
//!
//! ```
//! use rpc_proto::endpoint::Reply;
//! use rpc_proto::{ClientEndpoint, Dialect, Limits, Packet, Received, Syscall, Values};
//!
//! let mut endpoint = ClientEndpoint::new(Dialect::Ffi, Limits::default());
//! let mut out = Vec::new();
//! endpoint.request(&Packet::init(Values::default()), "init", &mut out)?;
//! assert_eq!(out.len(), 29);
//! let name = "rpc.test.addone".into();
//! endpoint.request(&Packet::Syscall(Syscall::GetGlobalFunc { name }), "lookup", &mut out)?;
//!
//! // The peer answers both: nothing to the first, a handle to the second.
//! let nothing = [12, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
//! let handle = [20, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0];
//! let input = [&nothing[..], &handle].concat();
//!
//! let Received::Reply { consumed, token, reply } = endpoint.receive(&input)? else { panic!() };
//! assert_eq!((consumed, token, reply), (20, "init", Reply::Done));
//! let Received::Reply { token, reply, .. } = endpoint.receive(&input[20..])? else { panic!() };
//! assert_eq!((token, reply), ("lookup", Reply::Pointer(42)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The contract of the server
//!
//! [`ServerEndpoint`] turns bytes into requests and answers into bytes. Requests are answered in the
//! order in which they came, each once:
//!
//! 1. Keep the bytes that came in a buffer and call [`receive(&buffer)`](ServerEndpoint::receive).
//! 2. On [`Asked::Incomplete`], drop `consumed` bytes, read until `needed` bytes are there, go to 1.
//! 3. On [`Asked::Request`], drop `consumed` bytes once the packet was used, take its
//!    [payload](crate::Packet::payload) from the buffer and then from the stream, do what was asked, append
//!    the answer and write it. Say when the first session [is there](ServerEndpoint::open). Go to 1.
//! 4. On [`Asked::Refused`], skip its payload and answer with an exception. Go to 1.
//! 5. On [`Asked::Ended`], or at the end of the stream between two packets, the session is over. On an
//!    error as well, but the client may be told by an exception and a [shutdown packet](crate::Packet::Shutdown) first.
//!
//! ```
//! use rpc_proto::endpoint::Asked;
//! use rpc_proto::{Dialect, Limits, Packet, ServerEndpoint, Values};
//!
//! let mut endpoint = ServerEndpoint::new(Dialect::Ffi, Limits::default());
//! let mut init = Vec::new();
//! Packet::init(Values::default()).encode(Dialect::Ffi, Limits::default(), &mut init)?;
//!
//! let Asked::Request { consumed: 29, packet: Packet::Init { constructor, .. } } =
//!     endpoint.receive(&init)? else { panic!() };
//! assert!(constructor.is_empty());
//! endpoint.open();
//! let mut out = Vec::new();
//! endpoint.answer(&Packet::void(), &mut out)?;
//! assert_eq!(out, [12, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod reply;
mod server;

pub use client::{ClientEndpoint, Received, RequestError};
pub use reply::Reply;
pub use server::{Asked, Refusal, ServerEndpoint};

use crate::codes::PacketCode;
use crate::packet::{self, Frame};
use crate::{DecodeError, Dialect, Limits};

/// A peer that does not follow the protocol. The session is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Bytes that are no packet.
    #[error("the peer's packet is malformed")]
    Malformed(#[from] DecodeError),
    /// A packet that does not answer the request before it.
    #[error("unexpected {found} packet from the peer, where {expected} was due")]
    Unexpected {
        /// What came.
        found: PacketCode,
        /// What would have been right.
        expected: &'static str,
    },
    /// More or less data than was asked for.
    #[error("the peer sent {found} bytes of a tensor, where {expected} were asked for")]
    WrongLength {
        /// What came.
        found: u64,
        /// What was asked for.
        expected: u64,
    },
}

/// The first packet of an input that says something; those of no bytes mean nothing.
enum Next<'b> {
    /// `consumed` bytes are done with, and `needed` bytes have to be there behind those.
    Incomplete { consumed: usize, needed: u64 },
    Packet {
        head: &'b [u8],
        payload: u64,
        /// Where the head ends in the input.
        end: usize,
    },
}

fn next(input: &[u8], dialect: Dialect, limits: Limits) -> Result<Next<'_>, DecodeError> {
    let mut consumed = 0;
    loop {
        match packet::scan(&input[consumed..], dialect, limits)? {
            Frame::Empty => consumed += packet::LENGTH_LEN,
            Frame::Incomplete { needed } => return Ok(Next::Incomplete { consumed, needed }),
            Frame::Packet { head, payload } => {
                // The head is part of the input, so its length fits.
                let end = consumed + usize::try_from(head).unwrap_or(usize::MAX);
                let head = &input[consumed..end];
                return Ok(Next::Packet { head, payload, end });
            }
        }
    }
}

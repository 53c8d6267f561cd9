//! The handshake of a session: magic and key one way, code and key the other.
//!
//! ```text
//! client: i32 0xff271   i32 length   key, "client:MATCHKEY -timeout=60"
//! server: i32 code      and, if the code is 0xff271:   i32 length   key, "server:KEY"
//! ```
//!
//! [`Introduction`] is the side that accepts. [`Handshake`] is the side that connects: a client, or a
//! server that registers itself at a proxy. Its driver owns the stream and does this:
//!
//! 1. Write everything that [`Handshake::new`] appended, in one write, and nothing more.
//! 2. Read, and hand what came to [`Handshake::receive`], until it says that the peer accepted. At the
//!    end of the input, [`Handshake::end`] says what that means.
//! 3. Bytes that were not [consumed](Progress::consumed) belong to the first packet. A driver that
//!    reads at most [`Handshake::needed`] bytes at a time never has any.
//!
//! ```
//! use rpc_proto::{Limits, handshake::{Handshake, SessionKey}};
//!
//! let mut out = Vec::new();
//! let key = SessionKey::new("x1")?.to_string();
//! let mut handshake = Handshake::new(&key, Limits::default(), &mut out)?;
//! assert_eq!(out, b"\x71\xf2\x0f\x00\x09\x00\x00\x00client:x1");
//!
//! let mut peer: &[u8] = b"\x71\xf2\x0f\x00\x09\x00\x00\x00server:x1";
//! let accepted = loop {
//!     let (input, rest) = peer.split_at(handshake.needed().min(peer.len()));
//!     if input.is_empty() {
//!         return Err(handshake.end().into());
//!     }
//!     peer = rest;
//!     if let Some(accepted) = handshake.receive(input)?.accepted {
//!         break accepted;
//!     }
//! };
//! assert_eq!(accepted.key, "server:x1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accepting;
mod answer;
mod explain;
mod key;

pub use accepting::{Introduction, IntroductionError};
pub use answer::ForeignAnswer;
pub use explain::{Answer, answer_extent, explain_answer, explain_opening, opening_extent};
pub use key::{KeyError, SessionKey, session_timeout};

use crate::codes::{HandshakeCode, RPC_MAGIC};
use crate::limits::within;
use crate::wire::{Put, Reader};
use crate::{DecodeError, Limits, OverLimit};

/// The connecting side of a handshake, waiting for its answer.
#[derive(Debug)]
pub struct Handshake {
    limits: Limits,
    received: Vec<u8>,
    /// Length of the answer, as far as what was received tells.
    length: usize,
}

/// What [`Handshake::receive`] made of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that belong to the handshake; those behind them belong to packets.
    pub consumed: usize,
    /// The answer, once it is complete.
    pub accepted: Option<Accepted>,
}

/// The peer accepted the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// What the peer calls itself: a server `server:KEY`; a proxy passes on the whole key of the other
    /// side, so a server behind one reads the [`SessionKey`] of its client here. May be any text;
    /// what is not UTF-8 is replaced.
    pub key: String,
}

/// A handshake that failed. The connection is of no further use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The match key is not the one that the server waits for.
    #[error(
        "the server refused the match key: it waits for another one (used already, expired or wrong)"
    )]
    Mismatch,
    /// A peer with the same key waits at the proxy already.
    #[error("the proxy refused the key: a peer with the same key waits there already")]
    Duplicate,
    /// The answer is none of the protocol.
    #[error("not a TVM RPC server: answered with {answer}")]
    NotAServer {
        /// The first bytes of the answer.
        answer: ForeignAnswer,
    },
    /// The peer closed the connection before its answer was complete.
    #[error("server closed during handshake ({received} of {needed} bytes)")]
    Closed {
        /// Bytes that came.
        received: u64,
        /// Bytes of the answer: 4 until its code is known, 8 until its length is.
        needed: u64,
    },
    /// The length of the peer's key is negative or over its limit.
    #[error("the server's answer to the handshake is wrong")]
    Decode(#[from] DecodeError),
}

impl Handshake {
    /// Appends the message that opens the connection to `out`: magic, length and `key`, which is what
    /// a [`SessionKey`] prints, or `server:KEY` to register at a proxy.
    ///
    /// # Errors
    ///
    /// The key is longer than [`Limits::key`].
    pub fn new(key: &str, limits: Limits, out: &mut Vec<u8>) -> Result<Self, OverLimit> {
        put_key(RPC_MAGIC, key, limits, out)?;
        Ok(Self {
            limits,
            received: Vec::new(),
            length: 4,
        })
    }

    /// How many bytes may be read without reading beyond the handshake; 0 when it is complete.
    #[must_use]
    pub fn needed(&self) -> usize {
        self.length - self.received.len()
    }

    /// Takes what came from the peer, in pieces of any size.
    ///
    /// # Errors
    ///
    /// The peer refused the key, or does not follow the protocol.
    pub fn receive(&mut self, input: &[u8]) -> Result<Progress, HandshakeError> {
        let mut rest = input;
        let mut accepted = None;
        while !rest.is_empty() && self.needed() > 0 {
            let (part, behind) = rest.split_at(self.needed().min(rest.len()));
            self.received.extend_from_slice(part);
            rest = behind;
            if self.needed() == 0 {
                accepted = self.read_field(behind)?;
            }
        }
        Ok(Progress {
            consumed: input.len() - rest.len(),
            accepted,
        })
    }

    /// What it means that the peer's bytes end here.
    #[must_use]
    pub fn end(&self) -> HandshakeError {
        HandshakeError::Closed {
            received: self.received.len() as u64,
            needed: self.length as u64,
        }
    }

    /// Reads the field that was received last, and sets the length that it leads to.
    fn read_field(&mut self, behind: &[u8]) -> Result<Option<Accepted>, HandshakeError> {
        match self.received.len() {
            4 => {
                self.read_code(behind)?;
                self.length = 8;
            }
            8 => {
                let mut reader = Reader::new(&self.received[4..], 4);
                self.length += reader.count("length of the peer's key", self.limits.key)? as usize;
            }
            _ => {}
        }
        Ok((self.needed() == 0).then(|| Accepted {
            key: String::from_utf8_lossy(&self.received[8..]).into_owned(),
        }))
    }

    fn read_code(&self, behind: &[u8]) -> Result<(), HandshakeError> {
        match HandshakeCode(Reader::new(&self.received, 0).i32("handshake code")?) {
            HandshakeCode::SUCCESS => Ok(()),
            HandshakeCode::DUPLICATE => Err(HandshakeError::Duplicate),
            HandshakeCode::MISMATCH => Err(HandshakeError::Mismatch),
            _ => Err(HandshakeError::NotAServer {
                answer: ForeignAnswer::new(self.received.iter().chain(behind).copied()),
            }),
        }
    }
}

/// Appends the answer that accepts a peer and says who answers: a server its `server:KEY`, a proxy
/// the whole key of the other side.
///
/// # Errors
///
/// The key is longer than [`Limits::key`].
pub fn put_accept(key: &str, limits: Limits, out: &mut Vec<u8>) -> Result<(), OverLimit> {
    put_key(HandshakeCode::SUCCESS.0, key, limits, out)
}

/// Appends the answer that refuses a peer: [`HandshakeCode::DUPLICATE`] or
/// [`HandshakeCode::MISMATCH`]. The connection is closed after it.
pub fn put_refuse(code: HandshakeCode, out: &mut Vec<u8>) {
    out.put_i32(code.0);
}

fn put_key(code: i32, key: &str, limits: Limits, out: &mut Vec<u8>) -> Result<(), OverLimit> {
    let limit = limits.key.min(i32::MAX.unsigned_abs());
    within("length of the key", key.len() as u64, limit.into())?;
    out.put_i32(code);
    // The length counts bytes, where the reference server counts characters.
    out.put_u32(u32::try_from(key.len()).unwrap_or(limit));
    out.put(key.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;

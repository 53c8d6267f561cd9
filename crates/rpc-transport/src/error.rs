use std::error::Error;
use std::ops::RangeInclusive;
use std::time::Duration;
use std::{fmt, io};

use rpc_proto::OverLimit;
use rpc_proto::handshake::{HandshakeError, IntroductionError};
use rpc_proto::tracker::ConnectionError;

use crate::Step;

/// A connection that could not be made, or that is of no further use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No address of the peer could be reached.
    #[error("cannot connect to {peer}")]
    Connect {
        /// The peer's address.
        peer: String,
        /// Why, of the address whose failure says the most of the peer: a time limit, else a refusal,
        /// else what this system says.
        source: io::Error,
    },
    /// No port of a range could be listened on.
    #[error("cannot listen on {host}, {}", Ports(ports))]
    Listen {
        /// The name or address to listen on.
        host: String,
        /// The ports that were tried.
        ports: RangeInclusive<u16>,
        /// Why not on the last one of them.
        source: io::Error,
    },
    /// A child process could not be started.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The stream failed.
    #[error("lost {peer} while {step}")]
    Io {
        /// The peer.
        peer: String,
        /// What was being done.
        step: Step,
        /// Why.
        source: io::Error,
    },
    /// The peer closed the connection where more was due.
    #[error("{peer} closed the connection while we were {step}")]
    Closed {
        /// The peer.
        peer: String,
        /// What was being done.
        step: Step,
    },
    /// A time limit passed.
    #[error("gave up on {peer} after {allowed:?} of {step}")]
    TimedOut {
        /// The peer.
        peer: String,
        /// What was being done.
        step: Step,
        /// The limit.
        allowed: Duration,
    },
    /// The key for a handshake is over its limit; nothing was sent.
    #[error("the key cannot be sent to {peer}")]
    Key {
        /// The peer.
        peer: String,
        /// The limit.
        source: OverLimit,
    },
    /// The peer did not accept us as its client, or is not what we took it for.
    #[error("no session at {peer}")]
    Handshake {
        /// The peer.
        peer: String,
        /// Why.
        source: HandshakeError,
    },
    /// The peer did not make a WebSocket of the connection.
    #[cfg(feature = "websocket")]
    #[error("no WebSocket at {peer}")]
    Upgrade {
        /// The peer.
        peer: String,
        /// Why.
        source: crate::UpgradeError,
    },
    /// A peer that came to us did not say who it is.
    #[error("no handshake with {peer}")]
    Introduction {
        /// The peer.
        peer: String,
        /// Why.
        source: IntroductionError,
    },
    /// The peer is not a tracker, or broke the protocol of trackers.
    #[error("no use of the tracker at {peer}")]
    Tracker {
        /// The peer.
        peer: String,
        /// Why.
        source: ConnectionError,
    },
}

/// Ports as an error names them.
struct Ports<'a>(&'a RangeInclusive<u16>);

impl fmt::Display for Ports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.start(), self.0.end()) {
            (first, last) if first == last => write!(f, "port {first}"),
            (first, last) => write!(f, "ports {first} to {last}"),
        }
    }
}

impl TransportError {
    /// Is it that the connection was refused: the host is there, the service is not? If a name has
    /// several addresses: some refused, and this system has no way to the others.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Did a time limit pass?
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// Did the peer close the connection without reading all that we sent?
    pub(crate) fn is_reset(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        let reset = |kind| matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset);
        matches!(self, Self::Io { source, .. } if reset(source.kind()))
    }
}

/// An error and its sources, in one line, for logs and for messages that have no source of their own.
///
/// ```
/// use std::io;
/// use rpc_transport::{Chain, TransportError};
///
/// let error = TransportError::Connect {
///     peer: "10.0.0.7:9190".to_owned(),
///     source: io::Error::other("no route"),
/// };
/// assert_eq!(Chain(&error).to_string(), "cannot connect to 10.0.0.7:9190: no route");
/// ```
#[derive(Debug)]
pub struct Chain<'e>(pub &'e dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

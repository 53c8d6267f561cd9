use std::io;
use std::time::Duration;

use rpc_proto::handshake::HandshakeError;
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
        /// Why the last address that was tried failed; a refusal is named only if all refused.
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
    /// The peer did not accept us as its client, or is not what we took it for.
    #[error("no session at {peer}")]
    Handshake {
        /// The peer.
        peer: String,
        /// Why.
        source: HandshakeError,
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

impl TransportError {
    /// Is it that every address refused the connection: the host is there, the service is not?
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Did a time limit pass?
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}

//! What both serving twins share.

use std::fmt;
use std::io;
use std::time::Duration;

use rpc_proto::codes::{SESSION_LOST_PREFIX, SESSION_TIMEOUT_PREFIX};
use rpc_proto::endpoint::EndpointError;
use rpc_proto::{Dialect, Limits, Packet, ServerEndpoint};
use rpc_transport::{Chain, TransportError};

use crate::Exception;

/// How sessions are served.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServeOptions {
    /// How clients lay out values.
    pub dialect: Dialect,
    /// What a client may make us take.
    pub limits: Limits,
    /// How long a client may be silent in the middle of a request, or refuse to take an answer; default
    /// 10 minutes. Between requests it may be silent for ever.
    pub stall_timeout: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            limits: Limits::default(),
            stall_timeout: Duration::from_secs(600),
        }
    }
}

impl ServeOptions {
    /// Replaces [`ServeOptions::dialect`].
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Replaces [`ServeOptions::limits`].
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Replaces [`ServeOptions::stall_timeout`].
    #[must_use]
    pub fn with_stall_timeout(mut self, limit: Duration) -> Self {
        self.stall_timeout = limit;
        self
    }

    pub(crate) fn endpoint(&self) -> ServerEndpoint {
        ServerEndpoint::new(self.dialect, self.limits)
    }

    /// The packet that tells a client why its session has ended, where nobody serves it any more: it takes
    /// it for the answer to what it asks next, or waits for.
    #[must_use]
    pub fn farewell(&self, why: &Exception) -> Vec<u8> {
        let mut out = Vec::new();
        self.endpoint().answer_exception(why.message(), &mut out);
        out
    }
}

/// Why serving a connection ended before the client said goodbye.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The connection failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The client broke the protocol. It was told how, if it still listens.
    #[error("{peer} broke the protocol")]
    Protocol {
        /// The client.
        peer: String,
        /// How.
        source: EndpointError,
    },
    /// The session's time was up. The client was told, unless that would have come in the middle of an
    /// answer.
    #[error("the session's time of {limit:?} is up")]
    Expired {
        /// The limit.
        limit: Duration,
    },
    /// The session failed in the middle of the data that it was sending.
    #[error("the session failed in the middle of an answer to {peer}: {message}")]
    Interrupted {
        /// The client.
        peer: String,
        /// The session's own words.
        message: String,
    },
}

/// The error of a reader or writer whose client is gone. It ends what was done for that client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ClientGone(String);

impl ClientGone {
    pub(crate) fn told(error: &impl std::fmt::Display) -> std::io::Error {
        std::io::Error::other(Self(error.to_string()))
    }
}

/// What a client is told whose session was lost with what served it, and `how`.
#[must_use]
pub fn session_lost(how: impl fmt::Display) -> Exception {
    Exception::runtime(format!("{SESSION_LOST_PREFIX}{how}"))
}

/// What a client is told whose time is up, in the words of the reference's servers. They print seconds as
/// Python prints a float.
#[must_use]
pub fn session_expired(limit: Duration) -> Exception {
    let seconds = limit.as_secs_f64();
    Exception::runtime(format!(
        "{SESSION_TIMEOUT_PREFIX}Your {seconds:?}s session has expired, \
         try to increase the \"session_timeout\" value."
    ))
}

/// The packets that tell a client that it broke the protocol: an exception, and that the session ends.
pub(crate) fn broken_packets(endpoint: &ServerEndpoint, error: &EndpointError) -> Vec<u8> {
    let mut out = Vec::new();
    endpoint.answer_exception(&Chain(error).to_string(), &mut out);
    // It has no body, so that no limit is in its way.
    let _ = endpoint.answer(&Packet::Shutdown, &mut out);
    out
}

/// A session writes more than it was asked for.
pub(crate) fn too_much(count: usize, left: u64) -> io::Error {
    io::Error::other(format!(
        "{count} bytes of data, where {left} were asked for"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_printed_as_the_reference_prints_them() {
        // Recorded from the server of apache-tvm 0.27.0.post1.
        for (limit, words) in [
            (Duration::from_secs(1), "Your 1.0s session has expired"),
            (Duration::from_millis(500), "Your 0.5s session has expired"),
            (Duration::from_secs(60), "Your 60.0s session has expired"),
        ] {
            let packet = ServeOptions::default().farewell(&session_expired(limit));
            let text = String::from_utf8_lossy(&packet[28..]).into_owned();
            assert_eq!(
                text,
                format!(
                    "RPCSessionTimeoutError: {words}, \
                     try to increase the \"session_timeout\" value."
                )
            );
        }
    }
}

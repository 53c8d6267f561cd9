use std::fmt;
use std::io;
use std::sync::Arc;

use rpc_proto::codes::{SESSION_LOST_PREFIX, SESSION_TIMEOUT_PREFIX};
use rpc_proto::endpoint::{EndpointError, RequestError};
use rpc_proto::handshake::KeyError;
use rpc_proto::{DataType, DecodeError};
use rpc_transport::TransportError;

/// What can go wrong in a session. It can be cloned: when a session ends, each of its waiting calls
/// gets the reason.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The connection failed, or could not be made. The session is over.
    #[error(transparent)]
    Transport(Arc<TransportError>),
    /// The server broke the protocol. The session is over.
    #[error("{peer} broke the protocol")]
    Protocol {
        /// The server.
        peer: String,
        /// How.
        source: EndpointError,
    },
    /// The server ended the session, without a reason.
    #[error("{peer} ended the session")]
    Ended {
        /// The server.
        peer: String,
    },
    /// The server ended the session, since its time was up.
    #[error("the session's time is up: {message}")]
    TimedOut {
        /// What the server says.
        message: String,
    },
    /// The server has lost what served the session: a function crashed its process, for example.
    #[error("the server lost the session: {message}")]
    Lost {
        /// What the server says.
        message: String,
    },
    /// The session was closed at this end.
    #[error("the session is closed")]
    Closed,
    /// The server's answer cannot be understood. The session goes on.
    #[error("the server's answer cannot be understood")]
    Answer(#[from] DecodeError),
    /// The server's answer to the opening of the session cannot be understood: values are laid out in
    /// another way than [`SessionOptions::dialect`](crate::SessionOptions::dialect) says.
    #[error(
        "the server's answer to the opening of the session cannot be understood: \
         it may speak another dialect (that of TVM before 0.22)"
    )]
    Opening(#[source] DecodeError),
    /// The server failed to do what was asked. The session goes on.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The key of the server cannot be sent.
    #[error("the key cannot be sent")]
    Key(#[from] KeyError),
    /// The request cannot be sent. Nothing was sent.
    #[error("the request cannot be sent")]
    Request(#[from] RequestError),
    /// The server has no function of that name.
    #[error("the server has no function {name:?}{hint}")]
    NoFunction {
        /// The name.
        name: String,
        /// What that means, if there is something to say.
        hint: &'static str,
    },
    /// The module has no function of that name, and neither have those that it imports.
    #[error("the module has no function {name:?}")]
    NoModuleFunction {
        /// The name.
        name: String,
    },
    /// An argument belongs to another session. Nothing was sent.
    #[error(
        "{argument} belongs to another session; only what this session holds can be passed to it"
    )]
    ForeignHandle {
        /// The argument, in words.
        argument: String,
    },
    /// A result is of another type than asked for.
    #[error("expected {expected}, the function returned {found}")]
    WrongType {
        /// What was asked for.
        expected: &'static str,
        /// What came.
        found: &'static str,
    },
    /// Data and tensor do not fit each other. Nothing was sent.
    #[error("the tensor holds {tensor}, but the data is {data}")]
    Mismatch {
        /// What the tensor holds, in words.
        tensor: String,
        /// What the data is, in words.
        data: String,
    },
    /// A shape or an offset that no tensor can have. Nothing was sent.
    #[error("{0}")]
    BadTensor(String),
    /// A value that is no option of this call. Nothing was sent.
    #[error("{0}")]
    BadOption(String),
    /// At a hop: the client in front is gone in the middle of what was passed on for it. The session is
    /// over, since the server must not take a part for the whole.
    #[error("the client in front is gone in the middle of its data")]
    ClientGone {
        /// How.
        source: Arc<io::Error>,
    },
    /// A file at this end failed.
    #[error("{path}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: Arc<io::Error>,
    },
}

impl SessionError {
    /// Is the session over, so that a new one is needed?
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::Transport(_)
                | Self::Protocol { .. }
                | Self::Ended { .. }
                | Self::TimedOut { .. }
                | Self::Lost { .. }
                | Self::Closed
                | Self::ClientGone { .. }
        )
    }

    /// Did the server end the session at its time limit?
    #[must_use]
    pub fn is_session_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// Is it what the server said before it closed the connection?
    pub(crate) fn is_farewell(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Lost { .. })
    }

    /// Is the connection gone, so that the server may have said before why?
    pub(crate) fn is_lost_connection(&self) -> bool {
        matches!(self, Self::Transport(error) if !error.is_timeout())
    }

    /// The failure that the server reports, if it is one.
    #[must_use]
    pub fn remote(&self) -> Option<&RemoteError> {
        match self {
            Self::Remote(error) => Some(error),
            _ => None,
        }
    }

    /// What the text of an exception means.
    pub(crate) fn from_exception(text: &str) -> Self {
        let farewell = |prefix| {
            let (before, message) = text.split_once(prefix)?;
            // A hop in between puts its own words before the prefix.
            let starts = before.is_empty() || before.ends_with('\n');
            starts.then(|| message.to_owned())
        };
        if let Some(message) = farewell(SESSION_TIMEOUT_PREFIX) {
            return Self::TimedOut { message };
        }
        if let Some(message) = farewell(SESSION_LOST_PREFIX) {
            return Self::Lost { message };
        }
        Self::Remote(RemoteError::parse(text))
    }

    pub(crate) fn mismatch(dtype: DataType, elements: u64, data: impl fmt::Display) -> Self {
        Self::Mismatch {
            tensor: format!("{elements} elements of {dtype}"),
            data: data.to_string(),
        }
    }
}

impl From<TransportError> for SessionError {
    fn from(error: TransportError) -> Self {
        Self::Transport(Arc::new(error))
    }
}

/// A failure that the server reports: an exception, as far as the server tells of it.
///
/// Current servers send the message alone; older ones also kind and traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteError {
    kind: Option<String>,
    message: String,
    traceback: Option<String>,
    text: String,
}

impl RemoteError {
    /// Takes the text of an exception apart.
    pub(crate) fn parse(text: &str) -> Self {
        let (body, traceback) = match text.split_once("\nStack trace:\n") {
            Some((body, traceback)) => (body, Some(traceback.trim_end().to_owned())),
            None => (text, None),
        };
        let (kind, message) = match kind_at(body) {
            Some((start, end)) => (Some(body[start..end].to_owned()), &body[end + 2..]),
            None => (None, body),
        };
        Self {
            kind,
            message: message.trim_end().to_owned(),
            traceback,
            text: text.to_owned(),
        }
    }

    /// The kind, for example `ValueError`.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// The message, without kind and traceback; may be empty.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The traceback on the server.
    #[must_use]
    pub fn traceback(&self) -> Option<&str> {
        self.traceback.as_deref()
    }

    /// All that the server sent.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Where in the first line a kind stands: a word that ends in `Error`, before a colon and a blank. Time
/// and place may stand before it.
fn kind_at(text: &str) -> Option<(usize, usize)> {
    let line = text.lines().next()?;
    let end = line.find("Error: ")? + "Error".len();
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let start = line[..end].trim_end_matches(word).len();
    let place = &line[..start];
    (place.is_empty() || place.ends_with(": ")).then_some((start, end))
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server reports ")?;
        match (&self.kind, self.message.as_str()) {
            (Some(kind), message) => write!(f, "{kind}: {message}"),
            (None, "") => f.write_str("an exception without a message"),
            (None, message) => write!(f, "an exception: {message}"),
        }
    }
}

impl std::error::Error for RemoteError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_servers_send_the_message_alone() {
        let error = RemoteError::parse("abc");
        assert_eq!(
            (error.kind(), error.message(), error.traceback()),
            (None, "abc", None)
        );
        let error = RemoteError::parse("Check failed: (cond) is false: text");
        assert_eq!(
            (error.kind(), error.message()),
            (None, "Check failed: (cond) is false: text")
        );
    }

    #[test]
    fn older_servers_send_kind_and_traceback() {
        let text = "[10:11:12] /src/x.cc:7: InternalError: Check failed: x\nStack trace:\n  0: f\n  1: g\n";
        let error = RemoteError::parse(text);
        assert_eq!(error.kind(), Some("InternalError"));
        assert_eq!(error.message(), "Check failed: x");
        assert_eq!(error.traceback(), Some("  0: f\n  1: g"));
        assert_eq!(error.text(), text);
    }

    #[test]
    fn no_text_is_too_odd() {
        for text in [
            "\u{201c}ValueError: x",
            "\u{2026}Error: ",
            "é: ValueError: x",
            "Error: ",
        ] {
            assert_eq!(RemoteError::parse(text).text(), text);
        }
        let error = RemoteError::parse("é: ValueError: x");
        assert_eq!((error.kind(), error.message()), (Some("ValueError"), "x"));
    }

    #[test]
    fn an_empty_text_is_still_a_failure() {
        let error = RemoteError::parse("");
        assert_eq!(
            error.to_string(),
            "the server reports an exception without a message"
        );
    }

    #[test]
    fn a_time_limit_is_told_apart_also_behind_a_hop() {
        let text = "RPCSessionTimeoutError: Your 1.0s session has expired";
        assert!(SessionError::from_exception(text).is_session_timeout());
        let hop = format!("RPCError: Error caught from RPC call:\n{text}");
        assert!(SessionError::from_exception(&hop).is_session_timeout());
        assert!(
            !SessionError::from_exception("no RPCSessionTimeoutError: here").is_session_timeout()
        );
    }

    #[test]
    fn a_lost_session_is_told_apart_also_behind_a_hop() {
        let text = "RPCSessionLostError: its process ended";
        let hop = format!("RPCError: Error caught from RPC call:\n{text}");
        for text in [text, &hop] {
            let error = SessionError::from_exception(text);
            assert!(error.is_fatal() && !error.is_session_timeout());
            assert_eq!(
                error.to_string(),
                "the server lost the session: its process ended"
            );
        }
        let other = SessionError::from_exception("no RPCSessionLostError: here");
        assert!(other.remote().is_some() && !other.is_fatal());
    }
}

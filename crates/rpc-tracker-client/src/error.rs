use std::error::Error;
use std::fmt;
use std::time::Duration;

use rpc_proto::tracker::{ConnectionError, ReplyError};
use rpc_transport::TransportError;

/// Why the tracker, or a session on one of its devices, could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackerClientError {
    /// The tracker cannot be reached, is no tracker, broke the protocol, or did not answer in time.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The tracker refused, or answered something else than what was asked for.
    #[error("no success at {tracker}")]
    Reply {
        /// The tracker's address.
        tracker: String,
        /// What it answered.
        source: ReplyError,
    },
    /// The tracker granted a device, but no session was made there.
    #[error("no session at {server} with match key {match_key:?}")]
    Connect {
        /// The server's address.
        server: String,
        /// The match key that the tracker gave for it.
        match_key: String,
        /// What `Connect` failed with.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The tracker had no device for us in time.
    #[error("no device of key {key:?} within {allowed:?}")]
    WaitTimedOut {
        /// The key that was requested.
        key: String,
        /// [`RequestOptions::with_wait_timeout`](crate::RequestOptions::with_wait_timeout).
        allowed: Duration,
        /// What the last try before that failed with, if there was one.
        source: Option<Box<TrackerClientError>>,
    },
    /// All tries of a request failed, or none was allowed.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// What was run on a session failed when the time of the session was up.
    #[error("the session on a device of key {key:?} timed out: its limit was {limit:?}")]
    SessionTimedOut {
        /// The key that was requested.
        key: String,
        /// The session timeout.
        limit: Duration,
        /// What the run failed with.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What was run on a session failed, and so did all that was tried before.
    #[error("cannot run on a device of key {key:?}, gave up after {}", tries(*.runs))]
    Run {
        /// The key that was requested.
        key: String,
        /// How many runs were tried.
        runs: u32,
        /// What the last one failed with.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// What a retry loop has to do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Retry {
    /// Give up.
    Never,
    /// Try again; the connection to the tracker is in order.
    SameConnection,
    /// Try again on a new connection to the tracker; the old one is of no further use.
    NewConnection,
}

impl TrackerClientError {
    /// What a retry loop has to do.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Transport(TransportError::Tracker {
                source: ConnectionError::TooLarge(_),
                ..
            }) => Retry::Never,
            Self::Transport(_) => Retry::NewConnection,
            Self::Reply {
                source: ReplyError::Refused { .. },
                ..
            } => Retry::SameConnection,
            // Its answers may be out of step with our requests.
            Self::Reply { .. } => Retry::NewConnection,
            Self::Connect { .. } | Self::Run { .. } => Retry::SameConnection,
            Self::Exhausted(exhausted) => exhausted.last().map_or(Retry::Never, Self::retry),
            Self::WaitTimedOut { .. } | Self::SessionTimedOut { .. } => Retry::Never,
        }
    }

    /// May trying again help?
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retry() != Retry::Never
    }

    /// Did a time limit pass: that of the queue, of the session, or of connecting to the tracker or of
    /// its answer? What `Connect` or a run failed with is not looked into: its type is known to those
    /// who wrote it, and it is the source of [`TrackerClientError::Connect`] and
    /// [`TrackerClientError::Run`].
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Transport(error) => error.is_timeout(),
            Self::WaitTimedOut { .. } | Self::SessionTimedOut { .. } => true,
            Self::Exhausted(exhausted) => exhausted.last().is_some_and(Self::is_timeout),
            Self::Reply { .. } | Self::Connect { .. } | Self::Run { .. } => false,
        }
    }

    /// Is what answers there something else than a tracker?
    #[must_use]
    pub fn is_not_a_tracker(&self) -> bool {
        match self {
            Self::Transport(TransportError::Tracker { source, .. }) => matches!(
                source,
                ConnectionError::NotATracker { .. } | ConnectionError::NoGreeting { .. }
            ),
            Self::Exhausted(exhausted) => exhausted.last().is_some_and(Self::is_not_a_tracker),
            _ => false,
        }
    }
}

/// The end of a request whose tries all failed, or that was allowed none.
///
/// Its text names the last error, so that its source is what that one came from.
#[derive(Debug)]
pub struct Exhausted {
    key: String,
    tries: u32,
    failures: Vec<TrackerClientError>,
}

impl Exhausted {
    /// The most failures that are kept.
    pub const KEPT: usize = 32;

    /// The key that was requested.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How many tries there were.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// What the tries failed with, oldest first; of more than [`Exhausted::KEPT`] the last ones.
    #[must_use]
    pub fn failures(&self) -> &[TrackerClientError] {
        &self.failures
    }

    /// What the last try failed with; none if none was allowed.
    #[must_use]
    pub fn last(&self) -> Option<&TrackerClientError> {
        self.failures.last()
    }
}

#[cfg(any(feature = "sync", feature = "async"))]
impl Exhausted {
    pub(crate) fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            tries: 0,
            failures: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, failure: TrackerClientError) {
        self.tries = self.tries.saturating_add(1);
        if self.failures.len() == Self::KEPT {
            self.failures.remove(0);
        }
        self.failures.push(failure);
    }

    pub(crate) fn into_last(mut self) -> Option<TrackerClientError> {
        self.failures.pop()
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, tries: n, .. } = self;
        write!(
            f,
            "no session on a device of key {key:?} after {}",
            tries(*n)
        )?;
        match self.last() {
            Some(last) => write!(f, "; the last one: {last}"),
            None => f.write_str(": none was allowed"),
        }
    }
}

impl Error for Exhausted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last().and_then(Error::source)
    }
}

fn tries(count: u32) -> String {
    match count {
        1 => "1 try".to_owned(),
        _ => format!("{count} tries"),
    }
}

#[cfg(test)]
#[cfg(any(feature = "sync", feature = "async"))]
mod tests;

use std::time::Duration;

use rpc_proto::tracker::Priority;
use rpc_transport::ConnectOptions;

/// How a client talks to its tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackerClientOptions {
    /// Opening connections to the tracker, and their limits.
    pub connect: ConnectOptions,
    /// What to do while the tracker refuses connections, as it does when it is being restarted;
    /// `None` to fail at once.
    pub connect_retry: Option<ConnectRetry>,
    /// The time for each answer but that to a request for a device; default 10 s.
    pub answer_timeout: Duration,
}

/// Patience with a tracker that refuses connections. Any other failure to connect counts at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectRetry {
    /// From one attempt to the next; default 5 s.
    pub interval: Duration,
    /// From the first attempt to the last; default 60 s.
    pub total: Duration,
}

impl Default for TrackerClientOptions {
    fn default() -> Self {
        Self {
            connect: ConnectOptions::default(),
            connect_retry: Some(ConnectRetry::default()),
            answer_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for ConnectRetry {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            total: Duration::from_secs(60),
        }
    }
}

impl TrackerClientOptions {
    /// Replaces [`TrackerClientOptions::connect`].
    #[must_use]
    pub fn with_connect(mut self, options: ConnectOptions) -> Self {
        self.connect = options;
        self
    }

    /// Replaces [`TrackerClientOptions::connect_retry`].
    #[must_use]
    pub fn with_connect_retry(mut self, retry: Option<ConnectRetry>) -> Self {
        self.connect_retry = retry;
        self
    }

    /// Replaces [`TrackerClientOptions::answer_timeout`].
    #[must_use]
    pub fn with_answer_timeout(mut self, limit: Duration) -> Self {
        self.answer_timeout = limit;
        self
    }
}

/// Which device a session is requested on, and how hard to try.
///
/// ```
/// use std::time::Duration;
/// use rpc_tracker_client::RequestOptions;
///
/// let options = RequestOptions::new("rasp4b")
///     .with_priority(10)
///     .with_session_timeout(Duration::from_secs(60))
///     .with_wait_timeout(Duration::from_secs(600));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOptions {
    pub(crate) key: String,
    pub(crate) priority: Priority,
    pub(crate) session_timeout: Option<Duration>,
    pub(crate) max_tries: u32,
    pub(crate) max_runs: u32,
    pub(crate) wait_timeout: Option<Duration>,
    pub(crate) backoff: Option<Backoff>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl RequestOptions {
    /// Any device of this key: priority 1, no session timeout, at most 5 tries, for ever in the queue.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            priority: Priority::default(),
            session_timeout: None,
            max_tries: 5,
            max_runs: 2,
            wait_timeout: None,
            backoff: Some(Backoff {
                first: Duration::from_millis(50),
                longest: Duration::from_secs(2),
            }),
        }
    }

    /// Who is served first: the highest number.
    #[must_use]
    pub fn with_priority(mut self, priority: impl Into<Priority>) -> Self {
        self.priority = priority.into();
        self
    }

    /// How long the server lets the session live, from when it starts there: waiting in the queue is
    /// not charged to it. Zero, the default, is no limit.
    ///
    /// C++ servers of the reference end on a fraction of a second: give them whole seconds.
    #[must_use]
    pub fn with_session_timeout(mut self, limit: Duration) -> Self {
        self.session_timeout = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// How many devices are asked for before giving up; with 0, the request fails at once. Default 5.
    ///
    /// A connection to the tracker that was kept from an earlier request and turns out to be dead is
    /// one try as well, without a pause behind it. The others that were kept are then closed unused, so
    /// that a tracker that was restarted takes one try and not one for each of them.
    #[must_use]
    pub fn with_max_tries(mut self, count: u32) -> Self {
        self.max_tries = count;
        self
    }

    /// How many times `request_and_run` starts; default 2. Each one requests a session with
    /// [`RequestOptions::with_max_tries`] tries of its own.
    #[must_use]
    pub fn with_max_runs(mut self, count: u32) -> Self {
        self.max_runs = count;
        self
    }

    /// The time for the tracker to grant a device, from the start of the request over all tries;
    /// for ever by default. When it passes, the connection is closed, so that the tracker grants
    /// nothing to nobody. It starts no try any more, but does not cut short one that already
    /// connects: that has its own limits, in [`ConnectOptions`].
    #[must_use]
    pub fn with_wait_timeout(mut self, limit: Duration) -> Self {
        self.wait_timeout = Some(limit);
        self
    }

    /// The pause after the first failed try, doubled after each further one up to `longest`; up to as
    /// much again is added at random, so that clients which failed together do not come back together.
    /// By default 50 ms and 2 s.
    #[must_use]
    pub fn with_backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = Some(Backoff { first, longest });
        self
    }

    /// Tries again without a pause. Each try may claim another device of the pool, which the others
    /// then miss until its server offers it again.
    #[must_use]
    pub fn without_backoff(mut self) -> Self {
        self.backoff = None;
        self
    }

    /// The key that is requested.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// See [`RequestOptions::with_priority`].
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// See [`RequestOptions::with_session_timeout`]; `None` is no limit.
    #[must_use]
    pub fn session_timeout(&self) -> Option<Duration> {
        self.session_timeout
    }

    /// See [`RequestOptions::with_max_tries`].
    #[must_use]
    pub fn max_tries(&self) -> u32 {
        self.max_tries
    }

    /// See [`RequestOptions::with_max_runs`].
    #[must_use]
    pub fn max_runs(&self) -> u32 {
        self.max_runs
    }

    /// See [`RequestOptions::with_wait_timeout`]; `None` is for ever.
    #[must_use]
    pub fn wait_timeout(&self) -> Option<Duration> {
        self.wait_timeout
    }

    /// See [`RequestOptions::with_backoff`]: the first pause and the longest one.
    #[must_use]
    pub fn backoff(&self) -> Option<(Duration, Duration)> {
        self.backoff.map(|backoff| (backoff.first, backoff.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_can_be_asked_for() {
        let second = Duration::from_secs;
        let options = RequestOptions::new("k");
        assert_eq!(options.key(), "k");
        assert_eq!(options.priority(), Priority::from(1));
        assert_eq!(options.session_timeout(), None);
        assert_eq!((options.max_tries(), options.max_runs()), (5, 2));
        assert_eq!(options.wait_timeout(), None);
        let default = (Duration::from_millis(50), second(2));
        assert_eq!(options.backoff(), Some(default));

        let options = options
            .with_priority(-7)
            .with_session_timeout(second(60))
            .with_max_tries(3)
            .with_max_runs(4)
            .with_wait_timeout(second(600))
            .with_backoff(second(5), second(6));
        assert_eq!(options.priority(), Priority::from(-7));
        assert_eq!(options.session_timeout(), Some(second(60)));
        assert_eq!((options.max_tries(), options.max_runs()), (3, 4));
        assert_eq!(options.wait_timeout(), Some(second(600)));
        assert_eq!(options.backoff(), Some((second(5), second(6))));
        assert_eq!(options.without_backoff().backoff(), None);
    }

    #[test]
    fn options_equal_themselves() {
        fn assert_eq_type<T: Eq>(_: &T) {}
        assert_eq_type(&RequestOptions::new("k"));
    }
}

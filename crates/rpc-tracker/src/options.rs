use std::fmt;
use std::time::Duration;

use rpc_proto::Limits;

/// What a tracker lets its peers do.
///
/// ```
/// use std::time::Duration;
/// use rpc_tracker::TrackerOptions;
///
/// let options = TrackerOptions::default()
///     .with_stop_key("correct horse")
///     .with_message_timeout(Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackerOptions {
    /// Bytes of a frame ([`Limits::tracker_frame`], else the connection is closed), of an answer
    /// ([`Limits::tracker_reply`], else it is a refusal), and of each key, match key and address
    /// ([`Limits::key`], else the request is refused).
    pub limits: Limits,
    /// Connections at one time; one more is closed at once. Default 65,536. An idle one takes less
    /// than 2 KiB, and a file descriptor, of which a process has a limit of its own.
    pub connections: usize,
    /// Requests that one connection may have waiting; one more is refused. Default 1024; clients have
    /// one.
    pub pending_requests: usize,
    /// Devices that one connection may have on offer; one more is refused. Default 4096; a server has
    /// one, a proxy one for each server behind it.
    pub free_devices: usize,
    /// Bytes that a peer may leave unread; with more than that, the next answer to it closes its
    /// connection. Default 4 MiB, which is a summary of 50,000 servers. What the system's buffers take
    /// does not count, and one answer may be larger.
    pub unread_output: usize,
    /// From accepting a connection to the peer's greeting, and from the first byte of a frame to its
    /// last, else the connection is closed; default 10 s. Between frames a peer may be silent for ever.
    pub message_timeout: Duration,
    /// A connection that is idle for this long is probed, so that a peer that vanished is noticed and
    /// its devices are taken back; default 30 s, `None` never. Whole seconds from 1 to 32767; what is
    /// outside is brought inside.
    pub keep_alive: Option<Duration>,
    /// Where clients on other machines find the servers on this one, which come to the tracker over
    /// loopback. By default, at the address at which the client came to the tracker: give this if
    /// clients come through a translation of addresses or a tunnel.
    pub public_host: Option<String>,
    pub(crate) stop_key: Option<StopKey>,
}

/// Who knows it may end the tracker, so that it does not appear in logs.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StopKey(String);

impl StopKey {
    pub(crate) fn is(&self, key: &str) -> bool {
        self.0 == key
    }
}

impl fmt::Debug for StopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopKey(…)")
    }
}

impl Default for TrackerOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            connections: 65_536,
            pending_requests: 1024,
            free_devices: 4096,
            unread_output: 4 << 20,
            message_timeout: Duration::from_secs(10),
            keep_alive: Some(Duration::from_secs(30)),
            public_host: None,
            stop_key: None,
        }
    }
}

impl TrackerOptions {
    /// Replaces [`TrackerOptions::limits`].
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Replaces [`TrackerOptions::connections`].
    #[must_use]
    pub fn with_connections(mut self, count: usize) -> Self {
        self.connections = count;
        self
    }

    /// Replaces [`TrackerOptions::pending_requests`].
    #[must_use]
    pub fn with_pending_requests(mut self, count: usize) -> Self {
        self.pending_requests = count;
        self
    }

    /// Replaces [`TrackerOptions::free_devices`].
    #[must_use]
    pub fn with_free_devices(mut self, count: usize) -> Self {
        self.free_devices = count;
        self
    }

    /// Replaces [`TrackerOptions::unread_output`] (bytes).
    #[must_use]
    pub fn with_unread_output(mut self, bytes: usize) -> Self {
        self.unread_output = bytes;
        self
    }

    /// Replaces [`TrackerOptions::message_timeout`].
    #[must_use]
    pub fn with_message_timeout(mut self, limit: Duration) -> Self {
        self.message_timeout = limit;
        self
    }

    /// Replaces [`TrackerOptions::keep_alive`].
    #[must_use]
    pub fn with_keep_alive(mut self, idle: Option<Duration>) -> Self {
        self.keep_alive = idle;
        self
    }

    /// Replaces [`TrackerOptions::public_host`].
    #[must_use]
    pub fn with_public_host(mut self, host: impl Into<String>) -> Self {
        self.public_host = Some(host.into());
        self
    }

    /// The secret with which a peer may end the tracker. Without one, or with an empty one, no peer
    /// may.
    #[must_use]
    pub fn with_stop_key(mut self, key: impl Into<String>) -> Self {
        self.stop_key = Some(key.into()).filter(|key| !key.is_empty()).map(StopKey);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_key_is_not_printed() {
        let options = TrackerOptions::default().with_stop_key("secret");
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[test]
    fn an_empty_stop_key_is_none() {
        let options = TrackerOptions::default().with_stop_key("");
        assert_eq!(options, TrackerOptions::default());
    }
}

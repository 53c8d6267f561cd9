use std::time::Duration;

use rpc_proto::Limits;

/// How connections are made and what a peer may do to them. All times are limits, after which the
/// step fails with [`crate::TransportError::TimedOut`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Opening a connection, over all addresses of a name together; default 10 s.
    pub connect_timeout: Duration,
    /// From the first byte to the end of a handshake; default 10 s. A server of the reference that is
    /// busy with another session answers only when that one ends.
    pub handshake_timeout: Duration,
    /// A connection that is idle for this long is probed, so that a peer that vanished is noticed;
    /// default 30 s, `None` never. Whole seconds from 1 to 32767; what is outside is brought inside.
    pub keep_alive: Option<Duration>,
    /// What a peer may make us take.
    pub limits: Limits,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            keep_alive: Some(Duration::from_secs(30)),
            limits: Limits::default(),
        }
    }
}

impl ConnectOptions {
    /// Replaces [`ConnectOptions::connect_timeout`].
    #[must_use]
    pub fn with_connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Replaces [`ConnectOptions::handshake_timeout`].
    #[must_use]
    pub fn with_handshake_timeout(mut self, limit: Duration) -> Self {
        self.handshake_timeout = limit;
        self
    }

    /// Replaces [`ConnectOptions::keep_alive`].
    #[must_use]
    pub fn with_keep_alive(mut self, idle: Option<Duration>) -> Self {
        self.keep_alive = idle;
        self
    }

    /// Replaces [`ConnectOptions::limits`].
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

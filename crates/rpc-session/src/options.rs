use std::time::Duration;

use rpc_proto::Dialect;
use rpc_transport::ConnectOptions;

use crate::SessionConstructor;

/// How a session is opened, and how long its peer may be silent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// How the connection is made, and what the peer may make us take.
    pub connect: ConnectOptions,
    /// How long the session may last; the server ends it then. Default `None`, for ever.
    ///
    /// A session that is requested from a tracker has the limit of the request instead.
    pub session_timeout: Option<Duration>,
    /// What the server is asked to make of the session; default `None`, the server itself.
    pub constructor: Option<SessionConstructor>,
    /// From the end of the handshake until the session is constructed; default 60 s.
    pub init_timeout: Duration,
    /// How long a reply may take, and how long the peer may refuse to take what is sent; then the
    /// session is given up. Of a large result (a tensor, a file) it is how long the peer may be silent.
    /// Default 10 minutes, `None` for ever. A call that computes for longer needs more.
    pub reply_timeout: Option<Duration>,
    /// How the server lays out values.
    pub dialect: Dialect,
    /// Log each request at level INFO instead of TRACE; default no.
    pub log_requests: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            connect: ConnectOptions::default(),
            session_timeout: None,
            constructor: None,
            init_timeout: Duration::from_secs(60),
            reply_timeout: Some(Duration::from_secs(600)),
            dialect: Dialect::default(),
            log_requests: false,
        }
    }
}

impl SessionOptions {
    /// Replaces [`SessionOptions::connect`].
    #[must_use]
    pub fn with_connect(mut self, options: ConnectOptions) -> Self {
        self.connect = options;
        self
    }

    /// Replaces [`SessionOptions::session_timeout`]; zero is no limit.
    #[must_use]
    pub fn with_session_timeout(mut self, limit: Duration) -> Self {
        self.session_timeout = Some(limit).filter(|limit| !limit.is_zero());
        self
    }

    /// Replaces [`SessionOptions::constructor`].
    #[must_use]
    pub fn with_constructor(mut self, constructor: SessionConstructor) -> Self {
        self.constructor = Some(constructor);
        self
    }

    /// Replaces [`SessionOptions::init_timeout`].
    #[must_use]
    pub fn with_init_timeout(mut self, limit: Duration) -> Self {
        self.init_timeout = limit;
        self
    }

    /// Replaces [`SessionOptions::reply_timeout`].
    #[must_use]
    pub fn with_reply_timeout(mut self, limit: Option<Duration>) -> Self {
        self.reply_timeout = limit;
        self
    }

    /// Replaces [`SessionOptions::dialect`].
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Replaces [`SessionOptions::log_requests`].
    #[must_use]
    pub fn with_log_requests(mut self, log: bool) -> Self {
        self.log_requests = log;
        self
    }
}

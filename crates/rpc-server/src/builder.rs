use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use rpc_proto::Limits;
use rpc_session::ServeOptions;
use rpc_transport::Address;
use tokio::sync::Semaphore;

use crate::{Isolation, Server, ServerError};

/// What is done again and again has this much time in between at least.
const SHORTEST: Duration = Duration::from_millis(10);

/// What a server is, before it listens.
#[derive(Debug, Clone)]
pub struct ServerBuilder {
    pub(crate) key: String,
    pub(crate) isolation: Isolation,
    pub(crate) tracker: Option<Address>,
    pub(crate) custom_addr: Option<String>,
    pub(crate) slots: usize,
    pub(crate) waiting: usize,
    pub(crate) handshakes: usize,
    pub(crate) work_dir: Option<PathBuf>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) patience: Duration,
    pub(crate) longest_pause: Duration,
    pub(crate) serve: ServeOptions,
    pub(crate) limits: Limits,
}

impl ServerBuilder {
    /// A server of this key (the kind of its device; it may be empty, and has no white space), whose
    /// sessions run there.
    #[must_use]
    pub fn new(key: impl Into<String>, isolation: Isolation) -> Self {
        Self {
            key: key.into(),
            isolation,
            tracker: None,
            custom_addr: None,
            slots: 1,
            waiting: 64,
            handshakes: 256,
            work_dir: None,
            handshake_timeout: Duration::from_secs(5),
            poll_interval: Duration::from_secs(2),
            patience: Duration::from_secs(6),
            longest_pause: Duration::from_secs(60),
            serve: ServeOptions::default(),
            limits: Limits::default(),
        }
    }

    /// Offers the device at this tracker; clients then need a match key that the tracker gave them.
    /// Without a tracker they name the server's own key.
    #[must_use]
    pub fn with_tracker(mut self, tracker: Address) -> Self {
        self.tracker = Some(tracker);
        self
    }

    /// The host that the tracker sends clients to; default the one that it sees this server at.
    #[must_use]
    pub fn with_custom_addr(mut self, host: impl Into<String>) -> Self {
        self.custom_addr = Some(host.into());
        self
    }

    /// Sessions at once, at least 1; default 1.
    #[must_use]
    pub fn with_slots(mut self, sessions: usize) -> Self {
        self.slots = sessions.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Clients that may wait for a slot of a server without a tracker, in the order in which they came;
    /// default 64. Further ones are turned away.
    #[must_use]
    pub fn with_waiting(mut self, clients: usize) -> Self {
        self.waiting = clients;
        self
    }

    /// Handshakes at once, at least 1; default 256. Further connections wait to be accepted.
    #[must_use]
    pub fn with_handshakes(mut self, connections: usize) -> Self {
        self.handshakes = connections.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// The folder in which each session gets a directory of its own; default the system's for temporary
    /// files.
    #[must_use]
    pub fn with_work_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.work_dir = Some(folder.into());
        self
    }

    /// How long a handshake may take; default 5 s.
    #[must_use]
    pub fn with_handshake_timeout(mut self, limit: Duration) -> Self {
        self.handshake_timeout = limit;
        self
    }

    /// From one look at the tracker to the next; default 2 s.
    #[must_use]
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(SHORTEST);
        self
    }

    /// How long a client may take from its grant to its coming; then the device is offered again, under
    /// a new match key. Default 6 s, at the next look at the tracker.
    #[must_use]
    pub fn with_patience(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// The longest pause between two attempts to reach the tracker; default 60 s. The first is 1 s, or
    /// as long as this if that is shorter.
    #[must_use]
    pub fn with_longest_pause(mut self, limit: Duration) -> Self {
        self.longest_pause = limit.max(SHORTEST);
        self
    }

    /// How sessions on threads are served. A worker process has options of its own.
    #[must_use]
    pub fn with_serve(mut self, options: ServeOptions) -> Self {
        self.serve = options;
        self
    }

    /// What a client may make us take in its handshake.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Listens on the first port of `ports` that is free; see [`rpc_transport::listen`]. Clients are
    /// served, and the device is offered, when [`Server::serve`] runs.
    ///
    /// # Errors
    /// The key has white space, no port is free, or the folder for work directories cannot be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn bind(self, host: &str, ports: RangeInclusive<u16>) -> Result<Server, ServerError> {
        Server::bind(self, host, ports)
    }
}

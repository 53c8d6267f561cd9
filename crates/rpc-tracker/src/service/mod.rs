//! The service around the queues: a listener, and a task for each connection.
//!
//! The state is behind one lock, which a task takes for one request, some microseconds. Each connection
//! has an outbox, which others fill and only its own task empties, so that no peer waits for another
//! one to read.

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use rpc_proto::tracker::Summary;
use rpc_transport::TransportError;
use rpc_transport::asynchronous::Acceptor;
use tokio::net::TcpStream;
use tokio::task::{JoinSet, spawn_blocking};
use tracing::{Instrument, error, info, info_span, warn};

use self::shared::Shared;
use crate::{Peer, TrackerOptions};

mod connection;
mod outbox;
mod shared;

/// A tracker that listens, and serves once it is told to.
#[derive(Debug)]
pub struct Tracker {
    acceptor: Acceptor,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
}

/// Looks at a tracker that serves, and ends it. Clones are of the same tracker.
#[derive(Debug, Clone)]
pub struct TrackerHandle {
    shared: Arc<Shared>,
}

impl Tracker {
    /// Listens on the first port of `ports` that is free, see [`rpc_transport::listen`]; port 0 lets
    /// the system choose.
    ///
    /// # Errors
    /// The host is not of this machine, or no port of the range is free.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn bind(
        host: &str,
        ports: RangeInclusive<u16>,
        options: TrackerOptions,
    ) -> Result<Self, TransportError> {
        let failed = |source| TransportError::Listen {
            host: host.to_owned(),
            ports: ports.clone(),
            source,
        };
        let (name, range) = (host.to_owned(), ports.clone());
        // To look up a name may take seconds.
        let listening = spawn_blocking(move || rpc_transport::listen(&name, range)).await;
        let listener = listening.map_err(|error| failed(io::Error::other(error)))??;
        Self::from_listener(listener, options).map_err(failed)
    }

    /// Serves on a listener that was opened elsewhere.
    ///
    /// # Errors
    /// What is given is not a listener, or tokio cannot take it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn from_listener(
        listener: std::net::TcpListener,
        options: TrackerOptions,
    ) -> io::Result<Self> {
        let acceptor = Acceptor::new(listener)?;
        Ok(Self {
            local_addr: acceptor.local_addr()?,
            acceptor,
            shared: Arc::new(Shared::new(options)),
        })
    }

    /// Where it listens, with the port that was found.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// A handle, which stays when the tracker serves.
    #[must_use]
    pub fn handle(&self) -> TrackerHandle {
        TrackerHandle {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Serves until [`TrackerHandle::stop`], or until a peer ends it with the stop key. All connections
    /// are then closed, as they are when this future is dropped.
    pub async fn serve(mut self) {
        let mut tasks = JoinSet::new();
        let mut is_full = false;
        loop {
            tokio::select! {
                biased;
                () = self.shared.stop.notified() => break,
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        error!(%error, "a connection failed inside of the tracker");
                    }
                }
                (stream, remote) = self.acceptor.accept() => {
                    let was_full = is_full;
                    is_full = tasks.len() >= self.shared.options.connections;
                    if !is_full {
                        self.start(&mut tasks, stream, remote);
                    } else if !was_full {
                        warn!(connections = tasks.len(), "full: further ones are closed");
                    }
                }
            }
        }
        // New peers are refused before those that are here lose the tracker.
        drop(self.acceptor);
        tasks.shutdown().await;
        info!("the tracker has ended");
    }

    fn start(&self, tasks: &mut JoinSet<()>, stream: TcpStream, remote: SocketAddr) {
        // The peer may be gone already.
        let Ok(local) = stream.local_addr() else {
            return;
        };
        let span = info_span!("connection", peer = %remote, key = tracing::field::Empty);
        let served = connection::serve(stream, Peer { remote, local }, Arc::clone(&self.shared));
        tasks.spawn(served.instrument(span));
    }
}

impl TrackerHandle {
    /// Ends the tracker: it accepts no connection any more and closes those that it has.
    pub fn stop(&self) {
        self.shared.stop.notify_one();
    }

    /// What a SUMMARY answers at this moment.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.shared.summary()
    }

    /// How many peers are connected.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }
}

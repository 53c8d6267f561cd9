//! The service: accepts connections, and starts what they lead to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use std::{env, io};

use rpc_proto::handshake::{SessionKey, put_accept};
use rpc_transport::asynchronous::Acceptor;
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{Instrument, error, info, info_span, warn};

use crate::offers::Offers;
#[cfg(unix)]
use crate::worker::Workers;
use crate::{ServerBuilder, ServerError, admission, registration};

/// A server that listens; see [`ServerBuilder`].
#[derive(Debug)]
pub struct Server {
    acceptor: Acceptor,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
}

/// Looks at a server that serves, and ends it. Clones are of the same server.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    shared: Weak<Shared>,
}

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ServerBuilder,
    /// What a client is told that is let in.
    pub(crate) accept: Vec<u8>,
    work_dirs: PathBuf,
    offers: Mutex<Offers>,
    /// Something about the offers has changed.
    pub(crate) offers_changed: Notify,
    pub(crate) slots: Semaphore,
    pub(crate) waiting: AtomicUsize,
    stop: watch::Sender<bool>,
    #[cfg(unix)]
    pub(crate) workers: Option<Workers>,
}

impl Server {
    pub(crate) fn bind(
        options: ServerBuilder,
        host: &str,
        ports: RangeInclusive<u16>,
    ) -> Result<Self, ServerError> {
        let key = &options.key;
        SessionKey::new(key)?;
        let mut accept = Vec::new();
        put_accept(&format!("server:{key}"), options.limits, &mut accept)?;
        let work_dirs = work_dirs(options.work_dir.as_deref())?;
        let listener = rpc_transport::listen(host, ports)?;
        let acceptor = Acceptor::new(listener).map_err(ServerError::Socket)?;
        let local_addr = acceptor.local_addr().map_err(ServerError::Socket)?;
        let shared = Shared {
            accept,
            work_dirs,
            offers: Mutex::new(Offers::new(key, options.slots, options.patience)),
            offers_changed: Notify::new(),
            slots: Semaphore::new(options.slots),
            waiting: AtomicUsize::new(0),
            stop: watch::Sender::new(false),
            #[cfg(unix)]
            workers: match &options.isolation {
                crate::Isolation::Process(command) => Some(Workers::new(command)),
                crate::Isolation::InProcess(_) => None,
            },
            options,
        };
        Ok(Self {
            acceptor,
            local_addr,
            shared: Arc::new(shared),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// A handle, which stays when the server serves.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            shared: Arc::downgrade(&self.shared),
        }
    }

    /// Serves until [`ServerHandle::stop`]. The device is then withdrawn from the tracker, all sessions
    /// are ended, and what they left behind is removed.
    ///
    /// The same happens when this future is dropped, as far as it can without waiting: a session on a
    /// thread goes on until its function returns.
    pub async fn serve(self) {
        let Self {
            mut acceptor,
            local_addr,
            shared,
        } = self;
        let span = info_span!("server", key = shared.options.key);
        async {
            let mut connections = JoinSet::new();
            tokio::select! {
                never = accept(&mut acceptor, &shared, &mut connections) => match never {},
                never = register(&shared, local_addr) => match never {},
                never = keep_workers(&shared) => match never {},
                () = shared.stopped() => {}
            }
            // New clients are refused before those that are here lose their sessions.
            drop(acceptor);
            shared.end(connections).await;
            info!("the server has ended");
        }
        .instrument(span)
        .await;
    }
}

impl ServerHandle {
    /// Ends the server: it accepts no connection any more, and ends its sessions.
    pub fn stop(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.stop.send_replace(true);
        }
    }

    /// How many sessions there are at this moment.
    #[must_use]
    pub fn sessions(&self) -> usize {
        let busy = |shared: Arc<Shared>| shared.options.slots - shared.slots.available_permits();
        self.shared.upgrade().map_or(0, busy)
    }

    /// How many clients wait for a slot.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let waiting = |shared: Arc<Shared>| shared.waiting.load(Ordering::Relaxed);
        self.shared.upgrade().map_or(0, waiting)
    }
}

/// Accepts for ever; each connection is a task of its own.
async fn accept(
    acceptor: &mut Acceptor,
    shared: &Arc<Shared>,
    connections: &mut JoinSet<()>,
) -> Infallible {
    let handshakes = Arc::new(Semaphore::new(shared.options.handshakes));
    loop {
        let permit = Arc::clone(&handshakes).acquire_owned().await;
        tokio::select! {
            (socket, peer) = acceptor.accept() => {
                let peer = canonical(peer);
                let span = info_span!("connection", %peer);
                let shared = Arc::clone(shared);
                let connection = async move {
                    admission::admit(&shared, socket, peer, permit.ok()).await;
                };
                connections.spawn(connection.instrument(span));
            }
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    error!(%error, "a connection failed inside of the server");
                }
            }
        }
    }
}

/// Offers the device at the tracker, if there is one.
async fn register(shared: &Shared, local_addr: SocketAddr) -> Infallible {
    match &shared.options.tracker {
        Some(tracker) => registration::run(shared, tracker, local_addr).await,
        None => std::future::pending().await,
    }
}

/// Keeps workers ready, if sessions run there.
async fn keep_workers(shared: &Shared) -> Infallible {
    #[cfg(unix)]
    if let Some(workers) = &shared.workers {
        return workers.keep(&shared.slots).await;
    }
    let _ = shared;
    std::future::pending().await
}

/// A peer that comes by way of IPv6 with its IPv4 address has that one.
fn canonical(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        // With its zone.
        ip if ip == peer.ip() => peer,
        ip => SocketAddr::new(ip, peer.port()),
    }
}

fn work_dirs(folder: Option<&Path>) -> Result<PathBuf, ServerError> {
    let folder = folder.map_or_else(env::temp_dir, Path::to_owned);
    let found = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    let usable = found.and_then(|found| match found.to_str() {
        Some(_) => Ok(found),
        // Clients are told paths, as text.
        None => Err(io::Error::other("its path is not UTF-8")),
    });
    usable.map_err(|source| ServerError::WorkDir {
        path: folder.display().to_string(),
        source,
    })
}

impl Shared {
    pub(crate) fn offers(&self) -> MutexGuard<'_, Offers> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory for one session, which is nobody else's business.
    pub(crate) fn session_dir(&self) -> io::Result<TempDir> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        builder.prefix("tvm-rpc-").tempdir_in(&self.work_dirs)
    }

    /// Waits until the server shall end.
    pub(crate) async fn stopped(&self) {
        // It fails when nobody is left who could say so, and this is one.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Waits for the end of all that goes on, but not for functions that do not return.
    async fn end(&self, mut connections: JoinSet<()>) {
        const MOMENT: Duration = Duration::from_secs(5);
        let ended = async { while connections.join_next().await.is_some() {} };
        if timeout(MOMENT, ended).await.is_err() {
            warn!("{} sessions do not end and are given up", connections.len());
            connections.shutdown().await;
        }
        #[cfg(unix)]
        if let Some(workers) = &self.workers {
            workers.end().await;
        }
    }
}

/// Removes the directory of a session, which may take a while.
pub(crate) async fn remove(dir: TempDir) {
    let path = dir.path().to_owned();
    let removed = tokio::task::spawn_blocking(move || dir.close()).await;
    if let Ok(Err(error)) = removed {
        warn!(path = %path.display(), %error, "a work directory remains");
    }
}

//! The service: accepts connections, and starts what they lead to.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, io};

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tracing::{Instrument, info, info_span, warn};

use crate::offers::Offers;
#[cfg(unix)]
use crate::worker::Workers;
use crate::{Isolation, ServerBuilder, ServerError, admission, registration};

/// A server that listens; see [`ServerBuilder`].
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
}

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ServerBuilder,
    work_dirs: PathBuf,
    offers: Mutex<Offers>,
    /// Something about the offers has changed.
    pub(crate) offers_changed: Notify,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) waiting: AtomicUsize,
    #[cfg(unix)]
    pub(crate) workers: Option<Workers>,
}

impl Server {
    pub(crate) fn bind(
        options: ServerBuilder,
        host: &str,
        ports: RangeInclusive<u16>,
    ) -> Result<Self, ServerError> {
        if options.key.contains(char::is_whitespace) {
            return Err(ServerError::Key { key: options.key });
        }
        let work_dirs = work_dirs(options.work_dir.as_deref())?;
        let listener = rpc_transport::listen(host, ports)?;
        let listener = listener
            .set_nonblocking(true)
            .and_then(|()| TcpListener::from_std(listener))
            .map_err(ServerError::Socket)?;
        let local_addr = listener.local_addr().map_err(ServerError::Socket)?;
        let shared = Shared {
            work_dirs,
            offers: Mutex::new(Offers::new(&options.key, options.slots, options.patience)),
            offers_changed: Notify::new(),
            slots: Arc::new(Semaphore::new(options.slots)),
            waiting: AtomicUsize::new(0),
            #[cfg(unix)]
            workers: match &options.isolation {
                Isolation::Process(command) => Some(Workers::new(command, options.slots)),
                Isolation::InProcess(_) => None,
            },
            options,
        };
        Ok(Self {
            listener,
            local_addr,
            shared: Arc::new(shared),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves for ever. When this future is dropped, the device is withdrawn from the tracker, and all
    /// sessions end.
    pub async fn serve(self) {
        let Self {
            listener,
            local_addr,
            shared,
        } = self;
        let span = info_span!("server", key = shared.options.key);
        let accepting = accept(&listener, &shared);
        async {
            match shared.options.tracker.clone() {
                Some(tracker) => {
                    let registering = registration::run(&shared, &tracker, local_addr.port());
                    tokio::join!(accepting, registering);
                }
                None => accepting.await,
            }
        }
        .instrument(span)
        .await;
    }
}

/// Accepts for ever; each connection is a task of its own, which ends when this future is dropped.
async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    /// After a failure that is this machine's own (too many open files, say).
    const PAUSE: Duration = Duration::from_millis(100);
    #[cfg(unix)]
    if let Some(workers) = &shared.workers {
        workers.prepare();
    }
    let handshakes = Arc::new(Semaphore::new(shared.options.handshakes));
    let mut connections = JoinSet::new();
    loop {
        let permit = Arc::clone(&handshakes).acquire_owned().await;
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    let peer = canonical(peer);
                    let span = info_span!("connection", %peer);
                    let shared = Arc::clone(shared);
                    let connection = async move {
                        admission::admit(&shared, socket, peer, permit.ok()).await;
                    };
                    connections.spawn(connection.instrument(span));
                }
                Err(error) => {
                    warn!(%error, "cannot accept");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    warn!(%error, "a connection's task failed");
                }
            }
        }
    }
}

/// A peer that comes by way of IPv6 with its IPv4 address has that one.
fn canonical(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

fn work_dirs(folder: Option<&Path>) -> Result<PathBuf, ServerError> {
    let folder = folder.map_or_else(env::temp_dir, Path::to_owned);
    let found = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    found.map_err(|source| ServerError::WorkDir {
        path: folder.display().to_string(),
        source,
    })
}

impl Shared {
    pub(crate) fn offers(&self) -> MutexGuard<'_, Offers> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory for one session.
    pub(crate) fn session_dir(&self) -> io::Result<TempDir> {
        tempfile::Builder::new()
            .prefix("tvm-rpc-")
            .tempdir_in(&self.work_dirs)
    }

    /// A place among those who wait, if there is one.
    pub(crate) fn wait(&self) -> Option<Waiting<'_>> {
        let most = self.options.waiting;
        let one_more = |count| (count < most).then_some(count + 1);
        let order = Ordering::Relaxed;
        self.waiting
            .fetch_update(order, order, one_more)
            .ok()
            .map(|_| Waiting(&self.waiting))
    }
}

/// A client that waits for a slot.
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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

/// Says that a session is over, in whatever way.
pub(crate) struct Ending<'a>(pub(crate) &'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.offers().release();
        self.0.offers_changed.notify_one();
    }
}

/// What a session needs of its client.
pub(crate) struct Admitted {
    pub(crate) socket: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) timeout: Option<Duration>,
}

impl Admitted {
    pub(crate) fn log(&self) {
        match self.timeout {
            Some(limit) => info!("session begins, for at most {limit:?}"),
            None => info!("session begins"),
        }
    }
}

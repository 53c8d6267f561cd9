//! One connection, from its first byte to the end of its session.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rpc_proto::codes::HandshakeCode;
use rpc_proto::handshake::{SessionKey, put_refuse};
use rpc_session::session_lost;
use rpc_transport::asynchronous::introduction;
use rpc_transport::{Chain, TransportError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::places::Place;
use crate::server::{Shared, remove};
use crate::session::InProcess;
use crate::{Isolation, SessionContext, in_process};

/// A time limit from here on is none.
const AGES: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Hears who the client is, and serves it if it may come in. `handshaking` is its place among those who
/// have not said yet who they are.
pub(crate) async fn admit(
    shared: &Shared,
    mut socket: TcpStream,
    peer: SocketAddr,
    handshaking: Option<OwnedSemaphorePermit>,
) {
    let let_in = tokio::select! {
        let_in = let_in(shared, &mut socket, handshaking) => let_in,
        () = shared.stopped() => return,
    };
    let Some((_place, timeout)) = let_in else {
        return;
    };
    let dir = match shared.session_dir() {
        Ok(dir) => dir,
        Err(error) => return warn!(%error, "no session: no work directory can be made"),
    };
    let session = SessionContext {
        work_dir: dir.path().to_owned(),
        peer: peer.to_string(),
        timeout,
    };
    match &shared.options.isolation {
        Isolation::InProcess(make) => on_thread(shared, make, socket, session).await,
        #[cfg(unix)]
        Isolation::Process(_) => in_worker(shared, socket, session).await,
    }
    remove(dir).await;
}

/// Its place, and the limit of its session, once there is a slot.
async fn let_in<'s>(
    shared: &'s Shared,
    socket: &mut TcpStream,
    handshaking: Option<OwnedSemaphorePermit>,
) -> Option<(Place<'s>, Option<Duration>)> {
    let limit = shared.options.handshake_timeout;
    let key = match introduction(socket, shared.options.limits, limit).await {
        Ok(key) => key,
        // A look at the port, perhaps.
        Err(error @ TransportError::Closed { .. }) => {
            debug!(%error, "turned away");
            return None;
        }
        Err(error) => {
            warn!("turned away: {}", Chain(&error));
            return None;
        }
    };
    let key = match SessionKey::parse(&key) {
        Ok(key) => key,
        Err(error) => {
            warn!("turned away: {error}");
            refuse(socket).await;
            return None;
        }
    };
    let Some(place) = Place::of(shared, key.match_key()) else {
        let match_key = key.match_key();
        match shared.options.tracker {
            Some(_) => warn!(
                match_key,
                "turned away: the match key is not good (any more)"
            ),
            None => warn!(match_key, "turned away: this server has another key"),
        }
        refuse(socket).await;
        return None;
    };
    drop(handshaking);
    let place = place.with_slot(socket).await?;
    Some((place, key.timeout().filter(|limit| *limit < AGES)))
}

/// Tells a client that it may not come in.
async fn refuse(socket: &mut TcpStream) {
    let mut out = Vec::new();
    put_refuse(HandshakeCode::MISMATCH, &mut out);
    last_words(socket, &out).await;
}

/// Tells a client the last that it hears from this server.
async fn last_words(socket: &mut TcpStream, bytes: &[u8]) {
    const MOMENT: Duration = Duration::from_secs(1);
    let told = async {
        socket.write_all(bytes).await?;
        socket.shutdown().await?;
        // A connection that is closed with bytes unread takes back what was said last.
        tokio::io::copy(socket, &mut tokio::io::sink()).await
    };
    // Whoever does not listen need not know.
    let _ = timeout(MOMENT, told).await;
}

/// Tells a client that its session begins.
async fn accept(shared: &Shared, socket: &mut TcpStream, session: &SessionContext) -> bool {
    if let Err(error) = socket.write_all(&shared.accept).await {
        debug!(%error, "gone in its handshake");
        return false;
    }
    match session.timeout {
        Some(limit) => info!("session begins, for at most {limit:?}"),
        None => info!("session begins"),
    }
    true
}

async fn on_thread(
    shared: &Shared,
    make: &InProcess,
    mut socket: TcpStream,
    session: SessionContext,
) {
    if !accept(shared, &mut socket, &session).await {
        return;
    }
    let mut running = match in_process::start(make, &shared.options.serve, socket, session) {
        Ok(running) => running,
        Err(error) => return warn!(%error, "no session: no thread can be started"),
    };
    tokio::select! {
        () = running.serve() => {}
        () = shared.stopped() => running.end().await,
    }
}

#[cfg(unix)]
async fn in_worker(shared: &Shared, mut socket: TcpStream, session: SessionContext) {
    let Some(workers) = &shared.workers else {
        return;
    };
    let worker = match workers.take() {
        Ok(worker) => worker,
        Err(error) => return warn!(%error, "no session: no worker can be started"),
    };
    if !accept(shared, &mut socket, &session).await {
        return;
    }
    // The worker gets a socket that nobody waits for here.
    let socket = match socket.into_std() {
        Ok(socket) => socket,
        Err(error) => return warn!(%error, "no session: its connection failed"),
    };
    let served = async {
        let untold = match workers.hand_over(worker, &socket, &session).await {
            Ok(mut worker) => worker.serve(session.timeout).await,
            Err(error) => {
                warn!(%error, "no session: no worker takes it");
                Some(session_lost("no process takes it"))
            }
        };
        if let Some(why) = untold {
            socket.set_nonblocking(true)?;
            let farewell = shared.options.serve.farewell(&why);
            last_words(&mut TcpStream::from_std(socket)?, &farewell).await;
        }
        Ok::<_, io::Error>(())
    };
    tokio::select! {
        told = served => if let Err(error) = told {
            debug!(%error, "the client cannot be told how its session ended");
        },
        // The worker is killed when it is dropped here.
        () = shared.stopped() => {}
    }
}

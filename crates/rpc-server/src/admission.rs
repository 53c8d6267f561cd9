//! One connection, from its first byte to the end of its session.

use std::net::SocketAddr;
use std::time::Duration;

use rpc_proto::codes::HandshakeCode;
use rpc_proto::handshake::{SessionKey, put_accept, put_refuse};
use rpc_transport::TransportError;
use rpc_transport::asynchronous::introduction;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{debug, info, warn};

use crate::server::{Admitted, Ending, Shared, remove};
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
    let limit = shared.options.handshake_timeout;
    let key = match introduction(&mut socket, shared.options.limits, limit).await {
        Ok(key) => key,
        Err(error @ TransportError::Closed { .. }) => return debug!(%error, "turned away"),
        Err(error) => return warn!(error = chain(&error), "turned away"),
    };
    drop(handshaking);
    let key = match SessionKey::parse(&key) {
        Ok(key) => key,
        Err(error) => {
            warn!(%error, "turned away");
            return refuse(socket).await;
        }
    };
    let timeout = key.timeout().filter(|limit| *limit < AGES);

    let _ending = if shared.options.tracker.is_some() {
        if !shared.offers().take(key.match_key()) {
            warn!(
                match_key = key.match_key(),
                "turned away: the match key is not (or no longer) good"
            );
            return refuse(socket).await;
        }
        shared.offers_changed.notify_one();
        Some(Ending(shared))
    } else if key.match_key() == shared.options.key {
        None
    } else {
        warn!(
            match_key = key.match_key(),
            "turned away: this server has another key"
        );
        return refuse(socket).await;
    };
    let Some(_slot) = slot(shared, &socket).await else {
        return;
    };
    let admitted = Admitted {
        socket,
        peer,
        timeout,
    };
    serve(shared, admitted).await;
}

/// Waits for a free slot, unless the client goes or too many wait already.
async fn slot(shared: &Shared, socket: &TcpStream) -> Option<OwnedSemaphorePermit> {
    let free = std::sync::Arc::clone(&shared.slots);
    if let Ok(slot) = std::sync::Arc::clone(&free).try_acquire_owned() {
        return Some(slot);
    }
    let Some(_waiting) = shared.wait() else {
        warn!("turned away: too many clients wait already");
        return None;
    };
    info!("waits: the server is busy");
    tokio::select! {
        slot = free.acquire_owned() => slot.ok(),
        () = gone(socket) => {
            info!("gone while it waited");
            None
        }
    }
}

/// Waits until the client closes the connection. It has nothing to say before it is let in.
async fn gone(socket: &TcpStream) {
    let mut byte = [0; 1];
    if socket.ready(Interest::READABLE).await.is_ok()
        && let Ok(1) = socket.peek(&mut byte).await
    {
        // It speaks out of turn; what it says is looked at when it is let in.
        std::future::pending::<()>().await;
    }
}

async fn refuse(mut socket: TcpStream) {
    let mut out = Vec::new();
    put_refuse(HandshakeCode::MISMATCH, &mut out);
    // A peer that is gone already has its answer.
    let _ = socket.write_all(&out).await;
    let _ = socket.shutdown().await;
}

async fn serve(shared: &Shared, mut admitted: Admitted) {
    let dir = match shared.session_dir() {
        Ok(dir) => dir,
        Err(error) => return warn!(%error, "no session: no work directory can be made"),
    };
    let session = SessionContext {
        work_dir: dir.path().to_owned(),
        peer: admitted.peer.to_string(),
        timeout: admitted.timeout,
    };
    if let Err(error) = accept(shared, &mut admitted.socket).await {
        debug!(%error, "gone in its handshake");
        return remove(dir).await;
    }
    admitted.log();
    match &shared.options.isolation {
        Isolation::InProcess(make) => {
            in_process::serve(make, &shared.options.serve, admitted.socket, session).await;
        }
        #[cfg(unix)]
        Isolation::Process(_) => {
            if let Some(workers) = &shared.workers {
                workers.serve(admitted.socket, &session).await;
            }
        }
    }
    remove(dir).await;
}

async fn accept(shared: &Shared, socket: &mut TcpStream) -> std::io::Result<()> {
    let mut out = Vec::new();
    let key = format!("server:{}", shared.options.key);
    put_accept(&key, shared.options.limits, &mut out).map_err(std::io::Error::other)?;
    socket.write_all(&out).await
}

/// An error and its sources, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let all = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<_> = all.map(ToString::to_string).collect();
    texts.join(": ")
}

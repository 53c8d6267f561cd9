//! Sessions on threads of this process.

use std::net::{Shutdown, TcpStream as StdStream};
use std::time::Duration;
use std::{io, thread};

use rpc_session::ServeOptions;
use rpc_session::blocking::{Constructors, Expiry, serve as serve_blocking};
use rpc_transport::ConnectOptions;
use rpc_transport::blocking::accepted;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tracing::{Span, info, warn};

use crate::SessionContext;
use crate::admission::chain;
use crate::session::InProcess;

/// Serves a session until it is over, and ends it when its time is up.
pub(crate) async fn serve(
    make: &InProcess,
    options: &ServeOptions,
    socket: TcpStream,
    session: SessionContext,
) {
    let timeout = session.timeout;
    let started = start(make.clone(), options.clone(), socket, session);
    let (mut running, _closing) = match started {
        Ok(started) => started,
        Err(error) => return warn!(%error, "no session: no thread can be started"),
    };
    if let Some(limit) = timeout {
        tokio::select! {
            _ = &mut running.ended => return,
            () = tokio::time::sleep(limit) => expire(&running.expiry, limit).await,
        }
    }
    // It is over when the thread says so, or has failed.
    let _ = running.ended.await;
}

struct Running {
    ended: oneshot::Receiver<()>,
    expiry: Expiry,
}

/// Closes the connection when the session is given up, so that its thread ends.
struct Closing(StdStream);

impl Drop for Closing {
    fn drop(&mut self) {
        // It may be closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn start(
    make: InProcess,
    options: ServeOptions,
    socket: TcpStream,
    session: SessionContext,
) -> io::Result<(Running, Closing)> {
    let socket = socket.into_std()?;
    socket.set_nonblocking(false)?;
    let closing = Closing(socket.try_clone()?);
    let expiry = Expiry::default();
    let (end, ended) = oneshot::channel();
    let running = Running {
        ended,
        expiry: expiry.clone(),
    };
    let span = Span::current();
    thread::Builder::new()
        .name("rpc-session".to_owned())
        .spawn(move || {
            let _entered = span.enter();
            match (make.0)(&session) {
                Ok(constructors) => run(socket, &constructors, &options, &expiry),
                Err(error) => warn!(%error, "no session: it cannot be prepared"),
            }
            // Nobody waits for the end of a session that was given up.
            let _ = end.send(());
        })?;
    Ok((running, closing))
}

fn run(socket: StdStream, constructors: &Constructors, options: &ServeOptions, expiry: &Expiry) {
    let stream = match accepted(socket, &ConnectOptions::default()) {
        Ok(stream) => stream,
        Err(error) => return warn!(error = chain(&error), "session ended"),
    };
    match serve_blocking(stream, constructors, options, expiry) {
        Ok(()) => info!("session ended"),
        Err(error) => warn!(error = chain(&error), "session ended"),
    }
}

/// Waits a moment for the client to take an answer, so it is no work for a thread of the runtime.
async fn expire(expiry: &Expiry, limit: Duration) {
    let expiry = expiry.clone();
    let _ = spawn_blocking(move || expiry.expire(limit)).await;
}

//! Sessions on threads of this process.

use std::net::{Shutdown, TcpStream as StdStream};
use std::time::Duration;
use std::{fs, io, thread};

use rpc_session::ServeOptions;
use rpc_session::blocking::{Constructors, Expiry, serve as serve_blocking};
use rpc_transport::blocking::accepted;
use rpc_transport::{Chain, ConnectOptions};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tracing::{Span, info, warn};

use crate::SessionContext;
use crate::session::{InProcess, unprepared};

/// A session on its thread. When this is dropped, its connection is closed, so that the thread ends as soon
/// as its function returns.
pub(crate) struct Running {
    ended: oneshot::Receiver<()>,
    expiry: Expiry,
    timeout: Option<Duration>,
    socket: StdStream,
}

impl Running {
    /// Waits until the session is over, and ends it when its time is up.
    pub(crate) async fn serve(&mut self) {
        if let Some(limit) = self.timeout {
            tokio::select! {
                ended = &mut self.ended => return over(ended),
                () = tokio::time::sleep(limit) => expire(&self.expiry, limit).await,
            }
        }
        over((&mut self.ended).await);
    }

    /// Closes the connection, and waits until the thread has noticed.
    pub(crate) async fn end(&mut self) {
        self.close();
        // Whether it says so or has failed.
        let _ = (&mut self.ended).await;
    }

    fn close(&self) {
        // It may be closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close();
    }
}

/// A session whose thread did not say that it ended.
fn over(ended: Result<(), oneshot::error::RecvError>) {
    if ended.is_err() {
        warn!("session ended: its thread panicked");
    }
}

/// Starts a session on a thread of its own.
pub(crate) fn start(
    make: &InProcess,
    options: &ServeOptions,
    socket: TcpStream,
    session: SessionContext,
) -> io::Result<Running> {
    let (make, options) = (make.clone(), options.clone());
    let socket = socket.into_std()?;
    socket.set_nonblocking(false)?;
    let expiry = Expiry::default();
    let (end, ended) = oneshot::channel();
    let running = Running {
        ended,
        expiry: expiry.clone(),
        timeout: session.timeout,
        socket: socket.try_clone()?,
    };
    let span = Span::current();
    thread::Builder::new()
        .name("rpc-session".to_owned())
        .spawn(move || {
            let _entered = span.enter();
            let constructors = (make.0)(&session).unwrap_or_else(|error| {
                warn!(%error, "the session cannot be prepared");
                unprepared(&error)
            });
            run(socket, &constructors, &options, &expiry);
            if end.send(()).is_err() {
                // The session was given up and its directory removed, where functions went on meanwhile.
                let _ = fs::remove_dir_all(&session.work_dir);
            }
        })?;
    Ok(running)
}

fn run(socket: StdStream, constructors: &Constructors, options: &ServeOptions, expiry: &Expiry) {
    let stream = match accepted(socket, &ConnectOptions::default()) {
        Ok(stream) => stream,
        Err(error) => return warn!("session ended: {}", Chain(&error)),
    };
    match serve_blocking(stream, constructors, options, expiry) {
        Ok(()) => info!("session ended"),
        Err(error) => warn!("session ended: {}", Chain(&error)),
    }
}

/// Waits a moment for the client to take an answer, so it is no work for a thread of the runtime.
async fn expire(expiry: &Expiry, limit: Duration) {
    let expiry = expiry.clone();
    let _ = spawn_blocking(move || expiry.expire(limit)).await;
}

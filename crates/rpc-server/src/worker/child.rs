//! The worker's side: one session, and the end.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, process, thread};

use rpc_session::blocking::{Constructors, Expiry, serve};
use rpc_session::{Exception, ServeError, ServeOptions};
use rpc_transport::blocking::accepted;
use rpc_transport::{ConnectOptions, TransportError};
use tracing::{info, info_span};

use super::handover;
use crate::SessionContext;

/// Why a worker could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It was not started by a server: its standard input is no socket that a session comes over.
    #[error("no server at standard input: a worker is started by one")]
    NoServer(#[source] io::Error),
    /// Its work directory cannot be used.
    #[error("no work directory {path}")]
    WorkDir {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("no thread can be started")]
    Thread(#[source] io::Error),
    /// The session cannot be prepared.
    #[error("the session cannot be prepared: {0}")]
    Prepare(String),
    /// The client was gone before its session began.
    #[error(transparent)]
    Client(#[from] TransportError),
    /// The session ended before the client said goodbye.
    #[error(transparent)]
    Session(#[from] ServeError),
}

/// Waits for a session, serves it with the constructors that `make` makes, and returns when it is over;
/// at once if the server ends before there is one. The work directory is then the current one.
///
/// The process ends by itself when the session's time is up, and when the server ends.
///
/// # Errors
/// The session cannot be served, or ends before the client says goodbye.
pub fn run(
    options: &ServeOptions,
    make: impl FnOnce(&SessionContext) -> Result<Constructors, Exception>,
) -> Result<(), WorkerError> {
    let control = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
        .map_err(WorkerError::NoServer)?;
    let Some((session, socket)) = handover::receive(&control).map_err(WorkerError::NoServer)?
    else {
        return Ok(());
    };
    let _entered = info_span!("session", peer = session.peer).entered();
    end_with_server(control, session.work_dir.clone()).map_err(WorkerError::Thread)?;
    env::set_current_dir(&session.work_dir).map_err(|source| WorkerError::WorkDir {
        path: session.work_dir.clone(),
        source,
    })?;
    let expiry = Expiry::default();
    if let Some(limit) = session.timeout {
        end_in_time(&expiry, limit).map_err(WorkerError::Thread)?;
    }
    let constructors = make(&session).map_err(|error| WorkerError::Prepare(error.to_string()))?;
    let stream = accepted(socket, &ConnectOptions::default())?;
    Ok(serve(stream, &constructors, options, &expiry)?)
}

/// Ends this process when the server is gone, and removes what nobody else would.
fn end_with_server(mut control: UnixStream, work_dir: PathBuf) -> io::Result<()> {
    spawn("server-watch", move || {
        // Nothing more comes; it returns at the end.
        let _ = control.read(&mut [0]);
        leave(&work_dir);
    })
}

fn leave(work_dir: &Path) -> ! {
    let _ = fs::remove_dir_all(work_dir);
    process::exit(1)
}

/// Ends the session, and with it this process, when its time is up.
fn end_in_time(expiry: &Expiry, limit: Duration) -> io::Result<()> {
    let expiry = expiry.clone();
    spawn("session-limit", move || {
        thread::sleep(limit);
        expiry.expire(limit);
        info!("the session's time of {limit:?} is up");
        process::exit(0);
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
}

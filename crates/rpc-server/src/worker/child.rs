//! The worker's side: one session, and the end.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, process, thread};

use rpc_session::blocking::{Constructors, Expiry, serve};
use rpc_session::{Exception, ServeError, ServeOptions};
use rpc_transport::ConnectOptions;
use rpc_transport::blocking::accepted;
use rustix::process::{
    Resource, Rlimit, Signal, getpgrp, getpid, getrlimit, kill_current_process_group, setrlimit,
};
use rustix::stdio::dup2_stdin;
use tracing::info_span;

use super::handover::{self, Report};
use crate::SessionContext;
use crate::session::unprepared;

/// Why a worker has no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It was not started by a server: its standard input is no socket that a session comes over.
    #[error("no server at standard input: a worker is started by one")]
    NoServer(#[source] io::Error),
}

/// Limits the memory that this process takes for itself, so that a function that takes ever more of it ends
/// its session, and leaves the machine to others. What libraries bring along, and what is shared, does not
/// count; `bytes` should leave room for stacks and for what the program needs itself.
///
/// # Errors
/// The system does not take the limit.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    let limits = getrlimit(Resource::Data);
    // A limit that is there already cannot be raised.
    let limit = limits.maximum.map_or(bytes, |most| most.min(bytes));
    setrlimit(
        Resource::Data,
        Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        },
    )?;
    Ok(())
}

/// Waits for a session, serves it with the constructors that `make` makes, tells the server how it ended,
/// and returns; at once if the server ends before there is a session. What `make` fails with is what
/// the client is told.
///
/// The work directory is the current one meanwhile, and standard input is empty. The process ends by
/// itself, without a return and without running what is to run at its exit, when the session's time is
/// up and when the server ends. After a return it has two seconds to end.
///
/// # Errors
/// No server started this process.
pub fn run(
    options: &ServeOptions,
    make: impl FnOnce(&SessionContext) -> Result<Constructors, Exception>,
) -> Result<(), WorkerError> {
    let control = control().map_err(WorkerError::NoServer)?;
    let received = handover::receive(&control).map_err(WorkerError::NoServer)?;
    let Some((session, socket)) = received else {
        return Ok(());
    };
    let _entered = info_span!("session", peer = session.peer).entered();
    let end = Arc::new(End {
        control,
        work_dir: session.work_dir.clone(),
        told: AtomicBool::new(false),
    });
    let served = || {
        end.with_server()?;
        let answering = Arc::clone(&end);
        let expiry = Expiry::watched(move |begins| answering.answering(begins));
        if let Some(limit) = session.timeout {
            end.in_time(&expiry, limit)?;
        }
        let prepared = env::set_current_dir(&session.work_dir).map_err(Exception::from);
        let (constructors, failure) = match prepared.and_then(|()| make(&session)) {
            Ok(constructors) => (constructors, None),
            Err(error) => (unprepared(&error), Some(error)),
        };
        let stream = accepted(socket, &ConnectOptions::default())?;
        serve(stream, &constructors, options, &expiry)?;
        failure.map_or(Ok(()), Err)
    };
    let failure = served().err().map(|error| error.message().to_owned());
    end.tell(failure);
    Ok(())
}

/// The socket to the server. Programs that the session starts do not inherit it.
fn control() -> io::Result<UnixStream> {
    let control = io::stdin().as_fd().try_clone_to_owned()?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(control.into())
}

/// How this process ends.
struct End {
    control: UnixStream,
    work_dir: PathBuf,
    told: AtomicBool,
}

impl End {
    /// Tells the server how the session ended, once; the server sees to what is left of it.
    fn tell(&self, failure: Option<String>) {
        let first = !self.told.swap(true, Ordering::Relaxed);
        let ended = Report::Ended { failure };
        if first && ended.send(&self.control).is_err() {
            self.without_server();
        }
    }

    /// Tells the server when it can tell the client nothing.
    fn answering(&self, begins: bool) {
        // That the server is gone is noticed elsewhere.
        let _ = Report::Answering(begins).send(&self.control);
    }

    /// Ends this process when the server cannot see to what is left of it.
    fn without_server(&self) -> ! {
        // A function may be writing to it.
        for _ in 0..10 {
            if fs::remove_dir_all(&self.work_dir).is_ok() {
                break;
            }
        }
        leave();
    }

    /// Ends this process when the server is gone.
    fn with_server(self: &Arc<Self>) -> io::Result<()> {
        let end = Arc::clone(self);
        spawn("server-watch", move || {
            // Nothing comes any more but the end.
            let _ = io::copy(&mut &end.control, &mut io::sink());
            end.without_server();
        })
    }

    /// Ends the session, and with it this process, when its time is up.
    fn in_time(self: &Arc<Self>, expiry: &Expiry, limit: Duration) -> io::Result<()> {
        let (end, expiry) = (Arc::clone(self), expiry.clone());
        spawn("session-limit", move || {
            thread::sleep(limit);
            expiry.expire(limit);
            end.tell(Some(ServeError::Expired { limit }.to_string()));
            leave();
        })
    }
}

/// Ends this process with all that it started, whatever its threads are doing.
fn leave() -> ! {
    // Else the group is that of somebody else.
    if getpgrp() == getpid() {
        let _ = kill_current_process_group(Signal::KILL);
    }
    process::exit(1)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
}

//! The server's side: workers that wait, and those that serve.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tracing::{info, warn};

use super::{WorkerCommand, handover};
use crate::SessionContext;

/// Workers that wait at most, whatever the slots.
const MOST_SPARE: usize = 2;
/// How long after the end of its time a session that does not end by itself is ended.
const GRACE: Duration = Duration::from_secs(2);

/// The worker processes of a server.
#[derive(Debug)]
pub(crate) struct Workers {
    command: WorkerCommand,
    wanted: usize,
    spare: Mutex<Vec<Worker>>,
}

/// A process, which is killed with all that it started when this is dropped.
#[derive(Debug)]
struct Worker {
    child: Child,
    /// The worker ends when this is closed.
    control: UnixStream,
}

impl Workers {
    pub(crate) fn new(command: &WorkerCommand, slots: usize) -> Self {
        Self {
            command: command.clone(),
            wanted: slots.min(MOST_SPARE),
            spare: Mutex::new(Vec::new()),
        }
    }

    /// Starts workers, so that the next sessions need not wait for them.
    pub(crate) fn prepare(&self) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        while spare.len() < self.wanted {
            match Worker::start(&self.command) {
                Ok(worker) => spare.push(worker),
                // The next session tries again, and tells.
                Err(error) => return warn!(%error, "no worker can be started"),
            }
        }
    }

    /// Serves a session until it is over.
    pub(crate) async fn serve(&self, socket: TcpStream, session: &SessionContext) {
        let mut worker = match self.take() {
            Ok(worker) => worker,
            Err(error) => return warn!(%error, "no session: no worker can be started"),
        };
        self.prepare();
        let handed = socket.into_std().and_then(|socket| {
            socket.set_nonblocking(false)?;
            handover::send(&worker.control, session, socket.as_fd())
            // From here on the worker alone has the socket: when it dies, the client sees it at once.
        });
        if let Err(error) = handed {
            return warn!(%error, "no session: the worker does not take it");
        }
        worker.wait(session.timeout).await;
    }

    /// A worker that waits, or else a new one.
    fn take(&self) -> io::Result<Worker> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(mut worker) = spare.pop() {
            match worker.child.try_wait() {
                Ok(None) => return Ok(worker),
                Ok(Some(status)) => warn!(%status, "a worker ended before it had anything to do"),
                Err(error) => warn!(%error, "a worker is lost"),
            }
        }
        Worker::start(&self.command)
    }
}

impl Worker {
    fn start(command: &WorkerCommand) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // What functions print must not stand among the server's own output.
        let stdout = io::stderr().as_fd().try_clone_to_owned()?;
        let child = Command::new(&command.program)
            .args(&command.args)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(stdout))
            // Away from the terminal's signals, and with all that it starts in one group.
            .process_group(0)
            .spawn()?;
        Ok(Self {
            child,
            control: ours,
        })
    }

    /// Waits for the end of the session, and sees to it that there is one.
    async fn wait(&mut self, limit: Option<Duration>) {
        let ended = match limit {
            None => self.child.wait().await,
            Some(limit) => match timeout(limit + GRACE, self.child.wait()).await {
                Ok(ended) => ended,
                Err(_) => {
                    warn!("the session's time is up, and it does not end; it is killed");
                    self.kill();
                    self.child.wait().await
                }
            },
        };
        match ended {
            Ok(status) if status.success() => info!("session ended"),
            Ok(status) => warn!("session ended: {}", describe(status)),
            Err(error) => warn!(%error, "session lost"),
        }
    }

    /// Kills the process and all that it started. Until it was waited for, its number is its own.
    fn kill(&self) {
        let group = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process failed with status {code}"),
        (None, Some(signal)) => format!("its process was ended by signal {signal}"),
        (None, None) => "its process ended".to_owned(),
    }
}

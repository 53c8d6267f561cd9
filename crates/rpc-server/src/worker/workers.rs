//! The workers of a server: those that wait for a session.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;
use tracing::warn;

use super::process::describe;
use super::{Worker, WorkerCommand};
use crate::SessionContext;
use crate::registration::pauses;

/// Workers that wait at most, however many sessions could begin.
const MOST_SPARE: usize = 2;
/// The longest pause after a worker that failed before it had a session.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Starts workers ahead of time.
#[derive(Debug)]
pub(crate) struct Workers {
    command: WorkerCommand,
    spare: Mutex<Vec<Worker>>,
    /// A session has begun or ended.
    pub(crate) changed: Notify,
}

impl Workers {
    pub(crate) fn new(command: &WorkerCommand) -> Self {
        Self {
            command: command.clone(),
            spare: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Keeps a worker ready for each free slot, up to a few. None is started on account of a session that
    /// begins, since that may be there to measure time.
    pub(crate) async fn keep(&self, slots: &Semaphore) -> Infallible {
        loop {
            let mut pauses = pauses(LONGEST_PAUSE);
            while let Some(failure) = self.failure(slots).await {
                let pause = pauses.next().unwrap_or(LONGEST_PAUSE);
                warn!(
                    "a worker failed before it had a session: {failure}; the next one is started in {pause:?}"
                );
                sleep(pause).await;
            }
        }
    }

    /// Starts what is wanted, and waits until it fails; `None` if something else is wanted first.
    async fn failure(&self, slots: &Semaphore) -> Option<String> {
        let wanted = slots.available_permits().min(MOST_SPARE);
        // The lock is gone again when a worker is started.
        let missing = || self.spare().len() < wanted;
        while missing() {
            match Worker::start(&self.command) {
                Ok(worker) => self.spare().push(worker),
                Err(error) => return Some(format!("it cannot be started: {error}")),
            }
        }
        let mut gone = tokio::select! {
            biased;
            () = self.changed.notified() => return None,
            gone = self.gone() => gone,
        };
        Some(describe(gone.end().await))
    }

    /// A worker that was to wait, and is gone.
    async fn gone(&self) -> Worker {
        poll_fn(|context| {
            let mut spare = self.spare();
            let gone = |worker: &Worker| worker.poll_gone(context).is_ready();
            match spare.iter().position(gone) {
                Some(index) => Poll::Ready(spare.swap_remove(index)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// A worker that waits, or else a new one.
    pub(crate) fn take(&self) -> io::Result<Worker> {
        let waits = self.spare().pop();
        waits.map_or_else(|| Worker::start(&self.command), Ok)
    }

    /// Gives a session to a worker, and to another one if that fails. From here on the worker alone uses
    /// the connection, as long as it lives.
    pub(crate) async fn hand_over(
        &self,
        mut worker: Worker,
        socket: &StdTcpStream,
        session: &SessionContext,
    ) -> io::Result<Worker> {
        if let Err(error) = worker.hand_over(session, socket.as_fd()).await {
            warn!(%error, "a worker did not take its session; another one is started");
            worker = Worker::start(&self.command)?;
            worker.hand_over(session, socket.as_fd()).await?;
        }
        Ok(worker)
    }

    /// Ends those that wait.
    pub(crate) async fn end(&self) {
        let spare = std::mem::take(&mut *self.spare());
        for mut worker in spare {
            // It had nothing to do.
            let _ = worker.end().await;
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

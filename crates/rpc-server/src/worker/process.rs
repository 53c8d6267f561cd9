//! One worker process, as its server sees it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tracing::{info, warn};

use super::WorkerCommand;
use super::handover::{self, LONGEST, Report};
use crate::SessionContext;

/// How long a worker that should end by itself may take, when its time is up, and when it has said that
/// its session is over.
const GRACE: Duration = Duration::from_secs(2);
/// How long a worker may take until it is ready for its session.
const START: Duration = Duration::from_secs(60);

/// A process, which is killed with all that it started when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    /// Both see the other's end here.
    control: UnixStream,
}

impl Worker {
    pub(super) fn start(command: &WorkerCommand) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        // What functions print must not stand among the server's own output.
        let stdout = io::stderr().as_fd().try_clone_to_owned()?;
        let child = Command::new(command.program())
            .args(command.args())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(stdout))
            // Away from the terminal's signals, and with all that it starts in one group.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, control })
    }

    /// Gives it its session, and waits until it has it. Its time begins then, and the connection is its
    /// own.
    pub(super) async fn hand_over(
        &mut self,
        session: &SessionContext,
        socket: BorrowedFd<'_>,
    ) -> io::Result<()> {
        handover::send(&self.control, session, socket)?;
        match timeout(START, self.control.read_u8()).await {
            Ok(ready) => ready.map(drop),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Waits, for a worker without a session, until it is gone.
    pub(super) fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        // It has nothing to say.
        let _ = ready!(self.control.poll_read_ready(context));
        Poll::Ready(())
    }

    /// Waits for the end of its session, which `limit` limits, and tells how that was.
    pub(crate) async fn serve(&mut self, limit: Option<Duration>) {
        let said = match limit {
            None => Some(self.last_words().await),
            Some(limit) => timeout(limit + GRACE, self.last_words()).await.ok(),
        };
        let ended = self.end().await;
        match (said.as_deref().map(Report::parse), ended) {
            (None, _) => warn!("session ended: its time was up, and its process had to be killed"),
            (Some(Some(Report { failure: None })), _) => info!("session ended"),
            (Some(Some(Report { failure: Some(why) })), _) => warn!("session ended: {why}"),
            (Some(None), Ok(status)) => warn!("session ended: {}", describe(status)),
            (Some(None), Err(error)) => warn!(%error, "session ended: its process is lost"),
        }
    }

    /// What it says until it ends.
    async fn last_words(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        while !said.ends_with(b"\n") && said.len() < LONGEST {
            // Whether it ends or fails, the worker is gone.
            if !matches!(self.control.read_buf(&mut said).await, Ok(1..)) {
                return said;
            }
        }
        let _ = timeout(GRACE, self.control.read_u8()).await;
        said
    }

    /// Ends it and all that it started, and says how it ended.
    pub(crate) async fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.child.wait().await
    }

    /// Until it was waited for, its number is that of its group and of no other. One that has ended by
    /// itself is none the worse for it.
    fn kill(&self) {
        let group = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Worker {
    /// What follows is as a rule that its directory is removed, so it has a moment to be gone.
    fn drop(&mut self) {
        const MOMENT: Duration = Duration::from_millis(200);
        self.kill();
        let end = Instant::now() + MOMENT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How a process ended, in words.
pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process ended with status {code}"),
        (None, Some(signal)) => format!("its process was ended by signal {signal}"),
        (None, None) => "its process ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Worker {
        let command = WorkerCommand::new("/bin/sh").arg("-c").arg(script);
        Worker::start(&command).unwrap()
    }

    fn runs(pid: u32) -> bool {
        let pid = Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::test_kill_process(pid).is_ok()
    }

    #[tokio::test]
    async fn it_is_gone_when_this_is_dropped() {
        let worker = shell("while :; do sleep 60; done");
        let pid = worker.child.id().unwrap();
        assert!(runs(pid));
        drop(worker);
        assert!(!runs(pid));
    }

    #[tokio::test]
    async fn what_it_left_behind_ends_with_it() {
        // The other one has no part in the socket, as that of a real worker.
        let mut worker = shell("sleep 60 </dev/null & echo $! >&0");
        let pid = worker.last_words().await;
        let pid = String::from_utf8(pid).unwrap().trim().parse().unwrap();
        assert!(runs(pid));
        let status = worker.end().await.unwrap();
        assert!(status.success(), "{status}");
        // Whoever inherits it takes note of its end in its own time.
        while runs(pid) && !is_zombie(pid) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn is_zombie(pid: u32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    }

    #[tokio::test]
    async fn how_it_ended_is_told() {
        for (script, told) in [
            ("exit 3", "its process ended with status 3"),
            ("kill -SEGV $$", "its process was ended by signal 11"),
        ] {
            let mut worker = shell(script);
            assert!(worker.last_words().await.is_empty());
            assert_eq!(describe(worker.end().await.unwrap()), told);
        }
    }
}

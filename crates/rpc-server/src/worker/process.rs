//! One worker process, as its server sees it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::{Duration, Instant};

use rpc_session::{Exception, session_expired, session_lost};
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
    /// What it has said that is not a whole line yet.
    said: Vec<u8>,
    /// It is in the middle of an answer.
    answering: bool,
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
        Ok(Self {
            child,
            control,
            said: Vec::new(),
            answering: false,
        })
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

    /// Waits for the end of its session, which `limit` limits, and logs how that was. What comes back is for
    /// the client, if the worker could not tell it.
    pub(crate) async fn serve(&mut self, limit: Option<Duration>) -> Option<Exception> {
        let last_words = async {
            match limit {
                None => Ok(self.last_words().await),
                Some(limit) => timeout(limit + GRACE, self.last_words())
                    .await
                    .map_err(|_| limit),
            }
        };
        let said = last_words.await;
        let ended = self.end().await;
        let untold = match said {
            Ok(Some(why)) => {
                match why {
                    None => info!("session ended"),
                    Some(why) => warn!("session ended: {why}"),
                }
                return None;
            }
            Ok(None) => {
                let how = describe(ended);
                warn!("session ended: {how}");
                session_lost(how)
            }
            Err(limit) => {
                warn!("session ended: its time was up, and its process had to be killed");
                session_expired(limit)
            }
        };
        Some(untold).filter(|_| !self.answering)
    }

    /// How its session ended, as it says itself: why it did, unless the client said goodbye. `None` if it
    /// is gone without a word.
    async fn last_words(&mut self) -> Option<Option<String>> {
        loop {
            while let Some(end) = self.said.iter().position(|&byte| byte == b'\n') {
                let line: Vec<_> = self.said.drain(..=end).collect();
                match Report::parse(&line)? {
                    Report::Answering(answering) => self.answering = answering,
                    Report::Ended { failure } => {
                        let _ = timeout(GRACE, self.control.read_u8()).await;
                        return Some(failure);
                    }
                }
            }
            // Whether it ends or fails, the worker is gone.
            let read = self.control.read_buf(&mut self.said).await;
            if !matches!(read, Ok(1..)) || self.said.len() > LONGEST {
                return None;
            }
        }
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
pub(super) fn describe(ended: io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => format!("its process ended with {status}"),
        Err(error) => format!("its process is lost: {error}"),
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
        let script = r#"sleep 60 </dev/null & echo "{\"Ended\":{\"failure\":\"$!\"}}" >&0"#;
        let mut worker = shell(script);
        let pid = worker.last_words().await.unwrap().unwrap();
        let pid = pid.parse().unwrap();
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
            ("exit 3", "its process ended with exit status: 3"),
            (
                "kill -SEGV $$",
                "its process ended with signal: 11 (SIGSEGV)",
            ),
        ] {
            let mut worker = shell(script);
            let told = session_lost(told);
            assert_eq!(worker.serve(None).await, Some(told), "{script}");
        }
    }

    #[tokio::test]
    async fn nothing_is_said_in_the_middle_of_an_answer() {
        let begins = r#"echo '{"Answering":true}' >&0"#;
        let ends = r#"echo '{"Answering":false}' >&0"#;
        let told = |script: String| async move { shell(&script).serve(None).await.is_some() };
        assert!(!told(format!("{begins}; kill -KILL $$")).await);
        assert!(told(format!("{begins}; {ends}; kill -KILL $$")).await);
    }
}

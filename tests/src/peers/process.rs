//! The process of one peer, from its first line to its end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::wait::holds_within;

const START_LIMIT: Duration = Duration::from_secs(30);
const END_LIMIT: Duration = Duration::from_secs(5);
const STDERR_FILE: &str = "stderr.log";

/// A peer that listens, the leader of a process group of its own.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    role: &'static str,
    addr: SocketAddr,
    /// None once the process has been waited for, when its number may belong to another.
    child: Option<Child>,
    /// Its working directory: session directories and standard error.
    directory: TempDir,
}

impl PeerProcess {
    /// Starts `command`, which prints the line `listening on HOST:PORT` once it accepts.
    pub(crate) fn start(role: &'static str, mut command: Command) -> Self {
        let directory = TempDir::new().expect("create a temporary directory");
        let stderr = File::create(directory.path().join(STDERR_FILE)).expect("create stderr.log");
        let mut child = command
            .current_dir(directory.path())
            .env("TMPDIR", directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));

        let stdout = child.stdout.take().expect("standard output is piped");
        let addr = listening_address(stdout).unwrap_or_else(|problem| {
            end_group(&mut child);
            let stderr = stderr_tail(directory.path());
            panic!("{command:?} did not start: {problem}; its standard error:\n{stderr}")
        });
        Self {
            role,
            addr,
            child: Some(child),
            directory,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The number of the process, while it runs.
    ///
    /// # Panics
    ///
    /// When it was killed.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().expect("the peer runs").id()
    }

    /// Its working directory, where its sessions have theirs.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Ends it and all that it started without a farewell (`SIGKILL`).
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            end_group(&mut child);
        }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Peers of the reference end at the end of their input as well.
            drop(child.stdin.take());
            kill_process(Pid::from_child(&child), Signal::TERM).expect("end the peer");
            if !holds_within(END_LIMIT, || matches!(child.try_wait(), Ok(Some(_)))) {
                end_group(&mut child);
            }
        }
        if thread::panicking() {
            let stderr = stderr_tail(self.directory.path());
            eprintln!(
                "standard error of the {} at {}:\n{stderr}",
                self.role, self.addr
            );
        }
    }
}

/// Waits for the line `listening on HOST:PORT`.
fn listening_address(stdout: ChildStdout) -> Result<SocketAddr, String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        // The receiver is gone when the deadline has passed.
        let _ = sender.send(read.map(|_| line));
    });
    let line = receiver
        .recv_timeout(START_LIMIT)
        .map_err(|_| format!("no line within {START_LIMIT:?}"))?
        .map_err(|error| format!("standard output: {error}"))?;
    line.trim_end()
        .strip_prefix("listening on ")
        .and_then(|addr| addr.parse().ok())
        .ok_or_else(|| format!("expected the line `listening on HOST:PORT`, got {line:?}"))
}

/// Kills the process and all that it forked, and waits for the process.
///
/// Must be called before the child has been waited for: only until then its number is certain
/// to name its group.
fn end_group(child: &mut Child) {
    let group = Pid::from_child(child);
    kill_process_group(group, Signal::KILL).expect("kill the peer's process group");
    child.wait().expect("wait for the killed peer");
}

fn stderr_tail(directory: &Path) -> String {
    const TAIL: usize = 4096;
    let text = fs::read(directory.join(STDERR_FILE)).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(TAIL)..]).into_owned()
}

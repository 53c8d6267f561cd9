//! A server in a process of its own, and what can be seen of processes.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, fs, process};

use rpc_server::ServerBuilder;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::Client;
use crate::functions::in_workers;
use crate::service::{KEY, until};

/// With these arguments this program runs one test alone.
pub(crate) fn arguments(test: &str) -> [&str; 5] {
    [
        test,
        "--exact",
        "--nocapture",
        "--test-threads=1",
        "--quiet",
    ]
}

pub(crate) fn is_started_as(test: &str) -> bool {
    env::args().skip(1).eq(arguments(test))
}

/// Serves for ever, in worker processes. Work directories are among the temporary files.
pub(crate) fn run_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = ServerBuilder::new(KEY, in_workers())
            .bind("127.0.0.1", 0..=0)
            .unwrap();
        println!("\nlistening on {}", server.local_addr());
        server.serve().await;
    });
}

/// A server in a process of its own, which is killed when this is dropped.
pub(crate) struct ServerProcess {
    pub(crate) addr: SocketAddr,
    pub(crate) folder: TempDir,
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl ServerProcess {
    pub(crate) fn start() -> Self {
        Self::of(&env::current_exe().unwrap())
    }

    /// A server whose program is a copy of this one.
    pub(crate) fn of(program: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        let mut child = Command::new(program)
            .args(arguments("server_process"))
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let addr = loop {
            let mut line = String::new();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "it has ended");
            if let Some(addr) = line.trim_end().strip_prefix("listening on ") {
                break addr.parse().unwrap();
            }
        };
        Self {
            addr,
            folder,
            child,
            stdout,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr, KEY).await.unwrap()
    }

    /// Its processes that wait and serve.
    pub(crate) fn workers(&self) -> Vec<u32> {
        children(self.child.id())
    }

    /// How many file descriptors it has open.
    pub(crate) fn descriptors(&self) -> usize {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        open.unwrap().count()
    }

    pub(crate) fn dirs(&self) -> Vec<PathBuf> {
        let entries = self.folder.path().read_dir().unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Waits until it has nothing but a worker that waits.
    pub(crate) async fn is_idle(&self) {
        until("an idle server", || {
            matches!(self.workers()[..], [pid] if runs(pid)) && self.dirs().is_empty()
        })
        .await;
    }

    /// Ends it without a farewell, and says what else it printed.
    pub(crate) fn kill(&mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        rest
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is there such a process, and is it more than a number that somebody has yet to take note of?
pub(crate) fn runs(pid: u32) -> bool {
    state(pid).is_some_and(|(state, _)| state != "Z" && state != "X")
}

pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// The children of this process.
pub(crate) fn own_children() -> Vec<u32> {
    children(process::id())
}

fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let pids = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|&pid| state(pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

/// State and parent.
fn state(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may be anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

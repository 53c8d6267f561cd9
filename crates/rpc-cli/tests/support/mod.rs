//! Services of this command as processes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rpc_transport::Address;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// No test waits as long for something that ought to happen.
const LONG: Duration = Duration::from_secs(60);

/// What a command that ends by itself prints.
pub(crate) fn tvm_rpc(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvm-rpc"));
    command.args(arguments);
    command
}

/// A running service, ended when this is dropped.
pub(crate) struct Service {
    child: Child,
    output: BufReader<ChildStdout>,
    address: Address,
    /// Where its sessions have their directories.
    temporary: TempDir,
}

impl Service {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(command(arguments))
    }

    /// Starts it in a shell, after commands that limit what it may take.
    pub(crate) fn start_limited(limits: &str, arguments: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{limits}; exec \"$@\"")])
            .arg("sh")
            .arg(env!("CARGO_BIN_EXE_tvm-rpc"))
            .args(arguments);
        Self::spawn(shell)
    }

    fn spawn(mut command: Command) -> Self {
        let temporary = TempDir::new().unwrap();
        let mut child = command
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ");
        let address = address.unwrap_or_else(|| panic!("it says {line:?}"));
        // What listens at all addresses is reached at one.
        let address = address.replace("[::]", "[::1]").parse().unwrap();
        Self {
            child,
            output,
            address,
            temporary,
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// What it printed after its first line.
    pub(crate) fn rest_of_output(&mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        rest
    }

    /// The processes of its workers.
    pub(crate) fn processes(&self) -> Vec<u32> {
        children(self.id())
    }

    /// The process of the one session that it has.
    #[track_caller]
    pub(crate) fn worker(&self) -> u32 {
        let temporary = self.temporary.path().canonicalize().unwrap();
        let in_session = |id: &u32| {
            let directory = fs::read_link(format!("/proc/{id}/cwd"));
            directory.is_ok_and(|directory| directory.starts_with(&temporary))
        };
        let workers: Vec<_> = self.processes().into_iter().filter(in_session).collect();
        match workers[..] {
            [worker] => worker,
            ref other => panic!("expected one session, found {}", other.len()),
        }
    }

    pub(crate) fn session_dirs(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.temporary.path()).unwrap();
        found.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

/// Waits for a state that announces itself to nobody.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "waited {LONG:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes that a process has started.
fn children(of: u32) -> Vec<u32> {
    let tasks = format!("/proc/{of}/task");
    let lists = fs::read_dir(tasks).into_iter().flatten().flatten();
    let lists = lists.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<_> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

/// One of the fields of `/proc/ID/stat` from the state on.
fn stat(process: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split_whitespace().nth(field).map(str::to_owned)
}

/// Has it neither ended nor become a zombie?
pub(crate) fn is_alive(process: u32) -> bool {
    stat(process, 0).is_some_and(|state| state != "Z")
}

/// Ticks that it was computing.
pub(crate) fn cpu_ticks(process: u32) -> u64 {
    stat(process, 11)
        .and_then(|ticks| ticks.parse().ok())
        .unwrap_or(0)
}

/// The most memory that it ever had, in bytes.
pub(crate) fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.unwrap().trim().parse::<u64>().unwrap() << 10
}

pub(crate) fn kill(process: u32) {
    let id = Pid::from_raw(process.cast_signed()).unwrap();
    // It may have ended by itself.
    let _ = kill_process(id, Signal::KILL);
}

//! Peers that do not start, do not come back, or never stop, and people who do not wait for them.
#![cfg(all(unix, feature = "cli"))]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rpc_conformance::{Options, Peer, Status, Target, run};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

/// What takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A peer in Python, behind `import`s; `port` is where it has to listen.
fn python(folder: &Path, text: &str) -> PathBuf {
    let script = folder.join("peer.py");
    let begin = "import os, socket, sys, time\nport = int(sys.argv[1])\nfolder = sys.argv[2]\n";
    fs::write(&script, format!("{begin}{text}")).unwrap();
    script
}

fn command(folder: &Path, text: &str) -> String {
    let script = python(folder, text);
    format!("python3 {} {{port}} {}", script.display(), folder.display())
}

/// Accepts connections and says nothing.
const SILENT: &str = "
open(os.path.join(folder, 'pid'), 'w').write(str(os.getpid()))
listener = socket.create_server(('127.0.0.1', port))
kept = []
while True:
    kept.append(listener.accept())
";

#[test]
fn a_peer_that_does_not_come_back_ends_the_run() {
    let folder = TempDir::new().unwrap();
    let once = "
if os.path.exists(os.path.join(folder, 'was-here')):
    sys.exit('I was here before')
open(os.path.join(folder, 'was-here'), 'w').close()
listener = socket.create_server(('127.0.0.1', port))
for _ in range(2):
    listener.accept()
";
    let target = Target::Tracker(Peer::Command(command(folder.path(), once)));
    let began = Instant::now();
    let run = run(&target, &Options::default().with_jobs(1), &|_, _| ()).unwrap();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    let unplayed = run
        .cases
        .iter()
        .filter(|case| case.status == Status::NotRun);
    let notes: Vec<_> = unplayed.map(|case| case.note.as_str()).collect();
    assert!(
        notes.len() + 2 >= run.cases.len(),
        "{} of {}",
        notes.len(),
        run.cases.len()
    );
    for note in notes {
        assert!(note.starts_with("the peer does not come back: "), "{note}");
        assert!(note.ends_with("I was here before"), "{note}");
    }
}

#[test]
fn who_ends_the_peer_is_blamed_and_nobody_beside_it() {
    let folder = TempDir::new().unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let tracker = fs::read_to_string(docs.join("examples/tracker.py")).unwrap();
    // It dies of a port that is a text.
    let received = "        self.received += data";
    let dies = "        import os; b'\"15201\"' in data and os._exit(9)\n";
    assert!(tracker.contains(received));
    let script = folder.path().join("tracker.py");
    let text = tracker.replacen(received, &format!("{dies}{received}"), 1);
    fs::write(&script, text).unwrap();
    let command = format!("python3 {} {{port}}", script.display());
    let target = Target::Tracker(Peer::Command(command));
    let run = run(&target, &Options::default(), &|_, _| ()).unwrap();
    let missed = run.cases.iter().filter(|case| case.status != Status::Pass);
    let missed: Vec<_> = missed.map(|case| case.id.as_str()).collect();
    assert_eq!(missed, ["TRK-INFO-005", "TRK-INFO-006"]);
    for case in run
        .cases
        .iter()
        .filter(|case| missed.contains(&case.id.as_str()))
    {
        let survives = case.checks.iter().find(|check| check.name == "survives");
        let found = &survives.unwrap().found;
        assert!(found.contains("exit status: 9"), "{found}");
    }
}

/// A run of the command that can be interrupted.
struct Interruptible(Child);

impl Interruptible {
    fn start(arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_tvm-rpc-conformance"))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn interrupt(&self) {
        let pid = Pid::from_raw(self.0.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it does not become so");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts a run on a peer and waits until that has said its number.
fn with_peer(folder: &Path, command: &str) -> (Interruptible, Pid) {
    let run = Interruptible::start(&["tracker", "--cmd", command]);
    let file = folder.join("pid");
    until(|| fs::read_to_string(&file).is_ok_and(|pid| !pid.is_empty()));
    let pid = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    (run, Pid::from_raw(pid).unwrap())
}

#[test]
fn an_interrupt_ends_the_wait_for_a_peer() {
    let folder = TempDir::new().unwrap();
    let never_ready = "
open(os.path.join(folder, 'pid'), 'w').write(str(os.getpid()))
time.sleep(100)
";
    let (mut run, peer) = with_peer(folder.path(), &command(folder.path(), never_ready));
    let began = Instant::now();
    run.interrupt();
    assert_eq!(run.ended().code(), Some(4));
    // A peer may take half a minute.
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    until(|| test_kill_process(peer).is_err());
}

#[test]
fn a_second_interrupt_leaves_no_peer_behind() {
    let folder = TempDir::new().unwrap();
    let (mut run, peer) = with_peer(folder.path(), &command(folder.path(), SILENT));
    run.interrupt();
    std::thread::sleep(Duration::from_millis(200));
    run.interrupt();
    assert_eq!(run.ended().code(), Some(4));
    until(|| test_kill_process(peer).is_err());
}

//! How the command ends: interrupted, with nobody who listens, and with files that have no end.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::support::{Folder, PASSING, answering, expect, play, run};

/// The command, to be started by hand.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvm-rpc-conformance"));
    command.args(arguments);
    command
}

/// What a tracker answers of which every client gets its device.
fn granted(frame: &[u8]) -> &'static [u8] {
    match frame.get(..2) {
        Some(b"[4") => br#"[0, ["127.0.0.1", 9090, "m"]]"#,
        Some(b"[6") => br#"[0, {"queue_info": {}, "server_info": []}]"#,
        _ => b"0",
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_soak_is_4() {
    static ANSWERED: AtomicUsize = AtomicUsize::new(0);
    let addr = answering(|frame| {
        ANSWERED.fetch_add(1, Ordering::Relaxed);
        granted(frame)
    });
    let soak = ["soak", "tracker", "--addr", &addr];
    expect(
        &run(&[&soak[..], &["--cycles", "50"]].concat()),
        0,
        " 0 failed",
    );
    let endless = [&soak[..], &["--cycles", "4000000000", "--connections", "2"]].concat();
    let mut child = command(&endless)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    // An interrupt before the first conversation ends the command in another way.
    let before = ANSWERED.load(Ordering::Relaxed);
    let deadline = Instant::now() + Duration::from_secs(60);
    while ANSWERED.load(Ordering::Relaxed) == before {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    expect(&output, 4, "error: the soak was interrupted");
    expect(&output, 4, "tracker: ");
}

#[test]
fn a_pipe_that_nobody_reads_is_no_panic() {
    let folder = Folder::new();
    let json = folder.name("run.json");
    play(PASSING, &["--report", "json", "--out", &json]);
    let talk = folder.file("talk.json", r#"{"connections": [], "messages": []}"#);
    let addr = answering(granted);
    for arguments in [
        &["diff", &json, &json][..],
        &["matrix", &json],
        &["check", &talk],
        &["tracker", "--list"],
        &["tracker", "--broken", "list"],
        &["soak", "tracker", "--addr", &addr, "--cycles", "20"],
        &["tracker", "--addr", &addr, "--only", PASSING],
    ] {
        let closed = || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            writer
        };
        let output = command(arguments).stdout(closed()).output().unwrap();
        expect(&output, 0, "");
        assert!(output.stderr.is_empty(), "{output:?}");
        // Errors and progress are told to nobody, too.
        let status = command(arguments)
            .stdout(closed())
            .stderr(closed())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let wrong = command(&["diff", "a", "b"])
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(wrong.code(), Some(2));
}

#[test]
fn files_have_a_longest_length() {
    let folder = Folder::new();
    let file = |name, len| {
        File::create(folder.path(name))
            .unwrap()
            .set_len(len)
            .unwrap();
        folder.name(name)
    };
    // Of nothing but zeros, which take no room.
    let list = file("list", (64 << 20) + 1);
    let report = file("report", 1 << 40);
    let too_long = "list has more than 67108864 bytes";
    expect(&play(PASSING, &["--known-failures", &list]), 2, too_long);
    expect(&play(PASSING, &["--flaky", &list]), 2, too_long);
    expect(
        &play(PASSING, &["--write-known-failures", &list]),
        2,
        too_long,
    );
    expect(
        &play(PASSING, &["--rerun-failed", &report]),
        2,
        "is no report",
    );
    expect(&run(&["diff", &report, &report]), 2, "is no report");
    expect(&run(&["matrix", &report]), 2, "is no report");
}

#[test]
fn what_a_peer_says_of_itself_steers_no_terminal() {
    let silent = r#"sh -c 'printf "\033[2Jgone\n" >&2; exec sleep 60'"#;
    let output = run(&["tracker", "--cmd", silent, "--patience", "1"]);
    expect(&output, 3, r"\u{1b}[2Jgone");
    assert!(!output.stderr.contains(&0x1b));
}

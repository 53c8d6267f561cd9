//! Exit status, standard error and the environment, on peers that are silent, gone or odd.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use assert_cmd::Command;

const VARIABLES: [&str; 4] = [
    "TVM_TRACKER_HOST",
    "TVM_TRACKER_PORT",
    "TVM_TRACKER_KEY",
    "TVM_RPC_LOG",
];

fn tvm_rpc(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("tvm-rpc").unwrap();
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.args(args).timeout(Duration::from_secs(30));
    command
}

/// Standard error of a command that ends with this status and prints nothing else.
fn failure(mut command: Command, status: i32) -> String {
    let assert = command.assert().code(status).stdout("");
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

/// A port that nothing listens on.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

#[test]
fn a_tracker_that_is_gone_is_one_line_and_status_1() {
    let port = closed_port();
    let query = tvm_rpc(&["query", "--port", &port, "--connect-timeout", "0"]);
    let stderr = failure(query, 1);
    let expected = format!("error: cannot connect to 127.0.0.1:{port}: ");
    assert!(stderr.starts_with(&expected), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");

    let tracker = format!("127.0.0.1:{port}");
    for args in [
        &["call", "f"][..],
        &["run", "Cargo.toml"],
        &["upload", "Cargo.toml"],
        &["download", "f"],
        &["ls"],
        &["rm", "f"],
    ] {
        let options = [
            "--key",
            "k",
            "--tracker",
            &tracker,
            "--connect-timeout",
            "0",
        ];
        let stderr = failure(tvm_rpc(&[args, &options].concat()), 1);
        assert!(stderr.starts_with(&expected), "{args:?}: {stderr}");
    }
}

#[test]
fn who_waits_for_a_tracker_is_told() {
    let port = closed_port();
    let start = Instant::now();
    let stderr = failure(
        tvm_rpc(&["query", "--port", &port, "--connect-timeout", "0.2"]),
        1,
    );
    assert!(start.elapsed() >= Duration::from_millis(200));
    let mut lines = stderr.lines();
    let note =
        format!("note: the tracker at 127.0.0.1:{port} refuses connections; trying for 200ms");
    assert_eq!(lines.next(), Some(note.as_str()));
    assert!(lines.next().unwrap().starts_with("error: "), "{stderr}");
    assert_eq!(lines.next(), None);
}

#[test]
fn a_server_that_is_gone_is_one_line_and_status_1() {
    let port = closed_port();
    let server = format!("127.0.0.1:{port}");
    let stderr = failure(tvm_rpc(&["call", "f", "--server", &server]), 1);
    assert!(
        stderr.starts_with(&format!("error: cannot connect to {server}: ")),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn what_is_no_tracker_is_called_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"SSH-2.0-x\r\n").unwrap();
    });
    let stderr = failure(tvm_rpc(&["query", "--port", &port]), 1);
    peer.join().unwrap();
    assert!(
        stderr.starts_with(&format!(
            "error: no use of the tracker at 127.0.0.1:{port}: "
        )),
        "{stderr}"
    );
}

#[test]
fn a_bad_variable_is_wrong_usage_and_named() {
    for port in ["abc", "0", "70000"] {
        for args in [&["query"][..], &["call", "f", "--key", "k"]] {
            let mut command = tvm_rpc(args);
            command.env("TVM_TRACKER_PORT", port);
            let expected = format!(
                "error: TVM_TRACKER_PORT={port}: the port is not a number from 1 to 65535\n"
            );
            assert_eq!(failure(command, 2), expected);
        }
    }
    let mut command = tvm_rpc(&["query"]);
    command.env("TVM_RPC_LOG", "rpc_session=loud");
    let stderr = failure(command, 2);
    assert!(
        stderr.starts_with("error: TVM_RPC_LOG=rpc_session=loud: "),
        "{stderr}"
    );
}

#[test]
fn the_environment_says_where_the_tracker_is() {
    let port = closed_port();
    let mut command = tvm_rpc(&["call", "f", "--connect-timeout", "0"]);
    command
        .env("TVM_TRACKER_HOST", "127.0.0.1")
        .env("TVM_TRACKER_PORT", &port)
        .env("TVM_TRACKER_KEY", "k");
    let stderr = failure(command, 1);
    let expected = format!("error: cannot connect to 127.0.0.1:{port}: ");
    assert!(stderr.starts_with(&expected), "{stderr}");
}

#[test]
fn logs_go_to_standard_error_when_they_are_wanted() {
    let port = closed_port();
    let server = format!("127.0.0.1:{port}");
    let args = ["call", "f", "--server", &server, "--verbose"];
    let loud = failure(tvm_rpc(&args), 1);
    assert!(
        loud.contains("DEBUG") && loud.contains("error: cannot connect"),
        "{loud}"
    );
    // A filter counts more than the option.
    let mut command = tvm_rpc(&args);
    command.env("TVM_RPC_LOG", "off");
    assert_eq!(failure(command, 1).lines().count(), 1);
}

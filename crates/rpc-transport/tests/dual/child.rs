//! A child process for a peer.
#![cfg(unix)]

use std::error::Error;
use std::io;
use std::process::Command;

use rpc_transport::{Deadline, Step, TransportError};

use super::framing::reader;
use super::{bisync, twin, twin_test};
use crate::peer::{LONG, SHORT};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn spawn(command: Command) -> twin::Stream {
    let mut stream = twin::spawn(command).unwrap();
    stream.set_deadline(Deadline::total(Step::Reply, Some(LONG)));
    stream
}

/// The process ids that the child tells us, one a line.
#[bisync]
async fn process_ids(stream: &mut twin::Stream, count: usize) -> Vec<u32> {
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < count {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).await.unwrap(), 1);
        text.push(byte[0]);
    }
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Waits until there is no such process, not even a dead one that nobody asked for its end.
#[cfg(target_os = "linux")]
fn assert_reaped(process: u32) {
    use std::time::{Duration, Instant};

    let start = Instant::now();
    while std::path::Path::new(&format!("/proc/{process}")).exists() {
        assert!(start.elapsed() < LONG, "process {process} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(not(target_os = "linux"))]
fn assert_reaped(_: u32) {}

#[bisync]
#[twin_test]
async fn an_echo() {
    let mut stream = spawn(Command::new("cat"));
    assert_eq!(stream.peer(), "cat");
    stream.write_all(b"head", b"payload").await.unwrap();
    let mut incoming = twin::Incoming::default();
    incoming.fill(&mut reader(stream), 11).await.unwrap();
    assert_eq!(incoming.bytes(), b"headpayload");
}

#[bisync]
#[twin_test]
async fn the_end_of_a_child_is_the_end_of_the_stream() {
    let mut reader = reader(spawn(shell("printf ab")));
    let mut incoming = twin::Incoming::default();
    let error = incoming.fill(&mut reader, 8).await.unwrap_err();
    assert!(matches!(error, TransportError::Closed { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "sh closed the connection while we were waiting for a reply"
    );
    assert_eq!(incoming.bytes(), b"ab");
}

#[bisync]
#[twin_test]
async fn no_such_program() {
    let error = twin::spawn(Command::new("/nowhere/tvm_rpc")).unwrap_err();
    assert!(matches!(error, TransportError::Spawn { .. }), "{error:?}");
    assert_eq!(error.to_string(), "cannot start /nowhere/tvm_rpc");
    let source = error.source().unwrap().downcast_ref::<io::Error>();
    assert_eq!(source.unwrap().kind(), io::ErrorKind::NotFound);
}

#[bisync]
#[twin_test]
async fn a_silent_child_costs_the_time_that_it_may() {
    let mut stream = spawn(Command::new("cat"));
    for deadline in [
        Deadline::total(Step::Reply, Some(SHORT)),
        Deadline::each_wait(Step::Reply, Some(SHORT)),
    ] {
        stream.set_deadline(deadline);
        let error = stream.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "gave up on cat after 100ms of waiting for a reply"
        );
    }
}

#[bisync]
#[twin_test]
async fn a_child_leaves_when_its_input_ends() {
    let mut stream = spawn(shell("echo $$; exec cat"));
    let process = process_ids(&mut stream, 1).await[0];
    drop(stream);
    assert_reaped(process);
}

#[bisync]
#[twin_test]
async fn a_child_that_is_gone_already_is_reaped() {
    let mut stream = spawn(shell("echo $$"));
    let process = process_ids(&mut stream, 1).await[0];
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    drop(stream);
    assert_reaped(process);
}

/// It reads no input and takes no hint.
#[bisync]
#[twin_test]
async fn a_child_that_stays_is_ended_and_reaped() {
    let mut stream = spawn(shell("trap '' HUP TERM INT PIPE; echo $$; exec sleep 60"));
    let process = process_ids(&mut stream, 1).await[0];
    drop(stream);
    assert_reaped(process);
}

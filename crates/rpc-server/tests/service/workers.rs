//! Worker processes before they have a session.

use std::{env, fs};

use rpc_server::{Isolation, WorkerCommand};
use tempfile::TempDir;

use crate::process::{ServerProcess, arguments, kill};
use crate::service::{Service, until};

#[tokio::test]
async fn one_waits_when_no_session_is_under_way() {
    let server = ServerProcess::start();
    server.is_idle().await;
    let waits = server.workers()[0];
    let client = server.client().await;
    assert_eq!(client.int("test.pid").await, i64::from(waits));
    assert_eq!(server.workers(), [waits]);
    drop(client);
    server.is_idle().await;
    assert_ne!(server.workers(), [waits]);
}

#[tokio::test]
async fn one_that_dies_before_its_session_is_replaced() {
    let server = ServerProcess::start();
    for _ in 0..3 {
        server.is_idle().await;
        kill(server.workers()[0]);
        server.client().await.works().await;
    }
    server.is_idle().await;
    let dead = server.workers()[0];
    kill(dead);
    until(
        "another one",
        || matches!(server.workers()[..], [pid] if pid != dead),
    )
    .await;
}

/// The first one hears of its session, and is gone. The client notices nothing.
#[tokio::test]
async fn one_that_dies_on_its_session_is_replaced() {
    let folder = TempDir::new().unwrap();
    let first = folder.path().join("first");
    let script = format!(
        "if mkdir {}; then read line; exit 1; fi; exec {} {}",
        first.display(),
        env::current_exe().unwrap().display(),
        arguments("worker_process").join(" ")
    );
    let command = WorkerCommand::new("/bin/sh").arg("-c").arg(script);
    let service = Service::with(Isolation::Process(command), |builder| builder).await;
    until("the first one", || first.exists()).await;
    service.serves().await;
    service.serves().await;
}

#[tokio::test]
async fn one_that_cannot_be_started_costs_no_server() {
    for program in ["/no such program", "/bin/false", "/bin/true"] {
        let command = WorkerCommand::new(program);
        let service = Service::with(Isolation::Process(command), |builder| builder).await;
        for _ in 0..3 {
            let mut peer = service.peer().await;
            peer.shake("client:board").await;
            // Whether it was let in or not, it does not wait in vain.
            let _ = peer.rest().await;
        }
        service.is_idle().await;
        assert!(!service.served.is_finished());
    }
}

#[tokio::test]
async fn a_program_that_is_replaced_goes_on_serving() {
    let this = env::current_exe().unwrap();
    // A second name. A copy could not be run while another thread starts a process, which has the file
    // open for writing for a moment, as this one has.
    let folder = TempDir::new_in(this.parent().unwrap()).unwrap();
    let program = folder.path().join("server");
    fs::hard_link(this, &program).unwrap();
    let server = ServerProcess::of(&program);
    server.client().await.works().await;
    fs::remove_file(&program).unwrap();
    fs::write(&program, "something else").unwrap();
    for _ in 0..3 {
        server.client().await.works().await;
        server.is_idle().await;
    }
}

#[tokio::test]
async fn a_worker_that_nobody_started_says_so() {
    let mut command = std::process::Command::new(env::current_exe().unwrap());
    command.args(arguments("worker_process"));
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("NoServer"), "{told}");
}

/// It takes its session, as far as the server can see, and goes on and on.
#[tokio::test]
async fn one_that_does_not_end_in_time_is_killed() {
    let script = "echo >&0; while :; do sleep 600; done";
    let command = WorkerCommand::new("/bin/sh").arg("-c").arg(script);
    let service = Service::with(Isolation::Process(command), |builder| builder).await;
    let mut peer = service.peer().await;
    peer.shake("client:board -timeout=0.1").await;
    peer.is_accepted().await;
    let told = String::from_utf8(peer.rest().await).unwrap();
    let expired = "RPCSessionTimeoutError: Your 0.1s session has expired";
    assert!(told.contains(expired), "{told:?}");
    service.is_idle().await;
}

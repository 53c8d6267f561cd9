//! How servers end, and what is left then.

use std::path::Path;

use rpc_session::args;
use tokio::net::TcpStream;

use crate::process::{ServerProcess, own_children, runs};
use crate::service::{Service, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_ends_its_sessions() {
    for mut service in Service::both(|builder| builder.with_slots(2)).await {
        let idle = service.client().await;
        let waiting = service.client().await;
        let dir = waiting.text("test.work_dir").await;
        let pid = u32::try_from(waiting.int("test.pid").await).unwrap();
        let mut silent = service.peer().await;
        service.stop().await;
        assert!(!Path::new(&dir).exists());
        assert!(service.dirs().is_empty());
        assert!(pid == std::process::id() || !runs(pid));
        assert!(
            idle.try_call("rpc.test.addone", args![1])
                .await
                .unwrap_err()
                .is_fatal()
        );
        silent.is_closed().await;
        assert!(TcpStream::connect(service.addr).await.is_err());
        assert_eq!(service.handle.sessions(), 0);
        // Nobody is there any more.
        service.handle.stop();
    }
}

#[tokio::test]
async fn clients_that_wait_are_closed_when_the_server_is_stopped() {
    let mut service = Service::start().await;
    let _first = service.client().await;
    let mut second = service.peer().await;
    second.shake("client:board").await;
    until("it to wait", || service.handle.waiting() == 1).await;
    service.stop().await;
    second.is_closed().await;
}

#[tokio::test]
async fn a_server_that_is_dropped_ends_its_sessions() {
    let service = Service::start().await;
    let client = service.client().await;
    let dir = client.text("test.work_dir").await;
    let pid = client.int("test.pid").await.try_into().unwrap();
    service.served.abort();
    let error = client.try_call("test.hang", args![]).await.unwrap_err();
    assert!(error.is_fatal());
    until("what is left to go", || {
        !runs(pid) && !Path::new(&dir).exists()
    })
    .await;
    let ours = own_children();
    assert!(!ours.contains(&pid));
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_nothing() {
    let mut server = ServerProcess::start();
    server.is_idle().await;
    let client = server.client().await;
    client
        .0
        .files()
        .upload("x.bin", &[1; 100_000])
        .await
        .unwrap();
    let child = client.int("test.leave_a_child").await.try_into().unwrap();
    let workers = server.workers();
    assert_eq!(workers.len(), 1);
    assert_eq!(server.dirs().len(), 1);
    // In the middle of a call.
    let (error, ()) = tokio::join!(client.try_call("test.hang", args![]), async {
        tokio::task::yield_now().await;
        server.kill();
    });
    assert!(error.unwrap_err().is_fatal());
    until("what is left to go", || {
        server.dirs().is_empty() && !runs(child) && !workers.iter().copied().any(runs)
    })
    .await;
}

#[tokio::test]
async fn workers_that_wait_end_with_a_server_that_is_killed() {
    let mut server = ServerProcess::start();
    server.is_idle().await;
    let workers = server.workers();
    server.kill();
    until("they to end", || !workers.iter().copied().any(runs)).await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_refused_at_the_start() {
    let builder = rpc_server::ServerBuilder::new("board", crate::functions::on_threads());
    let error = builder
        .with_work_dir("/dev/null/x")
        .bind("127.0.0.1", 0..=0);
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "no work directories in /dev/null/x");
}

#[tokio::test]
async fn a_folder_is_made_if_there_is_none() {
    let there = tempfile::TempDir::new().unwrap();
    let folder = there.path().join("deep/sessions");
    let service = Service::with(crate::functions::in_workers(), |builder| {
        builder.with_work_dir(&folder)
    })
    .await;
    let client = service.client().await;
    assert!(Path::new(&client.text("test.work_dir").await).starts_with(&folder));
}

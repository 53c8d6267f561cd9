//! What a session has to itself.

use std::path::Path;

use rpc_session::args;

use crate::process::{ServerProcess, runs};
use crate::service::{Service, until};

#[tokio::test]
async fn each_session_has_a_directory_that_goes_with_it() {
    for service in Service::both(|builder| builder.with_slots(2)).await {
        let (one, two) = (service.client().await, service.client().await);
        for client in [&one, &two] {
            client.0.files().upload("deep/x.bin", b"123").await.unwrap();
        }
        let (of_one, of_two) = (
            one.text("test.work_dir").await,
            two.text("test.work_dir").await,
        );
        assert_ne!(of_one, of_two);
        for dir in [&of_one, &of_two] {
            assert!(Path::new(dir).join("deep/x.bin").is_file());
            let name = Path::new(dir).file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with("tvm-rpc-"), "{name}");
        }
        drop(one);
        until("its directory to go", || !Path::new(&of_one).exists()).await;
        assert!(Path::new(&of_two).exists());
        drop(two);
        service.is_idle().await;
    }
}

#[tokio::test]
async fn nobody_else_can_look_into_it() {
    use std::os::unix::fs::MetadataExt;
    let service = Service::start().await;
    let client = service.client().await;
    let dir = client.text("test.work_dir").await;
    assert_eq!(std::fs::metadata(dir).unwrap().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn each_session_has_a_process() {
    let service = Service::start().await;
    let mut seen = vec![i64::from(std::process::id())];
    for _ in 0..3 {
        let client = service.client().await;
        let pid = client.int("test.pid").await;
        assert!(!seen.contains(&pid));
        seen.push(pid);
        drop(client);
        service.is_idle().await;
        assert!(!runs(pid.try_into().unwrap()));
    }
}

#[tokio::test]
async fn the_work_directory_is_the_current_one_and_there_is_no_input() {
    let service = Service::start().await;
    let client = service.client().await;
    assert_eq!(
        client.text("test.current_dir").await,
        client.text("test.work_dir").await
    );
    assert_eq!(client.text("test.stdin").await, "");
}

#[tokio::test]
async fn what_a_session_prints_is_not_among_the_servers_output() {
    let mut server = ServerProcess::start();
    let client = server.client().await;
    client
        .try_call("test.print", args!["printed by a function"])
        .await
        .unwrap();
    drop(client);
    server.is_idle().await;
    assert_eq!(server.kill(), "");
}

#[tokio::test]
async fn what_a_session_started_ends_with_it() {
    let service = Service::start().await;
    let client = service.client().await;
    let child = client.int("test.leave_a_child").await.try_into().unwrap();
    client.works().await;
    assert!(runs(child));
    drop(client);
    service.is_idle().await;
    until("the child to end", || !runs(child)).await;

    let client = service.client().await;
    let child = client.int("test.leave_a_child").await.try_into().unwrap();
    client.try_call("test.abort", args![]).await.unwrap_err();
    service.is_idle().await;
    until("the child to end", || !runs(child)).await;
}

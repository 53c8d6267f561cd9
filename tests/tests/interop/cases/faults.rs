//! Peers that die.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rpc_proto::DataType;
use rpc_session::{SessionError, SessionOptions, args};
use rpc_tests::peers::{Server, Tracker};
use rpc_tests::wait_until;
use rpc_tracker_client::RequestOptions;
use tempfile::TempDir;

use super::bench::{call, until, value};
use super::{Connector, RemoteSession, TrackerClient, bisync, case};
use crate::support::{SOON, address};

#[track_caller]
fn assert_lost(error: &SessionError) {
    assert!(
        matches!(
            error,
            SessionError::Transport(_) | SessionError::Ended { .. }
        ),
        "{error:?}"
    );
    assert!(error.is_fatal() && !error.is_session_timeout(), "{error:?}");
}

#[bisync]
#[case]
async fn a_call_to_a_killed_server_ends_at_once() {
    let mut server = Server::builder().test_functions().start();
    let options = SessionOptions::default();
    let session = RemoteSession::connect(&address(server.addr()), "", &options)
        .await
        .unwrap();
    let cpu = session.cpu(0);
    let mut held = Vec::new();
    for _ in 0..1000 {
        let tensor = cpu.empty(&[1], DataType::INT8).await.unwrap();
        let function = session.function("rpc.test.addone").await.unwrap();
        held.push((tensor, function));
    }

    let directory = TempDir::new().unwrap();
    let started = directory.path().join("started");
    let path = started.to_str().unwrap().to_owned();
    let killer = thread::spawn(move || {
        wait_until(SOON, "the call to start", || started.exists());
        server.kill();
        Instant::now()
    });
    let error = call(&session, "rpc.test.hang", args![path])
        .await
        .unwrap_err();
    let killed = killer.join().unwrap();
    assert_lost(&error);
    assert!(killed.elapsed() < Duration::from_secs(2));

    let start = Instant::now();
    let again = call(&session, "rpc.test.addone", args![1])
        .await
        .unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
    drop(held);
    session.close().await;
    drop(session);
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// The process of the session dies, the server does not.
#[bisync]
#[case]
async fn a_crash_of_the_session_is_a_lost_connection() {
    let server = Server::builder().test_functions().start();
    let options = SessionOptions::default();
    let session = RemoteSession::connect(&address(server.addr()), "", &options)
        .await
        .unwrap();
    let error = call(&session, "rpc.test.abort", &[]).await.unwrap_err();
    assert_lost(&error);
}

#[bisync]
#[case]
async fn an_upload_to_a_killed_server_ends_at_once() {
    let mut server = Server::builder().start();
    let options = SessionOptions::default();
    let session = RemoteSession::connect(&address(server.addr()), "", &options)
        .await
        .unwrap();
    const NBYTES: usize = 64 << 20;
    let mut content = std::io::Cursor::new(vec![1; NBYTES]);
    let mut kill = |_, _| server.kill();
    let error = session
        .files()
        .upload_from("large", NBYTES as u64, &mut content, &mut kill)
        .await
        .unwrap_err();
    assert_lost(&error);
}

#[bisync]
#[case]
async fn another_device_takes_over() {
    let tracker = Tracker::start();
    let start = || {
        Server::builder()
            .key("pool")
            .tracker(tracker.addr())
            .test_functions()
            .start()
    };
    let servers = Mutex::new([start(), start()]);
    let client = TrackerClient::new(address(tracker.addr()));
    until(SOON, "two free devices", async || {
        let summary = client.summary().await.unwrap();
        summary
            .queues
            .get("pool")
            .is_some_and(|queue| queue.free == 2)
    })
    .await;

    let runs = AtomicU32::new(0);
    let killed = Mutex::new(String::new());
    let work = async |session: RemoteSession| -> Result<String, SessionError> {
        if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            let peer = session.peer().to_owned();
            let mut servers = servers.lock().unwrap();
            let server = servers
                .iter_mut()
                .find(|server| server.addr().to_string() == peer);
            server.unwrap().kill();
            *killed.lock().unwrap() = peer;
        }
        let sum: i64 = call(&session, "rpc.test.addone", args![1])
            .await?
            .try_into()?;
        assert_eq!(sum, 2);
        Ok(session.peer().to_owned())
    };
    let done_by = client
        .request_and_run(&RequestOptions::new("pool"), &Connector::default(), work)
        .await
        .unwrap();
    assert_eq!(runs.into_inner(), 2);
    assert_ne!(done_by, killed.into_inner().unwrap());
}

#[bisync]
#[case]
async fn a_tracker_that_restarts_is_found_again() {
    let mut tracker = Tracker::start();
    let _server = Server::builder()
        .key("faithful")
        .tracker(tracker.addr())
        .test_functions()
        .start();
    let client = TrackerClient::new(address(tracker.addr()));
    let request = RequestOptions::new("faithful");
    let options = SessionOptions::default();
    let session = RemoteSession::request(&client, &request, &options)
        .await
        .unwrap();
    session.close().await;
    drop(session);

    tracker.kill();
    tracker.restart_on_same_port();
    // The client holds a connection to the old one. The server tries again every 5 s.
    let session = RemoteSession::request(&client, &request, &options)
        .await
        .unwrap();
    let sum: i64 = value(&session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
}

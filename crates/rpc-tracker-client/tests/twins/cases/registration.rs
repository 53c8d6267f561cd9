//! The server's side of a tracker.

use rpc_tracker_client::{ConnectOptions, Limits, Retry, TrackerClientOptions};
use rpc_tracker_client::{ServerAddr, ServerInfo};

use super::{TrackerConnection, bisync, twin_test};
use crate::support::{FakeTracker, Reserved};

#[bisync]
#[twin_test]
async fn a_server_registers_on_one_connection() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        for (request, answer) in [
            (r#"[5, {"key": "server:k", "addr": [null, 9090]}]"#, "0"),
            (r#"[3, "k", [9090, "k:0.5"], null]"#, "0"),
            (r#"[3, "k", [9090, "k:0.6"], "10.1.2.3"]"#, "0"),
            ("[7]", r#"["k:0.6", "k:0.5"]"#),
            ("[1]", "0"),
            ("[6]", r#"[0, {"queue_info": {}, "server_info": []}]"#),
            (r#"[2, "secret"]"#, "-1"),
            ("[7]", "[]"),
        ] {
            peer.expect(request);
            peer.answer(answer);
        }
        peer.expect_end();
        door.is_quiet();
    });
    let options = TrackerClientOptions::default();
    let connected = TrackerConnection::connect(&tracker.address(), &options).await;
    let mut connection = connected.unwrap();
    let info = ServerInfo {
        key: "server:k".into(),
        addr: Some(ServerAddr {
            host: None,
            port: 9090.into(),
        }),
    };
    connection.update_info(info).await.unwrap();
    connection.put("k", 9090, "k:0.5", None).await.unwrap();
    let custom = connection.put("k", 9090, "k:0.6", Some("10.1.2.3"));
    custom.await.unwrap();
    let pending = connection.pending_match_keys().await.unwrap();
    assert_eq!(pending, ["k:0.6", "k:0.5"]);
    connection.ping().await.unwrap();
    assert!(connection.summary().await.unwrap().servers.is_empty());
    // A refusal leaves the connection as it was.
    let error = connection.stop("secret").await.unwrap_err();
    assert_eq!(error.retry(), Retry::SameConnection);
    assert!(connection.pending_match_keys().await.unwrap().is_empty());
    drop(connection);
    tracker.finish();
}

/// Nothing was sent, so that nothing is lost.
#[bisync]
#[twin_test]
async fn a_request_that_no_frame_holds_leaves_the_connection_as_it_was() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        peer.expect("[1]");
        peer.answer("0");
        peer.expect_end();
    });
    let connect = ConnectOptions::default().with_limits(Limits::default().with_tracker_frame(3));
    let options = TrackerClientOptions::default().with_connect(connect);
    let connected = TrackerConnection::connect(&tracker.address(), &options).await;
    let mut connection = connected.unwrap();
    let error = connection.stop("secret").await.unwrap_err();
    assert_eq!(error.retry(), Retry::Never);
    connection.ping().await.unwrap();
    drop(connection);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_server_hears_of_a_tracker_that_is_gone() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        peer.expect("[7]");
    });
    let options = TrackerClientOptions::default();
    let connected = TrackerConnection::connect(&tracker.address(), &options).await;
    let mut connection = connected.unwrap();
    let error = connection.pending_match_keys().await.unwrap_err();
    assert_eq!(error.retry(), Retry::NewConnection);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn connecting_has_no_patience_of_its_own() {
    let options = TrackerClientOptions::default();
    let reserved = Reserved::port();
    let error = TrackerConnection::connect(&reserved.address(), &options)
        .await
        .unwrap_err();
    assert_eq!(error.retry(), Retry::NewConnection);
}

//! Peers that harm only themselves.

use std::time::Duration;

use rpc_tracker::TrackerOptions;
use tokio::io::AsyncWriteExt;

use crate::peer::{GREETING, Peer, Service, frame, within};

#[tokio::test]
async fn a_length_that_is_not_allowed_closes_its_connection_only() {
    let service = Service::start().await;
    let mut other = service.peer().await;
    for length in [i32::MAX, 0, -1, i32::MIN, 1_048_577] {
        let mut peer = service.peer().await;
        peer.send(&length.to_le_bytes()).await;
        peer.is_closed().await;
        other.ping().await;
    }
}

#[tokio::test]
async fn what_is_no_request_closes_its_connection_only() {
    let service = Service::start().await;
    let mut other = service.peer().await;
    for text in [
        "{}",
        "[",
        "[99]",
        "[0]",
        "[]",
        "[\"1\"]",
        "null",
        "[3, \"k\"]",
        "[4, \"k\"]",
        "[2]",
    ] {
        let mut peer = service.peer().await;
        peer.say(text).await;
        peer.is_closed().await;
        other.ping().await;
    }
}

#[tokio::test]
async fn text_that_is_not_utf8_closes_its_connection() {
    let service = Service::start().await;
    let mut peer = service.peer().await;
    peer.send(b"\x03\0\0\0\xff\xff\xff").await;
    peer.is_closed().await;
}

#[tokio::test]
async fn requests_ahead_of_a_wrong_one_are_answered() {
    let service = Service::start().await;
    let mut peer = service.peer().await;
    peer.send(&[frame("[1]"), frame("[1]"), frame("[99]")].concat())
        .await;
    assert_eq!(peer.rest().await, [frame("0"), frame("0")].concat());
}

#[tokio::test]
async fn strangers_get_no_greeting() {
    let service = Service::start().await;
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: tracker\r\n\r\n"[..],
        b"\x71\xf2\x0f\x00\x09\x00\x00\x00client:x1",
        b"\xff",
    ] {
        let mut peer = Peer::connect(service.addr).await;
        peer.send(bytes).await;
        peer.is_closed().await;
    }
}

#[tokio::test]
async fn a_peer_that_does_not_greet_is_closed_and_one_that_did_may_be_silent() {
    let options = TrackerOptions::default().with_message_timeout(Duration::from_millis(100));
    let service = Service::with(options).await;
    let mut idle = service.peer().await;
    let (mut silent, mut half) = (
        Peer::connect(service.addr).await,
        Peer::connect(service.addr).await,
    );
    half.send(&GREETING[..2]).await;
    silent.is_closed().await;
    half.is_closed().await;
    idle.ping().await;
}

#[tokio::test]
async fn a_frame_that_is_not_completed_closes_its_connection() {
    let options = TrackerOptions::default().with_message_timeout(Duration::from_millis(100));
    let service = Service::with(options).await;
    let (mut in_length, mut in_text) = (service.peer().await, service.peer().await);
    in_length.send(&frame("[1]")[..2]).await;
    in_text
        .send(&[frame("[1]"), frame("[1]")[..5].to_vec()].concat())
        .await;
    assert_eq!(in_text.hear().await, "0");
    in_text.is_closed().await;
    in_length.is_closed().await;
}

#[tokio::test]
async fn silent_peers_do_not_hold_up_others() {
    let service = Service::start().await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(Peer::connect(service.addr).await);
        let mut half = service.peer().await;
        half.send(b"\xff\0").await;
        silent.push(half);
    }
    service.peer().await.ping().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_closed() {
    let options = TrackerOptions::default().with_unread_output(64 << 10);
    let service = Service::with(options).await;
    // So that a summary is worth something.
    let mut server = service.peer().await;
    for number in 0..1000 {
        server
            .put(&format!("key number {number}"), &format!("{number}"))
            .await;
    }
    let mut deaf = service.peer().await;
    let connected = service.handle.connections();
    let asking = async {
        // Until the tracker is gone.
        while deaf
            .stream
            .write_all(&frame("[6]").repeat(100))
            .await
            .is_ok()
        {}
    };
    within("the tracker to close the connection", asking).await;
    service
        .until(|service| service.handle.connections() < connected)
        .await;
    server.ping().await;
}

#[tokio::test]
async fn answers_may_be_read_late() {
    let service = Service::start().await;
    let mut peer = service.peer().await;
    for number in 0..100 {
        peer.put(&format!("key number {number}"), &format!("{number}"))
            .await;
    }
    // More than the system's buffers for one segment, less than what may be left unread.
    for _ in 0..200 {
        peer.say("[6]").await;
    }
    for _ in 0..200 {
        let summary = peer.hear().await;
        assert!(summary.contains("key number 99"));
    }
}

#[tokio::test]
async fn requests_over_a_limit_are_refused_and_the_connection_stays() {
    let options = TrackerOptions::default()
        .with_pending_requests(1)
        .with_free_devices(1);
    let service = Service::with(options).await;
    let mut peer = service.peer().await;
    peer.request("k").await;
    peer.request("k").await;
    let refused = peer.hear().await;
    assert_eq!(
        refused,
        r#"[-1, "this connection has too many requests waiting"]"#
    );
    peer.put("other", "1").await;
    assert_eq!(peer.ask(r#"[3, "other", [9090, "2"], null]"#).await, "-1");
    peer.ping().await;
}

#[tokio::test]
async fn an_answer_over_its_limit_is_a_refusal() {
    let limits = rpc_proto::Limits::default().with_tracker_reply(60);
    let service = Service::with(TrackerOptions::default().with_limits(limits)).await;
    let mut peer = service.peer().await;
    peer.put("a key that is rather long", "m").await;
    assert_eq!(peer.ask("[6]").await, "-1");
    peer.ping().await;
}

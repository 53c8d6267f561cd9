//! How connections begin, and how they should not.

use std::time::Duration;

use rpc_server::{ServerBuilder, ServerError};

use crate::client::{INIT, handshake};
use crate::functions::{in_workers, on_threads};
use crate::service::{KEY, Service, until};

const CLIENT: &str = "client:board";

#[tokio::test]
async fn a_client_is_let_in_and_served() {
    for service in Service::both(|builder| builder).await {
        let mut peer = service.peer().await;
        peer.shake(CLIENT).await;
        peer.has_session().await;
        drop(peer);
        service.is_idle().await;
    }
}

#[tokio::test]
async fn a_handshake_may_come_in_pieces_and_with_the_first_request() {
    let service = Service::with(on_threads(), |builder| builder).await;
    let mut peer = service.peer().await;
    peer.stream.set_nodelay(true).unwrap();
    for byte in handshake(CLIENT.as_bytes()) {
        peer.send(&[byte]).await;
        tokio::task::yield_now().await;
    }
    peer.has_session().await;
    drop(peer);

    let mut peer = service.peer().await;
    peer.send(&[&handshake(CLIENT.as_bytes()), INIT].concat())
        .await;
    peer.is_accepted().await;
    assert_eq!(peer.receive(12).await[..8], [12, 0, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn wrong_keys_are_refused() {
    let service = Service::with(on_threads(), |builder| builder).await;
    for key in [
        "",
        " ",
        "client:",
        "client:boar",
        "client:board2",
        "client:board:0.5",
        "board",
        "server:board",
        "clientboard",
        "client: board",
        "client:\u{e9}",
    ] {
        let mut peer = service.peer().await;
        peer.shake(key).await;
        peer.is_refused().await;
    }
    service.serves().await;
}

#[tokio::test]
async fn bytes_of_other_protocols_are_not_answered() {
    let service = Service::with(on_threads(), |builder| builder).await;
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x71\xf2\x02\x00",
        // Lengths that are negative, and too large.
        b"\x71\xf2\x0f\x00\xff\xff\xff\xff",
        b"\x71\xf2\x0f\x00\xff\xff\xff\x7f",
        b"\x71\xf2\x0f\x00\x01\x10\x00\x00",
        // A key that is no text.
        b"\x71\xf2\x0f\x00\x09\x00\x00\x00client:\xff\xfe",
    ] {
        let mut peer = service.peer().await;
        peer.send(bytes).await;
        peer.is_closed().await;
    }
    service.serves().await;
}

#[tokio::test]
async fn the_end_of_a_connection_in_its_handshake_is_nothing() {
    let service = Service::with(on_threads(), |builder| builder).await;
    let whole = handshake(CLIENT.as_bytes());
    for length in 0..whole.len() {
        let mut peer = service.peer().await;
        peer.send(&whole[..length]).await;
        // And that it begins a session and goes is nothing either.
        drop(peer);
    }
    for _ in 0..20 {
        let mut peer = service.peer().await;
        peer.shake(CLIENT).await;
        drop(peer);
    }
    service.serves().await;
    service.is_idle().await;
}

#[tokio::test]
async fn silent_connections_are_in_nobodys_way() {
    let limit = Duration::from_secs(1);
    let service = Service::with(in_workers(), |builder| {
        builder.with_handshake_timeout(limit)
    })
    .await;
    let mut silent = Vec::new();
    let whole = handshake(CLIENT.as_bytes());
    for length in 0..whole.len() {
        let mut peer = service.peer().await;
        peer.send(&whole[..length]).await;
        silent.push(peer);
    }
    service.serves().await;
    // They are closed when their time is up.
    for peer in &mut silent {
        peer.is_closed().await;
    }
}

#[tokio::test]
async fn handshakes_have_places_that_become_free_again() {
    let service = Service::with(on_threads(), |builder| {
        builder
            .with_handshakes(2)
            .with_handshake_timeout(Duration::from_millis(300))
    })
    .await;
    for _ in 0..3 {
        let _silent = [service.peer().await, service.peer().await];
        let mut refused = service.peer().await;
        refused.shake("client:other").await;
        refused.is_refused().await;
        service.serves().await;
    }
}

#[tokio::test]
async fn a_session_or_a_wait_takes_no_place_of_a_handshake() {
    let service = Service::with(on_threads(), |builder| builder.with_handshakes(1)).await;
    let client = service.client().await;
    let mut waiting = Vec::new();
    for count in 1..=3 {
        let mut peer = service.peer().await;
        peer.shake(CLIENT).await;
        until("it to wait", || service.handle.waiting() == count).await;
        waiting.push(peer);
    }
    let mut refused = service.peer().await;
    refused.shake("client:other").await;
    refused.is_refused().await;
    client.works().await;
}

#[tokio::test]
async fn a_refusal_arrives_whatever_was_sent_with_the_handshake() {
    let service = Service::with(on_threads(), |builder| builder).await;
    let mut peer = service.peer().await;
    let more = vec![0; 100_000];
    peer.send(&[handshake(b"client:other"), more].concat())
        .await;
    assert_eq!(peer.receive(4).await, crate::client::MISMATCH);
}

#[tokio::test]
async fn it_listens_on_ipv6() {
    let server = ServerBuilder::new(KEY, on_threads());
    // Not every machine has it.
    let Ok(server) = server.bind("::1", 0..=0) else {
        return;
    };
    let mut service = Service::of(server);
    assert!(service.addr.is_ipv6());
    service.serves().await;
    service.stop().await;
}

#[tokio::test]
async fn a_key_may_be_empty_and_hold_colons() {
    for key in ["", "127.0.0.1:5555", "\u{e9}"] {
        let server = ServerBuilder::new(key, on_threads());
        let mut service = Service::of(server.bind("127.0.0.1", 0..=0).unwrap());
        let mut peer = service.peer().await;
        peer.shake(&format!("client:{key}")).await;
        let expected = handshake(format!("server:{key}").as_bytes());
        assert_eq!(peer.receive(expected.len()).await, expected);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_key_that_nobody_could_name_is_refused_at_the_start() {
    let bind = |key: &str| {
        let server = ServerBuilder::new(key, on_threads());
        server.bind("127.0.0.1", 0..=0).map(drop)
    };
    for key in ["my board", "board\n", "\u{1c}", " "] {
        let error = bind(key).unwrap_err();
        assert!(matches!(error, ServerError::Key(_)), "{error}");
    }
    let error = bind(&"k".repeat(5000)).unwrap_err();
    assert!(matches!(error, ServerError::LongKey(_)), "{error}");
}

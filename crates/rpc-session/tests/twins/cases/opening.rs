//! How a session begins, or does not.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use rpc_proto::{Packet, Value, Values};
use rpc_session::{SessionConstructor, SessionError, SessionOptions};

use super::session::{finish, open, open_with};
use super::{RemoteSession, bisync, twin_test};
use crate::support::{KEY, PATIENCE, Server, Talk};

#[bisync]
#[twin_test]
async fn the_first_bytes_are_those_of_the_reference() {
    // `Server::start` compares the init packet with that of the reference's client.
    let server = Server::start(Talk::goodbye);
    let session = open(&server).await;
    assert_eq!(session.peer(), server.address().to_string());
    drop(session);
    assert!(finish(server).await.is_empty());
}

#[bisync]
#[twin_test]
async fn key_and_time_limit_go_with_the_handshake() {
    let server = Server::raw(|socket| {
        let mut talk = Talk::new(socket);
        let key = talk.shake_hands();
        talk.init();
        talk.goodbye();
        key
    });
    let limit = Duration::from_secs(30);
    let options = SessionOptions::default().with_session_timeout(limit);
    drop(open_with(&server, &options).await.unwrap());
    assert_eq!(finish(server).await, "client:board -timeout=30");
}

#[bisync]
#[twin_test]
async fn a_constructor_goes_with_the_init_packet() {
    let server = Server::raw(|socket| {
        let mut talk = Talk::new(socket);
        talk.shake_hands();
        let request = talk.next().unwrap();
        let constructor = Values::from_iter([
            Value::from("rpc.Connect"),
            "10.0.0.7".into(),
            9090.into(),
            "far".into(),
            false.into(),
        ]);
        assert_eq!(request.packet(), Packet::init(constructor));
        // Real servers differ in what they return here, and clients do not look at it.
        talk.answer(&Packet::Return(Values::default()));
        talk.goodbye();
    });
    let far = SessionConstructor::connect(&"10.0.0.7:9090".parse().unwrap(), "far");
    let options = SessionOptions::default().with_constructor(far);
    drop(open_with(&server, &options).await.unwrap());
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_server_that_refuses_to_construct_says_why_and_is_left_in_order() {
    const WHY: &str =
        "Check failed: client_protocol_ver == server_protocol_ver (0.8.0 vs. 0.7.0) is false";
    let server = Server::raw(|socket| {
        let mut talk = Talk::new(socket);
        talk.shake_hands();
        talk.next().unwrap();
        talk.exception(WHY);
        talk.goodbye();
    });
    let error = open_with(&server, &SessionOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.remote().unwrap().message(), WHY);
    assert!(!error.is_fatal());
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_server_of_another_dialect_does_not_open_a_session() {
    let server = Server::raw(|socket| {
        let mut talk = Talk::new(socket);
        talk.shake_hands();
        talk.next().unwrap();
        // What a server of TVM before 0.22 answers: its type code for null is 4.
        talk.send(b"\x0c\0\0\0\0\0\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0");
        talk.goodbye();
    });
    let error = open_with(&server, &SessionOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::Opening(_)), "{error}");
    assert_eq!(
        in_full(&error),
        "the server's answer to the opening of the session cannot be understood: \
         it may speak another dialect (that of TVM before 0.22): \
         pointer at offset 20 needs 8 bytes, but only 0 are left in the message"
    );
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_server_that_takes_too_long_to_construct_is_given_up() {
    const LIMIT: Duration = Duration::from_millis(100);
    let server = Server::raw(|socket| {
        let mut talk = Talk::new(socket);
        talk.shake_hands();
        talk.next().unwrap();
        talk.end();
    });
    let options = SessionOptions::default().with_init_timeout(LIMIT);
    let start = Instant::now();
    let error = open_with(&server, &options).await.unwrap_err();
    assert!(start.elapsed() >= LIMIT && start.elapsed() < PATIENCE);
    assert_eq!(
        error.to_string(),
        format!(
            "gave up on {} after 100ms of waiting for a reply",
            server.address()
        )
    );
    assert!(error.is_fatal() && !error.is_session_timeout());
    finish(server).await;
}

/// What a server sends before it closes the connection, and what its client makes of that.
#[bisync]
async fn refused(bytes: &'static [u8]) -> SessionError {
    let server = Server::raw(move |mut socket| {
        // The whole of the client's handshake, so that closing is no reset.
        socket.read_exact(&mut [0; 8 + 12]).unwrap();
        socket.write_all(bytes).unwrap();
    });
    let error = open_with(&server, &SessionOptions::default())
        .await
        .unwrap_err();
    finish(server).await;
    assert!(error.is_fatal(), "{error}");
    error
}

/// The error and its causes, in one text.
fn in_full(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", in_full(source)),
        None => error.to_string(),
    }
}

#[bisync]
#[twin_test]
async fn a_server_that_closes_within_the_handshake_is_told_as_such() {
    const REPLY: &[u8] = b"\x71\xf2\x0f\0\x0c\0\0\0server:board";
    for cut in [0, 1, 3, 4, 5, 8, 19] {
        let text = in_full(&refused(&REPLY[..cut]).await);
        assert!(text.contains("closed"), "cut at {cut}: {text}");
    }
}

#[bisync]
#[twin_test]
async fn refusals_are_told_apart() {
    for (code, word) in [
        (b"\x72\xf2\x0f\0", "already"),
        (b"\x73\xf2\x0f\0", "key"),
        (b"HTTP", "no"),
    ] {
        let text = in_full(&refused(code).await);
        assert!(text.contains(word), "{text}");
    }
}

#[bisync]
#[twin_test]
async fn a_key_that_cannot_be_sent_is_refused_before_anything_is_connected() {
    let nobody = "127.0.0.1:1".parse().unwrap();
    let options = SessionOptions::default();
    let opened = RemoteSession::connect(&nobody, "two words", &options).await;
    assert!(matches!(opened, Err(SessionError::Key(_))), "{opened:?}");
    let opened = RemoteSession::connect(&nobody, KEY, &options).await;
    assert!(
        matches!(opened, Err(SessionError::Transport(_))),
        "{opened:?}"
    );
}

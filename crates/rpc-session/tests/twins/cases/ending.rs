//! How a session ends.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rpc_proto::{Packet, Value};
use rpc_session::{SessionError, SessionOptions, args};

use super::session::{finish, open, open_with};
use super::{RemoteSession, bisync, twin_test};
use crate::support::talk::encoded;
use crate::support::{PATIENCE, Server, Talk};

const FUNCTION: u64 = 10;
const TIME_IS_UP: &str = "RPCSessionTimeoutError: Your 1.0s session has expired, try to increase the \"session_timeout\" value.";

#[bisync]
#[twin_test]
async fn close_tells_the_server_at_once_and_what_comes_later_fails() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.goodbye()
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    session.close().await;
    // The connection is closed although session and function are still here.
    assert!(finish(server).await.is_empty());
    let closed = |error: SessionError| matches!(error, SessionError::Closed);
    assert!(closed(function.call(&[]).await.unwrap_err()));
    assert!(closed(session.get_function("f").await.unwrap_err()));
    session.close().await;
    session.clone().close().await;
    drop(function);
    assert!(closed(session.cpu(0).sync().await.unwrap_err()));
}

#[bisync]
#[twin_test]
async fn the_last_clone_that_goes_says_goodbye() {
    let server = Server::start(|talk| {
        talk.request();
        talk.done();
        talk.goodbye();
    });
    let session = open(&server).await;
    let clone = session.clone();
    let files = session.files();
    drop((session, files));
    clone.cpu(0).sync().await.unwrap();
    drop(clone);
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_silent_server_is_given_up_and_left() {
    const LIMIT: Duration = Duration::from_millis(100);
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        talk.end();
    });
    let options = SessionOptions::default().with_reply_timeout(Some(LIMIT));
    let session = open_with(&server, &options).await.unwrap();
    let function = session.function("f").await.unwrap();
    let start = Instant::now();
    let error = function.call(&[]).await.unwrap_err();
    // Not the time that the server may take to construct the session, which is 60 s.
    assert!(start.elapsed() >= LIMIT && start.elapsed() < PATIENCE);
    assert_eq!(
        error.to_string(),
        format!(
            "gave up on {} after 100ms of waiting for a reply",
            session.peer()
        )
    );
    // The server sees the end of the stream while the session is still held.
    finish(server).await;
    let again = function.call(&[]).await.unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
}

/// Bytes that come for ever are not a reply.
#[bisync]
#[twin_test]
async fn a_server_that_never_comes_to_the_point_is_given_up() {
    const LIMIT: Duration = Duration::from_millis(200);
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        // Packets of no bytes, which mean nothing.
        talk.dribble(&[0; 8]);
    });
    let options = SessionOptions::default().with_reply_timeout(Some(LIMIT));
    let session = open_with(&server, &options).await.unwrap();
    let function = session.function("f").await.unwrap();
    let error = function.call(&[]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "gave up on {} after 200ms of waiting for a reply",
            session.peer()
        )
    );
    drop((function, session));
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn silence_while_nothing_is_due_is_no_failure() {
    let (tell, hear) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        talk.value(1);
        // Longer than the client waits for a reply.
        let start = Instant::now();
        hear.recv_timeout(PATIENCE).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(300));
        talk.called(FUNCTION, []);
        talk.value(2);
        talk.goodbye();
    });
    let limit = Some(Duration::from_millis(100));
    let options = SessionOptions::default().with_reply_timeout(limit);
    let session = open_with(&server, &options).await.unwrap();
    let function = session.function("f").await.unwrap();
    function.call(&[]).await.unwrap();
    super::pause(Duration::from_millis(350)).await;
    tell.send(()).unwrap();
    let value: i64 = function.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(value, 2);
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_server_that_takes_nothing_is_given_up() {
    let (tell, hear) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        hear.recv_timeout(PATIENCE).unwrap();
    });
    let limit = Some(Duration::from_millis(200));
    let options = SessionOptions::default().with_reply_timeout(limit);
    let session = open_with(&server, &options).await.unwrap();
    let function = session.function("f").await.unwrap();
    // More than the system's buffers hold.
    let bytes = vec![0; 64 << 20];
    let error = function.call(args![&bytes]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "gave up on {} after 200ms of sending a request",
            session.peer()
        )
    );
    tell.send(()).unwrap();
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn an_upload_may_take_longer_than_a_reply() {
    const LIMIT: Duration = Duration::from_secs(1);
    const MIB: usize = 1 << 20;
    /// Length, code, function, number of arguments; type, inner type and length of the bytes.
    const HEAD: usize = 8 + 4 + 8 + 4 + 4 + 4 + 8;
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.read(HEAD);
        // Takes all of it in more than the limit, at an even pace.
        let start = Instant::now();
        for taken in 1..=48 {
            talk.read(MIB);
            let due = start + LIMIT / 40 * taken;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        assert!(start.elapsed() > LIMIT);
        talk.value(1);
        talk.goodbye();
    });
    let options = SessionOptions::default().with_reply_timeout(Some(LIMIT));
    let session = open_with(&server, &options).await.unwrap();
    let function = session.function("f").await.unwrap();
    let bytes = vec![0; 48 * MIB];
    let value = function.call(args![&bytes]).await;
    assert_eq!(i64::try_from(value.unwrap()).unwrap(), 1);
    session.close().await;
    finish(server).await;
}

#[bisync]
async fn expired(session: RemoteSession) {
    for _ in 0..2 {
        let error = session.get_function("f").await.unwrap_err();
        assert!(error.is_session_timeout(), "{error:?}");
        assert!(error.is_fatal());
        assert!(error.to_string().contains("Your 1.0s session"), "{error}");
    }
}

#[bisync]
#[twin_test]
async fn a_time_limit_that_passes_while_nothing_is_asked_is_told_by_the_next_call() {
    let server = Server::raw(|socket| {
        let mut talk = Talk::new(socket);
        talk.shake_hands();
        talk.next().unwrap();
        let text = TIME_IS_UP.into();
        let exception = encoded(&Packet::Exception { text });
        talk.send(&[encoded(&Packet::void()), exception].concat());
        talk.shutdown();
        while talk.next().is_some() {}
    });
    expired(open(&server).await).await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_time_limit_that_passes_during_a_call_is_its_answer() {
    let server = Server::start(|talk| {
        talk.request();
        talk.exception(TIME_IS_UP);
        talk.shutdown();
        while talk.next().is_some() {}
    });
    expired(open(&server).await).await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_time_limit_that_passes_during_an_upload_is_its_answer() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        // Some of the packet, so that the rest is lost.
        talk.read(1000);
        talk.exception(TIME_IS_UP);
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let bytes = vec![0; 64 << 20];
    let error = function.call(args![&bytes]).await.unwrap_err();
    assert!(error.is_session_timeout(), "{error:?}");
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn an_exception_that_only_looks_like_a_time_limit_does_not_end_the_session() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        talk.exception("RPCSessionTimeoutError: fake");
        talk.called(FUNCTION, [Value::Int(1)]);
        talk.value(2);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    assert!(function.call(&[]).await.unwrap_err().is_session_timeout());
    let value = function.call(args![1]).await.unwrap();
    assert_eq!(i64::try_from(value).unwrap(), 2);
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_server_that_leaves_while_nothing_is_asked_is_noticed_by_the_next_call() {
    let server = Server::start(|_| {});
    let session = open(&server).await;
    finish(server).await;
    let error = session.get_function("f").await.unwrap_err();
    assert!(matches!(error, SessionError::Transport(_)), "{error:?}");
    let again = session.get_function("f").await.unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
}

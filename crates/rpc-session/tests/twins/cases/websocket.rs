//! Sessions with servers that are reached by a WebSocket.

use rpc_proto::Value;
use rpc_session::{SessionError, SessionOptions};
use rpc_transport::ServerAddress;

use super::session::finish;
use super::{Output, RemoteSession, bisync, twin_test};
use crate::support::websocket::carry_to;
use crate::support::{KEY, Server};

const ECHO: u64 = 10;
const MUCH: usize = 300_000;

#[bisync]
#[twin_test]
async fn a_session_is_the_same_by_a_websocket() {
    let server = Server::start(|talk| {
        talk.function("echo", ECHO);
        talk.called(ECHO, [Value::Int(7)]);
        talk.value(7);
        let large = vec![1_u8; MUCH];
        talk.called(ECHO, [Value::Bytes(large.clone().into())]);
        talk.value(large);
        talk.goodbye();
    });
    let address = carry_to(server.address());
    let options = SessionOptions::default();
    let opened = RemoteSession::connect_server(&address, KEY, &options).await;
    let session = opened.unwrap();
    assert_eq!(session.peer(), address.to_string());
    let echo = session.function("echo").await.unwrap();
    let back: i64 = echo.call(&[7.into()]).await.unwrap().try_into().unwrap();
    assert_eq!(back, 7);
    let large = vec![1_u8; MUCH];
    let Output::Bytes(back) = echo.call(&[(&large[..]).into()]).await.unwrap() else {
        panic!("expected bytes");
    };
    assert!(back == large);
    drop(echo);
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_server_that_knows_no_websockets_is_named() {
    let server = Server::raw(|mut socket| {
        std::io::Write::write_all(&mut socket, b"\x73\xf2\x0f\0").unwrap();
        socket
    });
    let address: ServerAddress = format!("ws://{}", server.address()).parse().unwrap();
    let options = SessionOptions::default();
    let error = RemoteSession::connect_server(&address, KEY, &options)
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::Transport(_)), "{error:?}");
    let told = format!("no WebSocket at {address}");
    assert!(error.to_string().contains(&told), "{error}");
    finish(server).await;
}

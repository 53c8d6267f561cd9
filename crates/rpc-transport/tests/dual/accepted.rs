//! Sockets that a listener accepted.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rpc_transport::{ConnectOptions, TransportError};
use socket2::SockRef;

use super::{bisync, twin, twin_test};
use crate::peer::{LONG, assert_silence, chain, options, read_exact, wait_for_end};

/// A client, and the socket that a listener has for it.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    let (socket, _) = listener.accept().unwrap();
    (client, socket)
}

#[super::only_sync]
fn accepted(socket: TcpStream, options: &ConnectOptions) -> Result<twin::Stream, TransportError> {
    twin::accepted(socket, options)
}

#[super::only_async]
fn accepted(socket: TcpStream, options: &ConnectOptions) -> Result<twin::Stream, TransportError> {
    socket.set_nonblocking(true).unwrap();
    let socket = tokio::net::TcpStream::from_std(socket).unwrap();
    twin::accepted(socket, options)
}

#[bisync]
#[twin_test]
async fn an_accepted_socket_is_a_stream_with_the_options_of_connections() {
    let (mut client, socket) = pair();
    let same = socket.try_clone().unwrap();
    let options = options().with_keep_alive(Some(Duration::from_secs(77)));
    let mut stream = accepted(socket, &options).unwrap();
    assert_eq!(stream.peer(), client.local_addr().unwrap().to_string());
    let same = SockRef::from(&same);
    assert!(same.tcp_nodelay().unwrap());
    assert!(same.keepalive().unwrap());
    assert_eq!(same.tcp_keepalive_time().unwrap(), Duration::from_secs(77));

    stream.write_all(b"he", b"ad").await.unwrap();
    assert_eq!(read_exact(&mut client, 4), b"head");
    std::io::Write::write_all(&mut client, b"reply").unwrap();
    let mut bytes = [0; 8];
    assert_eq!(stream.read(&mut bytes).await.unwrap(), 5);
    assert_silence(&mut client);
}

#[bisync]
#[twin_test]
async fn the_end_of_an_accepted_stream_is_the_end_of_its_socket() {
    let (mut client, socket) = pair();
    let stream = accepted(socket, &options()).unwrap();
    drop(stream);
    wait_for_end(&mut client);
}

/// Whoever resets a connection before it is looked at has no name any more.
#[cfg(target_os = "linux")]
#[bisync]
#[twin_test]
async fn a_client_that_has_gone_already_is_an_error() {
    let (client, socket) = pair();
    SockRef::from(&client)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(client);
    let error = accepted(socket, &options()).unwrap_err();
    let told = chain(&error);
    assert!(
        told.starts_with("lost a peer while shaking hands: "),
        "{told}"
    );
}

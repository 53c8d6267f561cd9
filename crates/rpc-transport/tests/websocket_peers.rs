//! The async WebSocket as the server of a client of `tungstenite`, and one that the blocking twin takes over.
#![cfg(all(feature = "async", feature = "websocket"))]
#![allow(clippy::unwrap_used)]

use std::net;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rpc_transport::asynchronous::WebSocket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response, write_response};
use tungstenite::{Message, WebSocket as Messages};

/// No test waits as long for something that ought to happen.
const LONG: Duration = Duration::from_secs(20);

/// A server's end of a WebSocket to a client that does `session`.
async fn client(
    session: impl FnOnce(&mut Messages<net::TcpStream>) + Send + 'static,
) -> (WebSocket<TcpStream>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = thread::spawn(move || {
        let socket = net::TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        let (mut messages, _) = tungstenite::client(format!("ws://{address}/ws"), socket).unwrap();
        session(&mut messages);
    });
    let (mut socket, _) = listener.accept().await.unwrap();
    switch_protocols(&mut socket).await;
    (WebSocket::accepted(socket), client)
}

/// What an HTTP server does when it upgrades a connection.
async fn switch_protocols(socket: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(socket.read_u8().await.unwrap());
    }
    let (_, request) = Request::try_parse(&request).unwrap().unwrap();
    let mut answer = Vec::new();
    write_response(&mut answer, &create_response(&request).unwrap()).unwrap();
    socket.write_all(&answer).await.unwrap();
}

#[tokio::test]
async fn a_client_s_messages_of_any_size_are_one_stream() {
    const SIZES: [usize; 7] = [0, 1, 125, 126, 65_535, 65_536, 3 << 20];
    let (mut ours, client) = client(|messages| {
        for size in SIZES {
            let sent: Vec<u8> = (0..size)
                .map(|index| (index % 251).to_le_bytes()[0])
                .collect();
            messages.send(Message::Ping(vec![1].into())).unwrap();
            messages.send(Message::binary(sent.clone())).unwrap();
            let mut back = Vec::new();
            while back.len() < size {
                match messages.read().unwrap() {
                    Message::Binary(bytes) => back.extend(bytes),
                    other => assert!(other.is_pong(), "{other:?}"),
                }
            }
            assert!(back == sent);
        }
        messages.close(None).unwrap();
        // Until the answer.
        while messages.read().is_ok() {}
        assert!(!messages.can_read());
    })
    .await;
    let mut bytes = vec![0; 3 << 20];
    for size in SIZES {
        ours.read_exact(&mut bytes[..size]).await.unwrap();
        ours.write_all(&bytes[..size]).await.unwrap();
        ours.flush().await.unwrap();
    }
    assert_eq!(ours.read(&mut bytes).await.unwrap(), 0);
    ours.shutdown().await.unwrap();
    drop(ours);
    client.join().unwrap();
}

#[tokio::test]
async fn a_client_hears_of_a_text_message_and_of_the_end() {
    let (mut ours, client) = client(|messages| {
        messages.send(Message::text("hello")).unwrap();
        let Message::Close(Some(close)) = messages.read().unwrap() else {
            panic!("expected a close frame with a reason");
        };
        assert_eq!(u16::from(close.code), 1003);
    })
    .await;
    ours.read_u8().await.unwrap_err();
    client.join().unwrap();
}

/// Introduced by one process and served by another: the second gets the socket, and what the first has read
/// of it and not used.
#[cfg(feature = "sync")]
#[tokio::test]
async fn the_blocking_twin_goes_on_where_this_one_stops() {
    use rpc_transport::ConnectOptions;
    use rpc_transport::blocking::{self, Stream};

    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        let mut messages = tungstenite::accept(socket).unwrap();
        let sent = [&b"introduction"[..], &[7; 100_000]].concat();
        messages.send(Message::binary(sent)).unwrap();
        assert_eq!(messages.read().unwrap().into_data(), &b"one"[..]);
        assert_eq!(messages.read().unwrap().into_data(), &b"two"[..]);
        assert!(messages.read().unwrap().is_close());
    });

    let to = format!("ws://{address}").parse().unwrap();
    let options = ConnectOptions::default();
    let mut first = WebSocket::connect(&to, &options).await.unwrap();
    let mut introduction = [0; 12];
    first.read_exact(&mut introduction).await.unwrap();
    assert_eq!(&introduction, b"introduction");
    first.write_all(b"one").await.unwrap();
    let (socket, unread) = first.into_parts().await.unwrap();
    assert!(unread.len() <= (8 << 10) + 14, "{}", unread.len());

    let socket = socket.into_std().unwrap();
    socket.set_nonblocking(false).unwrap();
    let second = blocking::WebSocket::opened(socket, &unread);
    let mut second = Stream::new(second, to.to_string());
    let mut payload = vec![0; 100_000];
    let mut filled = 0;
    while filled < payload.len() {
        filled += second.read(&mut payload[filled..]).unwrap();
    }
    assert!(payload.iter().all(|&byte| byte == 7));
    second.write_all(b"two", b"").unwrap();
    second.shutdown();
    assert_eq!(second.read(&mut payload).unwrap(), 0);
    server.join().unwrap();
}

//! Clients that say who they are, well and badly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rpc_proto::Limits;
use rpc_transport::asynchronous::introduction;
use rpc_transport::{Step, TransportError};
use tokio::io::AsyncReadExt;

use crate::peer::{LONG, SHORT, chain, drip};

const HELLO: &[u8] = b"\x71\xf2\x0f\x00\x0e\x00\x00\x00client:x1:0.25";

/// A client, and the socket that a listener has for it.
fn pair() -> (TcpStream, tokio::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    (client, tokio::net::TcpStream::from_std(socket).unwrap())
}

async fn hear(socket: &mut tokio::net::TcpStream) -> Result<String, TransportError> {
    introduction(socket, Limits::default(), LONG).await
}

/// What a client is told apart by, that says this and closes the connection.
async fn failure(sent: &[u8]) -> (SocketAddr, String) {
    let (mut client, mut socket) = pair();
    client.write_all(sent).unwrap();
    let address = client.local_addr().unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    (address, chain(&hear(&mut socket).await.unwrap_err()))
}

#[tokio::test]
async fn nothing_is_read_beyond_it() {
    let (mut client, mut socket) = pair();
    client.write_all(&[HELLO, b"packet"].concat()).unwrap();
    assert_eq!(hear(&mut socket).await.unwrap(), "client:x1:0.25");
    // Also when the socket is handed on.
    let mut socket = socket.into_std().unwrap();
    socket.set_nonblocking(false).unwrap();
    let mut behind = [0; 6];
    socket.read_exact(&mut behind).unwrap();
    assert_eq!(&behind, b"packet");
}

#[tokio::test]
async fn it_may_come_in_any_pieces() {
    for cut in 1..HELLO.len() {
        let (mut client, mut socket) = pair();
        client.write_all(&HELLO[..cut]).unwrap();
        let rest = std::thread::spawn(move || {
            // Once the first piece has been taken, or at least is there.
            std::thread::yield_now();
            drip(&mut client, &HELLO[cut..]);
            client
        });
        assert_eq!(hear(&mut socket).await.unwrap(), "client:x1:0.25");
        rest.join().unwrap();
    }
}

#[tokio::test]
async fn a_long_key_is_read_whole() {
    let key = "k".repeat(4096);
    let (mut client, mut socket) = pair();
    let sent = [b"\x71\xf2\x0f\x00\x00\x10\x00\x00", key.as_bytes(), b"!"].concat();
    client.write_all(&sent).unwrap();
    assert_eq!(hear(&mut socket).await.unwrap(), key);
    let mut behind = [0; 2];
    assert_eq!(socket.read(&mut behind).await.unwrap(), 1);
    assert_eq!(&behind[..1], b"!");
}

#[tokio::test]
async fn foreign_bytes_are_told() {
    for (sent, told) in [
        (
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            "not a TVM RPC peer: it began with bytes 47 45 54 20 \"GET \"",
        ),
        (
            b"\x71\xf2\x02\x00",
            "not a TVM RPC peer: it began with bytes 71 f2 02 00 (this is a tracker)",
        ),
        (
            b"\x71\xf2\x0f\x00\x01\x10\x00\x00",
            "the peer's handshake is wrong: at offset 4: \
             length of the peer's key is 4097, more than the limit of 4096",
        ),
        (
            b"\x71\xf2\x0f\x00\xff\xff\xff\xff",
            "the peer's handshake is wrong: length of the peer's key at offset 4: \
             expected a count of at least 0, found -1",
        ),
        (
            b"\x71\xf2\x0f\x00\x02\x00\x00\x00\xff\xff",
            "the peer's handshake is wrong: key of the peer at offset 8 is not UTF-8",
        ),
    ] {
        let (address, error) = failure(sent).await;
        assert_eq!(error, format!("no handshake with {address}: {told}"));
    }
}

#[tokio::test]
async fn a_client_that_leaves_early() {
    for cut in 1..HELLO.len() {
        let (address, error) = failure(&HELLO[..cut]).await;
        let needed = match cut {
            0..4 => 4,
            4..8 => 8,
            _ => HELLO.len(),
        };
        assert_eq!(
            error,
            format!(
                "no handshake with {address}: the peer closed the connection in its handshake \
                 ({cut} of {needed} bytes)"
            )
        );
    }
    // One that says nothing at all looks whether somebody is there.
    let (address, error) = failure(b"").await;
    assert_eq!(
        error,
        format!("{address} closed the connection while we were shaking hands")
    );
}

#[tokio::test]
async fn a_silent_client_is_given_up() {
    for sent in [0, 1, 8, HELLO.len() - 1] {
        let (mut client, mut socket) = pair();
        client.write_all(&HELLO[..sent]).unwrap();
        let heard = introduction(&mut socket, Limits::default(), SHORT).await;
        let Err(TransportError::TimedOut {
            step: Step::Handshake,
            allowed: SHORT,
            ..
        }) = heard
        else {
            panic!("{heard:?}");
        };
    }
}

/// However slowly the bytes come, all of them have to be there in time.
#[tokio::test]
async fn a_client_that_drips_is_given_up() {
    let (mut client, mut socket) = pair();
    let dripping = std::thread::spawn(move || {
        for byte in HELLO.chunks(1) {
            std::thread::sleep(SHORT / 4);
            if client.write_all(byte).is_err() {
                break;
            }
        }
    });
    let heard = introduction(&mut socket, Limits::default(), SHORT).await;
    assert!(heard.unwrap_err().is_timeout());
    drop(socket);
    dripping.join().unwrap();
}

#[tokio::test]
async fn any_time_may_be_allowed() {
    for allowed in [Duration::MAX, Duration::from_secs(1 << 40)] {
        let (mut client, mut socket) = pair();
        client.write_all(HELLO).unwrap();
        let heard = introduction(&mut socket, Limits::default(), allowed).await;
        assert_eq!(heard.unwrap(), "client:x1:0.25");
    }
}

//! Peers on loopback, each a thread with one connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use rpc_transport::{Address, ConnectOptions};

/// No test waits as long for something that ought to happen.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Short enough to wait for.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// What a client does by default, with the patience of a test.
pub(crate) fn options() -> ConnectOptions {
    ConnectOptions::default()
        .with_connect_timeout(LONG)
        .with_handshake_timeout(LONG)
}

pub(crate) fn address(socket: SocketAddr) -> Address {
    Address::new(&socket.ip().to_string(), socket.port())
}

/// Serves one connection; join the thread to see that all was as the peer expected.
pub(crate) fn serve(session: impl FnOnce(TcpStream) + Send + 'static) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = address(listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        session(stream);
    });
    (at, thread)
}

/// Reads a client's handshake for `key`, and nothing behind it.
pub(crate) fn read_hello(stream: &mut TcpStream, key: &str) {
    let mut expected = b"\x71\xf2\x0f\x00".to_vec();
    expected.extend(u32::try_from(key.len()).unwrap().to_le_bytes());
    expected.extend(key.as_bytes());
    assert_eq!(read_exact(stream, expected.len()), expected);
}

pub(crate) fn read_exact(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Writes `bytes` each in a segment of its own.
pub(crate) fn drip(stream: &mut TcpStream, bytes: &[u8]) {
    for byte in bytes.chunks(1) {
        stream.write_all(byte).unwrap();
    }
}

/// Asserts that for a moment nothing comes.
pub(crate) fn assert_silence(stream: &mut TcpStream) {
    assert_silence_for(stream, SHORT);
}

pub(crate) fn assert_silence_for(stream: &mut TcpStream, moment: Duration) {
    stream.set_read_timeout(Some(moment)).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    let silence = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
    assert!(silence.contains(&error.kind()), "{error}");
    stream.set_read_timeout(Some(LONG)).unwrap();
}

/// Waits until the client has closed its end.
pub(crate) fn wait_for_end(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A client that closes with bytes unread resets the connection, which is an end too.
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

/// An error with all of its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

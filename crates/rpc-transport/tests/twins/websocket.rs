//! Servers of WebSockets on loopback, each a thread with one connection.

use std::io::Write;
use std::net::TcpStream;
use std::thread::JoinHandle;

use rpc_transport::ServerAddress;
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response, write_response};
use tungstenite::{WebSocket, accept};

use crate::peer::{read_exact, serve};

/// Serves one connection at `/ws`.
pub(crate) fn serve_raw(
    session: impl FnOnce(TcpStream) + Send + 'static,
) -> (ServerAddress, JoinHandle<()>) {
    let (address, peer) = serve(session);
    let server = format!("ws://{address}/ws");
    (server.parse().unwrap(), peer)
}

/// Serves one WebSocket.
pub(crate) fn serve_messages(
    session: impl FnOnce(&mut WebSocket<TcpStream>) + Send + 'static,
) -> (ServerAddress, JoinHandle<()>) {
    serve_raw(|stream| session(&mut accept(stream).unwrap()))
}

/// Serves one connection that is a WebSocket, frame by frame.
pub(crate) fn serve_frames(
    session: impl FnOnce(&mut TcpStream) + Send + 'static,
) -> (ServerAddress, JoinHandle<()>) {
    serve_raw(|mut stream| {
        let answer = switch_protocols(&mut stream);
        stream.write_all(&answer).unwrap();
        session(&mut stream);
    })
}

/// Reads a short frame of a client: its first byte, and the payload.
pub(crate) fn read_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let frame = read_any_frame(stream);
    assert!(frame.1.len() < 126);
    frame
}

/// Reads a frame of a client: its first byte, and the payload.
pub(crate) fn read_any_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let head = read_exact(stream, 2);
    assert!(head[1] >= 0x80, "a client masks its frames");
    let wide = match head[1] & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mut length = u64::from(head[1] & 0x7f);
    if wide > 0 {
        let bytes = read_exact(stream, wide);
        length = bytes
            .iter()
            .fold(0, |length, &byte| length << 8 | u64::from(byte));
    }
    let mask = read_exact(stream, 4);
    let mut payload = read_exact(stream, usize::try_from(length).unwrap());
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    (head[0], payload)
}

/// Reads what a client of a WebSocket asks for, and gives the answer that it wants.
pub(crate) fn switch_protocols(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.extend(read_exact(stream, 1));
    }
    let (_, request) = Request::try_parse(&request).unwrap().unwrap();
    assert_eq!(request.uri(), "/ws");
    let mut answer = Vec::new();
    write_response(&mut answer, &create_response(&request).unwrap()).unwrap();
    answer
}

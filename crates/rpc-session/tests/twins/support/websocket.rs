//! What a proxy does for a client that comes by a WebSocket, on threads of their own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use rpc_transport::{Address, ServerAddress};

/// Carries the bytes of one WebSocket to `server` and back, in messages that have nothing to do with packets.
pub(crate) fn carry_to(server: &Address) -> ServerAddress {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = server.to_string();
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(server).unwrap();
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (back, from) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let mut messages = tungstenite::accept(client).unwrap();
        thread::spawn(move || carry_back(from, back));
        while let Ok(message) = messages.read() {
            if message.is_binary() && server.write_all(&message.into_data()).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Write);
    });
    format!("ws://127.0.0.1:{port}/ws").parse().unwrap()
}

/// Frames of at most 100 bytes, so that packets are cut.
fn carry_back(mut server: TcpStream, mut client: TcpStream) {
    let mut frame = [0x82; 102];
    while let Ok(count @ 1..) = server.read(&mut frame[2..]) {
        frame[1] = u8::try_from(count).unwrap();
        if client.write_all(&frame[..2 + count]).is_err() {
            return;
        }
    }
    let _ = client.write_all(&[0x88, 0]);
}

//! The client's side of one session, packet by packet.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use rpc_proto::Packet;

use super::{PATIENCE, call, encoded, exception, pointer};

pub(crate) struct Client {
    socket: TcpStream,
}

impl Client {
    /// A connection on which nothing was said.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket }
    }

    pub(crate) fn try_clone(&self) -> Self {
        let socket = self.socket.try_clone().unwrap();
        Self { socket }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// Says whether the server still takes it.
    pub(crate) fn tries_to_send(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    pub(crate) fn asks(&mut self, packet: &Packet<'_>) -> &mut Self {
        self.send(&encoded(packet));
        self
    }

    pub(crate) fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.socket.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// The next packet, whole.
    pub(crate) fn answer(&mut self) -> Vec<u8> {
        let length = self.read(8);
        let count = u64::from_le_bytes(length[..].try_into().unwrap());
        let rest = self.read(usize::try_from(count).unwrap());
        [length, rest].concat()
    }

    pub(crate) fn gets(&mut self, bytes: &[u8]) -> &mut Self {
        let answer = self.answer();
        assert!(
            answer == bytes,
            "expected {:?}, not {:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(400)]),
            String::from_utf8_lossy(&answer[..answer.len().min(400)])
        );
        self
    }

    pub(crate) fn void(&mut self) -> &mut Self {
        self.gets(&encoded(&Packet::void()))
    }

    pub(crate) fn pointer(&mut self, address: u64) -> &mut Self {
        self.gets(&encoded(&pointer(address)))
    }

    pub(crate) fn exception(&mut self, text: &str) -> &mut Self {
        self.gets(&encoded(&exception(text)))
    }

    /// The text of an exception that comes next.
    pub(crate) fn exception_text(&mut self) -> String {
        let answer = self.answer();
        assert_eq!(answer[8..20], *b"\x05\0\0\0\x01\0\0\0\x08\0\0\0");
        String::from_utf8(answer[28..].to_vec()).unwrap()
    }

    /// The session goes on.
    pub(crate) fn is_served(&mut self) -> &mut Self {
        self.asks(&call(1, []))
            .gets(&super::encoded_returned(&rpc_proto::Returned::Value(
                rpc_proto::Value::None,
            )))
    }

    /// The server tells why it does not go on, and ends the session.
    pub(crate) fn turned_away(&mut self) -> String {
        let text = self.exception_text();
        self.gets(&encoded(&Packet::Shutdown));
        self.leave();
        assert_eq!(self.rest(), b"");
        text
    }

    /// What comes until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => {}
            // A server that closes with bytes unread resets the connection, which is an end, too.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        rest
    }

    /// Nothing more comes from here, but what the server says is still read.
    pub(crate) fn leave(&mut self) {
        // The server may have closed the connection already.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    pub(crate) fn goodbye(&mut self) {
        self.asks(&Packet::Shutdown);
        assert_eq!(self.rest(), b"");
    }
}

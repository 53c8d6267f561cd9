//! The server's side of one session.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rpc_proto::codes::RPC_MAGIC;
use rpc_proto::packet::{Frame, encode_returned, scan};
use rpc_proto::{Dialect, Limits, Packet, Returned, Syscall, Value, Values};

use super::PATIENCE;

const DIALECT: Dialect = Dialect::Ffi;
/// An init packet without a constructor, as every client of the reference sends it.
const INIT: [u8; 29] = *b"\x15\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\0\0\0\0\x000.8.0\0\0\0\0";

pub(crate) fn limits() -> Limits {
    Limits::default().with_packet(1 << 40)
}

/// One packet of the client's, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request(pub(crate) Vec<u8>);

impl Request {
    pub(crate) fn packet(&self) -> Packet<'_> {
        let Frame::Packet { head, payload } = scan(&self.0, DIALECT, limits()).unwrap() else {
            panic!("no packet: {:02x?}", self.0);
        };
        let head = usize::try_from(head).unwrap();
        match Packet::decode(&self.0[..head], payload, DIALECT, limits()).unwrap() {
            // A call is looked at as a whole, its last argument too, however large.
            Packet::Call { bulk: Some(_), .. } => {
                Packet::decode(&self.0, 0, DIALECT, limits()).unwrap()
            }
            packet => packet,
        }
    }

    /// What stands behind the head of a copy.
    pub(crate) fn payload(&self) -> &[u8] {
        let payload = usize::try_from(self.packet().payload()).unwrap();
        &self.0[self.0.len() - payload..]
    }

    pub(crate) fn syscall(&self) -> Syscall<'_> {
        match self.packet() {
            Packet::Syscall(syscall) => syscall,
            other => panic!("expected a syscall, not {other:?}"),
        }
    }

    fn frees(&self) -> bool {
        use Syscall::{FreeData, FreeHandle, FreeStream};
        matches!(
            self.packet(),
            Packet::Syscall(FreeHandle { .. } | FreeData { .. } | FreeStream { .. })
        )
    }
}

pub(crate) struct Talk {
    socket: TcpStream,
    /// Bytes of each write; 0 for all at once.
    pub(crate) chunk: usize,
    /// What the client had freed, each with its number.
    pub(crate) freed: Vec<u64>,
    pub(crate) refuses_to_free: bool,
}

impl Talk {
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            chunk: 0,
            freed: Vec::new(),
            refuses_to_free: false,
        }
    }

    pub(crate) fn shake_hands(&mut self) -> String {
        let key = self.read_handshake();
        let mut answer = RPC_MAGIC.to_le_bytes().to_vec();
        answer.extend(12_i32.to_le_bytes());
        answer.extend(b"server:board");
        self.send(&answer);
        key
    }

    pub(crate) fn read_handshake(&mut self) -> String {
        assert_eq!(self.read(4), RPC_MAGIC.to_le_bytes());
        let len = u32::from_le_bytes(self.read(4).try_into().unwrap());
        String::from_utf8(self.read(len as usize)).unwrap()
    }

    pub(crate) fn init(&mut self) {
        assert_eq!(self.next().unwrap().0, INIT);
        self.done();
    }

    pub(crate) fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.socket.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// The next packet, or nothing at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Request> {
        let mut length = [0; 8];
        let mut filled = 0;
        while filled < 8 {
            match self.socket.read(&mut length[filled..]) {
                Ok(0) if filled == 0 => return None,
                Err(error) if filled == 0 && error.kind() == ErrorKind::ConnectionReset => {
                    return None;
                }
                count => filled += count.unwrap(),
            }
            assert!(filled > 0, "the stream ends within a packet");
        }
        let rest = self.read(usize::try_from(u64::from_le_bytes(length)).unwrap());
        Some(Request([&length[..], &rest].concat()))
    }

    /// The next packet that frees nothing; what is freed before it is answered and noted.
    pub(crate) fn request(&mut self) -> Request {
        loop {
            let request = self.next().expect("a request, not the end of the stream");
            if !request.frees() {
                return request;
            }
            self.note_freed(&request);
            if self.refuses_to_free {
                self.exception("no such handle");
            } else {
                self.done();
            }
        }
    }

    pub(crate) fn note_freed(&mut self, request: &Request) {
        self.freed.push(match request.syscall() {
            Syscall::FreeHandle { handle, .. } => handle,
            Syscall::FreeData { data, .. } => data,
            Syscall::FreeStream { stream, .. } => stream,
            other => panic!("expected something to free, not {other:?}"),
        });
    }

    /// The next request is to be this one.
    pub(crate) fn expect(&mut self, packet: &Packet<'_>) {
        let request = self.request();
        assert!(
            request.0 == encoded(packet),
            "expected {packet:?}, not {:?}",
            request.packet()
        );
    }

    /// The client looks up `name`, and gets `handle`.
    pub(crate) fn function(&mut self, name: &str, handle: u64) {
        let name = name.into();
        self.expect(&Packet::Syscall(Syscall::GetGlobalFunc { name }));
        self.pointer(handle);
    }

    /// The client calls a function with these arguments.
    pub(crate) fn called<const N: usize>(&mut self, function: u64, args: [Value<'static>; N]) {
        self.expect(&Packet::Call {
            function,
            args: Values::from_iter(args),
            bulk: None,
        });
    }

    /// The client says goodbye and closes the connection. Gives back all that was freed.
    pub(crate) fn goodbye(&mut self) -> Vec<u64> {
        let request = self.request();
        assert_eq!(request.packet(), Packet::Shutdown);
        self.end();
        std::mem::take(&mut self.freed)
    }

    /// The client closes the connection without a word.
    pub(crate) fn end(&mut self) {
        assert_eq!(self.next(), None);
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let chunk = match self.chunk {
            0 => bytes.len().max(1),
            chunk => chunk,
        };
        for piece in bytes.chunks(chunk) {
            self.socket.write_all(piece).unwrap();
        }
    }

    /// Sends `bytes` again and again until the client has left.
    pub(crate) fn dribble(&mut self, bytes: &[u8]) {
        let end = Instant::now() + PATIENCE;
        while self.socket.write_all(bytes).is_ok() {
            assert!(Instant::now() < end, "the client does not leave");
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn answer(&mut self, packet: &Packet<'_>) {
        self.send(&encoded(packet));
    }

    pub(crate) fn done(&mut self) {
        self.answer(&Packet::void());
    }

    pub(crate) fn pointer(&mut self, address: u64) {
        self.answer(&pointer(address));
    }

    pub(crate) fn exception(&mut self, text: &str) {
        let text = text.into();
        self.answer(&Packet::Exception { text });
    }

    pub(crate) fn returned(&mut self, returned: &Returned<'_>) {
        self.send(&encoded_returned(returned));
    }

    pub(crate) fn value<'v>(&mut self, value: impl Into<Value<'v>>) {
        self.returned(&Returned::Value(value.into()));
    }

    pub(crate) fn copy_ack(&mut self, data: &[u8]) {
        let nbytes = data.len() as u64;
        self.send(&[encoded(&Packet::CopyAck { nbytes }), data.to_vec()].concat());
    }

    /// Nothing more comes from here, but what the client says is still read.
    pub(crate) fn shutdown(&mut self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }
}

pub(crate) fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(DIALECT, limits(), &mut out).unwrap();
    out
}

pub(crate) fn pointer(address: u64) -> Packet<'static> {
    Packet::Return(Values::from_iter([Value::Pointer(address)]))
}

pub(crate) fn encoded_returned(returned: &Returned<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_returned(DIALECT, returned, limits(), &mut out).unwrap();
    out
}

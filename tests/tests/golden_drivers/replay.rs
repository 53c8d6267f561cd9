//! A server that plays a recorded server's part.

use std::collections::{HashSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rpc_proto::packet::{Frame, scan};
use rpc_proto::{Dialect, Limits, Packet, Syscall, TensorView};
use rpc_transport::Address;

use crate::recording::{Conversation, Exchange, Recording};

/// When the client has been silent for too long.
const PATIENCE: Duration = Duration::from_secs(20);

/// The functions of the server's own whose handles we keep as long as the session lives.
const KEPT: [&str; 9] = [
    "ffi.SystemLib",
    "runtime.RPCTimeEvaluator",
    "tvm.rpc.server.GetCRTMaxPacketSize",
    "tvm.rpc.server.ImportModule",
    "tvm.rpc.server.ModuleGetFunction",
    "tvm.rpc.server.download",
    "tvm.rpc.server.load_module",
    "tvm.rpc.server.remove",
    "tvm.rpc.server.upload",
];

pub(crate) struct Replay {
    address: Address,
    script: JoinHandle<()>,
}

impl Replay {
    /// Plays the server of a connection of `recording`.
    pub(crate) fn start(recording: &Recording, connection: usize) -> Self {
        let conversation = recording.conversation(connection);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
        let script = thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.set_nodelay(true).unwrap();
            play(socket, conversation);
        });
        Self { address, script }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for the end, and fails if the client did not say what it should have said.
    pub(crate) fn finish(self) {
        if let Err(panic) = self.script.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

fn play(mut socket: TcpStream, conversation: Conversation) {
    let (hello, welcome) = &conversation.handshake;
    let mut received = vec![0; hello.len()];
    socket.read_exact(&mut received).unwrap();
    assert_eq!(&received, hello, "the handshake");
    socket.write_all(welcome).unwrap();

    let mut due = Due::new(conversation.exchanges);
    while let Some(received) = read_packet(&mut socket) {
        let exchange = due.take(&received);
        if due.closed {
            continue;
        }
        socket.write_all(&exchange.reply).unwrap();
        if exchange.closes {
            socket.shutdown(Shutdown::Write).unwrap();
            due.closed = true;
        }
    }
    due.finish();
}

/// The next packet, or nothing at the end of the stream.
fn read_packet(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let mut packet = vec![0; 8];
    match socket.read_exact(&mut packet) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return None,
        read => read.unwrap(),
    }
    let length = u64::from_le_bytes(packet[..].try_into().unwrap());
    packet.resize(8 + usize::try_from(length).unwrap(), 0);
    socket.read_exact(&mut packet[8..]).unwrap();
    Some(packet)
}

/// What the client has to send, and how it may differ from what the reference's client sent.
struct Due {
    requests: VecDeque<Exchange>,
    /// **Frees come at other moments**: ahead of the next request, or in the background. And those that
    /// the reference's client sends as it leaves need not come: the server frees all that is left.
    frees: Vec<Exchange>,
    /// Kept functions that were looked up.
    looked_up: HashSet<String>,
    /// A copy was the last thing that happened, or would have been if the tensor had any elements.
    copied: bool,
    /// The server has closed the connection.
    closed: bool,
}

impl Due {
    fn new(exchanges: Vec<Exchange>) -> Self {
        let (frees, requests): (Vec<_>, Vec<_>) = exchanges
            .into_iter()
            .partition(|e| is_free(&packet(&e.request)));
        Self {
            requests: requests.into(),
            frees,
            looked_up: HashSet::new(),
            copied: false,
            closed: false,
        }
    }

    /// The recorded exchange of the packet that came.
    fn take(&mut self, received: &[u8]) -> Exchange {
        if is_free(&packet(received)) {
            let known = self.frees.iter().position(|free| free.request == received);
            let known = known.unwrap_or_else(|| panic!("never freed: {:?}", packet(received)));
            return self.frees.remove(known);
        }
        while let Some(next) = self.requests.pop_front() {
            if next.request == received || is_view_with_its_offset(&next, received) {
                self.note(&packet(&next.request));
                return next;
            }
            self.leave_out(&next, received);
        }
        panic!("nothing was due, but came {:?}", packet(received));
    }

    fn note(&mut self, request: &Packet<'_>) {
        self.copied = matches!(request, Packet::CopyTo { .. } | Packet::CopyFrom { .. });
        if let Packet::Syscall(Syscall::GetGlobalFunc { name }) = request
            && KEPT.contains(&&**name)
        {
            self.looked_up.insert(name.clone().into_owned());
        }
    }

    /// Fails unless there is a rule by which we do not send `next`.
    fn leave_out(&mut self, next: &Exchange, received: &[u8]) {
        match packet(&next.request) {
            // **Server functions are looked up once**, the largest size of a packet included.
            Packet::Syscall(Syscall::GetGlobalFunc { name }) if self.looked_up.contains(&*name) => {
                self.copied |= name == "tvm.rpc.server.GetCRTMaxPacketSize";
            }
            // **No synchronization after a copy**: the server's answer is that it is done.
            Packet::Syscall(Syscall::StreamSync { stream: 0, .. }) if self.copied => {
                self.copied = false;
            }
            expected => panic!(
                "in step {:?} was due {expected:?}, but came {:?}",
                next.step,
                packet(received)
            ),
        }
    }

    /// Fails unless all that was due has come.
    fn finish(mut self) {
        if self.closed {
            return;
        }
        while let Some(next) = self.requests.pop_front() {
            self.leave_out(&next, &next.request);
        }
    }
}

fn packet(bytes: &[u8]) -> Packet<'_> {
    let (dialect, limits) = (Dialect::Ffi, Limits::default());
    let Frame::Packet { head, payload } = scan(bytes, dialect, limits).unwrap() else {
        panic!("no packet: {bytes:02x?}");
    };
    Packet::decode(
        &bytes[..usize::try_from(head).unwrap()],
        payload,
        dialect,
        limits,
    )
    .unwrap()
}

fn is_free(packet: &Packet<'_>) -> bool {
    use Syscall::{FreeData, FreeHandle, FreeStream};
    matches!(
        packet,
        Packet::Syscall(FreeHandle { .. } | FreeData { .. } | FreeStream { .. })
    )
}

/// **Copies of views have their byte offset**: the reference's client loses it on the way.
fn is_view_with_its_offset(recorded: &Exchange, received: &[u8]) -> bool {
    let view = |packet| match packet {
        Packet::CopyTo { tensor, nbytes } | Packet::CopyFrom { tensor, nbytes } => {
            Some((tensor, nbytes))
        }
        _ => None,
    };
    let (Some((theirs, _)), Some((ours, nbytes))) =
        (view(packet(&recorded.request)), view(packet(received)))
    else {
        return false;
    };
    let lost = TensorView {
        byte_offset: 0,
        ..ours.clone()
    };
    // Behind length and code stands the tensor, whose last field is the offset.
    let offset = 12 + 24 + 8 * ours.shape.len();
    let same_but_for_the_offset = recorded.request[..offset] == received[..offset]
        && recorded.request[offset + 8..] == received[offset + 8..];
    recorded.step.starts_with("view.") && theirs == lost && nbytes > 0 && same_but_for_the_offset
}

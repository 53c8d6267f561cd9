//! A tracker that follows a script, on a thread of its own.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rpc_transport::Address;
use socket2::{Domain, Socket, Type};

pub(crate) mod events;

pub(crate) const MAGIC: [u8; 4] = [0x71, 0xf2, 0x02, 0x00];

/// When a script that waits for its client has waited too long.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct FakeTracker {
    address: Address,
    script: JoinHandle<()>,
}

impl FakeTracker {
    pub(crate) fn start(script: impl FnOnce(&Door) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::on(listener, script)
    }

    pub(crate) fn on(listener: TcpListener, script: impl FnOnce(&Door) + Send + 'static) -> Self {
        let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
        listener.set_nonblocking(true).unwrap();
        let script = thread::spawn(move || script(&Door(listener)));
        Self { address, script }
    }

    pub(crate) fn address(&self) -> Address {
        self.address.clone()
    }

    /// Waits for the end of the script, and fails if it failed.
    pub(crate) fn finish(self) {
        if let Err(panic) = self.script.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// A port where nobody listens, and that nobody else is given: connections to it are refused.
pub(crate) struct Reserved(Socket);

impl Reserved {
    pub(crate) fn port() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        Self(socket)
    }

    pub(crate) fn address(&self) -> Address {
        let address = self.0.local_addr().unwrap().as_socket().unwrap();
        Address::new("127.0.0.1", address.port())
    }

    pub(crate) fn listen(self) -> TcpListener {
        self.0.listen(16).unwrap();
        self.0.into()
    }
}

/// Where clients come in.
pub(crate) struct Door(TcpListener);

impl Door {
    /// The next connection, before it was greeted.
    pub(crate) fn accept_stranger(&self) -> Peer {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(peer) = self.try_accept() {
                return peer;
            }
            assert!(Instant::now() < end, "no connection came");
        }
    }

    /// A connection, if one comes within a moment.
    pub(crate) fn try_accept(&self) -> Option<Peer> {
        match self.0.accept() {
            Ok((stream, _)) => Some(Peer::new(stream)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The next connection, greeted.
    pub(crate) fn accept(&self) -> Peer {
        let mut peer = self.accept_stranger();
        assert!(peer.greet(), "the client left before it was greeted");
        peer
    }

    /// Nobody connected who was not accepted.
    pub(crate) fn is_quiet(&self) {
        let error = self.0.accept().map(|(_, peer)| peer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}

/// The script's side of one connection.
pub(crate) struct Peer(TcpStream);

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    /// Exchanges greetings; or the client leaves before.
    pub(crate) fn greet(&mut self) -> bool {
        let mut greeting = [0; 4];
        match self.0.read_exact(&mut greeting) {
            Ok(()) => {}
            Err(error) if is_end(error.kind()) => return false,
            Err(error) => panic!("{error}"),
        }
        assert_eq!(greeting, MAGIC);
        self.send(&MAGIC);
        true
    }

    pub(crate) fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Nothing comes within `moment`.
    pub(crate) fn is_silent_for(&mut self, moment: Duration) {
        self.0.set_read_timeout(Some(moment)).unwrap();
        let error = self.0.read(&mut [0]).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            "{error}"
        );
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// The text of the next frame, or none at the end of the stream.
    pub(crate) fn next_frame(&mut self) -> Option<String> {
        let mut length = [0; 4];
        match self.0.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if is_end(error.kind()) => return None,
            Err(error) => panic!("{error}"),
        }
        let length = u32::from_le_bytes(length).try_into().unwrap();
        Some(String::from_utf8(self.read_exactly(length)).unwrap())
    }

    /// The next frame is `text`, byte for byte.
    pub(crate) fn expect(&mut self, text: &str) {
        assert_eq!(self.next_frame().as_deref(), Some(text));
    }

    /// The other side closes.
    pub(crate) fn expect_end(&mut self) {
        assert_eq!(self.next_frame(), None);
    }

    pub(crate) fn answer(&mut self, text: &str) {
        let length = i32::try_from(text.len()).unwrap();
        self.send(&[&length.to_le_bytes(), text.as_bytes()].concat());
    }
}

fn is_end(kind: ErrorKind) -> bool {
    // A client that closes with bytes unread resets.
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)
}

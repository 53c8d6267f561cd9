//! Clients that know the protocol, and peers that send bytes.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use rpc_proto::{Dialect, Limits, Packet};
use rpc_session::asynchronous::{Output, RemoteSession};
use rpc_session::{SessionError, SessionOptions, args};
use rpc_transport::ConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::within;

pub(crate) const ACCEPTED: &[u8] = b"\x71\xf2\x0f\x00\x0c\x00\x00\x00server:board";
pub(crate) const MISMATCH: &[u8] = b"\x73\xf2\x0f\x00";
/// What opens a session, without a constructor.
pub(crate) const INIT: &[u8] = b"\x15\0\0\0\0\0\0\0\x02\0\0\0\x05\0\0\0\0\0\0\x000.8.0\0\0\0\0";

/// A client in a session.
pub(crate) struct Client(pub(crate) RemoteSession);

impl Client {
    pub(crate) async fn connect(addr: SocketAddr, match_key: &str) -> Result<Self, SessionError> {
        Self::with(addr, match_key, SessionOptions::default()).await
    }

    /// A client whose session may last so long.
    pub(crate) async fn limited(addr: SocketAddr, match_key: &str, limit: Duration) -> Self {
        let options = SessionOptions::default().with_session_timeout(limit);
        Self::with(addr, match_key, options).await.unwrap()
    }

    async fn with(
        addr: SocketAddr,
        match_key: &str,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        // A busy machine is no failure.
        let patient = ConnectOptions::default().with_handshake_timeout(Duration::from_secs(60));
        let options = options.with_connect(patient);
        let addr = addr.into();
        let connected = RemoteSession::connect(&addr, match_key, &options);
        Ok(Self(within("a session", connected).await?))
    }

    pub(crate) async fn try_call(
        &self,
        name: &str,
        args: &[rpc_session::asynchronous::Argument<'_>],
    ) -> Result<Output, SessionError> {
        within(name, async {
            self.0.function(name).await?.call(args).await
        })
        .await
    }

    pub(crate) async fn int(&self, name: &str) -> i64 {
        self.try_call(name, args![])
            .await
            .unwrap()
            .try_into()
            .unwrap()
    }

    pub(crate) async fn text(&self, name: &str) -> String {
        self.try_call(name, args![])
            .await
            .unwrap()
            .try_into()
            .unwrap()
    }

    pub(crate) async fn works(&self) {
        let two = self.try_call("rpc.test.addone", args![1]).await.unwrap();
        assert_eq!(i64::try_from(two).unwrap(), 2);
    }
}

/// Somebody with a connection.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
}

impl Peer {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = within("a connection", TcpStream::connect(addr)).await;
        Self {
            stream: stream.unwrap(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        within("the server to read", self.stream.write_all(bytes))
            .await
            .unwrap();
    }

    /// Says who it is.
    pub(crate) async fn shake(&mut self, key: &str) {
        self.send(&handshake(key.as_bytes())).await;
    }

    pub(crate) async fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.stream.read_exact(&mut bytes);
        within("bytes of the server's", read).await.unwrap();
        bytes
    }

    /// It is let in.
    pub(crate) async fn is_accepted(&mut self) {
        assert_eq!(self.receive(ACCEPTED.len()).await, ACCEPTED);
    }

    /// It has a session that works.
    pub(crate) async fn has_session(&mut self) {
        self.is_accepted().await;
        self.send(INIT).await;
        assert_eq!(self.reply().await[..4], [4, 0, 0, 0], "a return");
    }

    /// Sends a request of its session.
    pub(crate) async fn asks(&mut self, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        let encoded = packet.encode(Dialect::default(), Limits::default(), &mut bytes);
        encoded.unwrap();
        self.send(&bytes).await;
    }

    /// One packet, without its length.
    pub(crate) async fn reply(&mut self) -> Vec<u8> {
        let length = self.receive(8).await;
        let length = u64::from_le_bytes(length.try_into().unwrap());
        self.receive(length.try_into().unwrap()).await
    }

    /// It is told that its key is wrong.
    pub(crate) async fn is_refused(&mut self) {
        assert_eq!(self.rest().await, MISMATCH);
    }

    /// It is told nothing.
    pub(crate) async fn is_closed(&mut self) {
        assert_eq!(self.rest().await, b"");
    }

    /// All that the server sends until it closes the connection.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = self.stream.read_to_end(&mut bytes);
        match within("the server to close the connection", read).await {
            Ok(_) => {}
            // What it had not read when it closed.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        bytes
    }
}

pub(crate) fn handshake(key: &[u8]) -> Vec<u8> {
    let length = u32::try_from(key.len()).unwrap();
    [b"\x71\xf2\x0f\x00", &length.to_le_bytes()[..], key].concat()
}

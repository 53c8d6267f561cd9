//! A tracker for a test, and a peer of it that sends bytes.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use rpc_tracker::{Tracker, TrackerHandle, TrackerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

pub(crate) const GREETING: &[u8] = b"\x71\xf2\x02\x00";

/// A tracker that serves until this is dropped.
pub(crate) struct Service {
    pub(crate) addr: SocketAddr,
    pub(crate) handle: TrackerHandle,
    pub(crate) served: JoinHandle<()>,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::with(TrackerOptions::default()).await
    }

    pub(crate) async fn with(options: TrackerOptions) -> Self {
        let tracker = Tracker::bind("127.0.0.1", 0..=0, options).await.unwrap();
        Self {
            addr: tracker.local_addr(),
            handle: tracker.handle(),
            served: tokio::spawn(tracker.serve()),
        }
    }

    /// A peer that has greeted.
    pub(crate) async fn peer(&self) -> Peer {
        let mut peer = Peer::connect(self.addr).await;
        peer.send(GREETING).await;
        assert_eq!(peer.receive(4).await, GREETING);
        peer
    }

    /// Free devices and waiting requests of a key; `None` if there is no queue.
    pub(crate) fn status(&self, key: &str) -> Option<(u64, u64)> {
        let summary = self.handle.summary();
        let queue = summary.queues.get(key)?;
        Some((queue.free, queue.pending))
    }

    /// Waits until the tracker's state is what it has to become.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        within("the state of the tracker", async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// The result, which must come; how soon is not what these tests are about.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let Ok(result) = tokio::time::timeout(Duration::from_secs(30), future).await else {
        panic!("no end of waiting for {what}");
    };
    result
}

pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
}

impl Peer {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = within("a connection", TcpStream::connect(addr))
            .await
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        within("the tracker to read", self.stream.write_all(bytes))
            .await
            .unwrap();
    }

    pub(crate) async fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.stream.read_exact(&mut bytes);
        within("bytes of the tracker's", read).await.unwrap();
        bytes
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.send(&frame(text)).await;
    }

    pub(crate) async fn hear(&mut self) -> String {
        let length = self.receive(4).await;
        let length = i32::from_le_bytes(length.try_into().unwrap());
        let text = self.receive(length.try_into().unwrap()).await;
        String::from_utf8(text).unwrap()
    }

    pub(crate) async fn ask(&mut self, text: &str) -> String {
        self.say(text).await;
        self.hear().await
    }

    pub(crate) async fn put(&mut self, key: &str, match_key: &str) {
        let put = format!(r#"[3, "{key}", [9090, "{match_key}"], null]"#);
        assert_eq!(self.ask(&put).await, "0");
    }

    pub(crate) async fn register(&mut self, key: &str) {
        let info = format!(r#"[5, {{"key": "{key}", "addr": [null, 9090]}}]"#);
        assert_eq!(self.ask(&info).await, "0");
    }

    pub(crate) async fn request(&mut self, key: &str) {
        self.say(&format!(r#"[4, "{key}", "", 1]"#)).await;
    }

    pub(crate) async fn ping(&mut self) {
        assert_eq!(self.ask("[1]").await, "0");
    }

    /// The tracker closes this connection and says nothing more.
    pub(crate) async fn is_closed(&mut self) {
        assert_eq!(self.rest().await, b"");
    }

    /// All that the tracker sends until it closes the connection.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = self.stream.read_to_end(&mut bytes);
        match within("the tracker to close the connection", read).await {
            Ok(_) => {}
            // What it had not read when it closed.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        bytes
    }
}

pub(crate) fn frame(text: &str) -> Vec<u8> {
    let length = i32::try_from(text.len()).unwrap();
    [&length.to_le_bytes(), text.as_bytes()].concat()
}

pub(crate) fn granted(match_key: &str) -> String {
    format!(r#"[0, ["127.0.0.1", 9090, "{match_key}"]]"#)
}

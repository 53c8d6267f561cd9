use std::error::Error;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use rpc_proto::tracker::{Request, ServingConnection, ServingError};
use rpc_transport::{Chain, configure};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{Span, debug, info, trace, warn};

use super::outbox::Want;
use super::shared::{Registered, Shared};
use crate::Peer;

/// The most that is read at once. It lies on the stack, so that a silent connection has no buffer.
const PIECE: usize = 8 << 10;

/// How long the answer to a STOP may take; the peer has asked for the end and can have it without.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// One connection and what its task does with it.
struct Connection {
    /// In front of the stream, so that it goes first: a peer that sees the end of its connection finds
    /// nothing of it in the queues.
    registered: Registered,
    stream: TcpStream,
    protocol: ServingConnection,
    message_timeout: Duration,
    /// Until when the message that the peer has begun is to be complete.
    deadline: Option<Instant>,
    /// The peer said that it is a server.
    is_server: bool,
    /// The peer had the tracker stopped.
    is_stopped: bool,
}

/// Why a connection ended.
#[derive(Debug)]
enum End {
    Closed,
    Lost(io::Error),
    Misbehaved(ServingError),
    Slow,
    UnreadOutput,
}

/// Serves one connection to its end.
pub(super) async fn serve(stream: TcpStream, peer: Peer, shared: Arc<Shared>) {
    if let Err(error) = configure(&stream, shared.options.keep_alive) {
        return debug!(%error, "the connection is gone already");
    }
    let mut connection = Connection::new(stream, peer, &shared);
    trace!("connected");
    let end = connection.run().await;
    if connection.is_stopped {
        info!("stopped by a peer that knows the stop key");
        shared.stop.notify_one();
    } else if let Err(end) = end {
        connection.log(&end);
    }
}

/// A point in time that is too far away is none.
fn after(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

impl Connection {
    fn new(stream: TcpStream, peer: Peer, shared: &Arc<Shared>) -> Self {
        let message_timeout = shared.options.message_timeout;
        Self {
            registered: shared.register(peer),
            stream,
            protocol: ServingConnection::new(shared.options.limits),
            message_timeout,
            deadline: after(message_timeout),
            is_server: false,
            is_stopped: false,
        }
    }

    async fn run(&mut self) -> Result<(), End> {
        self.until(|connection| connection.is_stopped).await?;
        let last = self.until(|connection| connection.registered.outbox.is_empty());
        timeout(LAST_ANSWER, last).await.unwrap_or(Ok(()))
    }

    /// Reads and writes until something is so.
    async fn until(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<(), End> {
        while !is_so(self) {
            let ready = self.is_readable();
            let is_readable = match self.deadline {
                Some(deadline) => timeout_at(deadline, ready)
                    .await
                    .unwrap_or(Err(End::Slow))?,
                None => ready.await?,
            };
            let read = if is_readable { self.read() } else { Ok(()) };
            // Also what was answered before something went wrong.
            let flushed = self.registered.outbox.flush(&self.stream);
            read?;
            flushed.map_err(End::of_stream)?;
        }
        Ok(())
    }

    /// Waits until there is something to read, or something can be written: what of the two.
    async fn is_readable(&self) -> Result<bool, End> {
        poll_fn(|cx| {
            match self.registered.outbox.poll(cx) {
                Want::Nothing => {}
                Want::ToClose => return Poll::Ready(Err(End::UnreadOutput)),
                Want::ToWrite => {
                    if let Poll::Ready(ready) = self.stream.poll_write_ready(cx) {
                        return Poll::Ready(ready.map(|()| false).map_err(End::of_stream));
                    }
                }
            }
            let ready = ready!(self.stream.poll_read_ready(cx));
            Poll::Ready(ready.map(|()| true).map_err(End::of_stream))
        })
        .await
    }

    fn read(&mut self) -> Result<(), End> {
        let mut buffer = [0; PIECE];
        match self.stream.try_read(&mut buffer) {
            Ok(0) => Err(self.protocol.end().map_or(End::Closed, End::Misbehaved)),
            Ok(count) => self.received(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(End::of_stream(error)),
        }
    }

    fn received(&mut self, mut input: &[u8]) -> Result<(), End> {
        let mut greeting = Vec::new();
        let was_greeted = self.protocol.is_greeted();
        let mut is_new = false;
        while !self.is_stopped {
            let request = self.protocol.receive(&mut input, &mut greeting);
            if !greeting.is_empty() {
                self.registered.outbox.push_bytes(&greeting);
                greeting.clear();
            }
            match request.map_err(End::Misbehaved)? {
                Some(request) => {
                    is_new = true;
                    self.request(request);
                }
                None => break,
            }
            // A few bytes ask for a long answer, so that what came at once can be too much.
            match self.registered.outbox.relieve(&self.stream) {
                Ok(Want::ToClose) => return Err(End::UnreadOutput),
                Ok(_) => {}
                Err(error) => return Err(End::of_stream(error)),
            }
        }
        is_new |= was_greeted != self.protocol.is_greeted();
        if !self.protocol.is_inside_message() {
            self.deadline = None;
        } else if is_new || self.deadline.is_none() {
            self.deadline = after(self.message_timeout);
        }
        Ok(())
    }

    fn request(&mut self, request: Request) {
        match &request {
            Request::UpdateInfo(server) => {
                // Once: a span keeps all that was ever recorded in it.
                if !self.is_server {
                    Span::current().record("key", tracing::field::debug(shown(&server.key)));
                    info!("a server registers");
                }
                self.is_server = true;
            }
            Request::Put { key, port, .. } => debug!(key = shown(key), port, "offers a device"),
            Request::Request { key, priority, .. } => {
                let priority = priority.get();
                debug!(key = shown(key), priority, "asks for a device");
            }
            Request::Stop { .. } => debug!("asks for the end"),
            // The question of an idle server, every other second.
            _ => trace!(?request),
        }
        self.is_stopped |= self.registered.request(request);
    }

    fn log(&self, end: &End) {
        match end {
            End::Misbehaved(error) => warn!(error = chain(error), "closed"),
            End::Slow => warn!("closed: it did not complete its message in time"),
            End::UnreadOutput => warn!("closed: it leaves too much unread"),
            End::Lost(error) if self.is_server => info!(%error, "a server was lost"),
            End::Closed if self.is_server => info!("a server left"),
            End::Lost(error) => debug!(%error, "lost"),
            End::Closed => debug!("left"),
        }
    }
}

impl End {
    /// The peer's end of the stream is also seen when something is written.
    fn of_stream(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Lost(error),
        }
    }
}

/// As much of a key as a log needs, which gets it before its length is looked at.
fn shown(key: &str) -> &str {
    const SHOWN: usize = 100;
    key.char_indices()
        .nth(SHOWN)
        .map_or(key, |(end, _)| &key[..end])
}

/// An error and its sources. What they repeat of the peer's bytes cannot steer a terminal.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    for c in Chain(error).to_string().chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use tokio::net::TcpListener;

    use super::*;
    use crate::TrackerOptions;

    async fn connection(options: TrackerOptions) -> Connection {
        accepted(&Arc::new(Shared::new(options))).await.0
    }

    /// A connection and the end of it that the peer has.
    async fn accepted(shared: &Arc<Shared>) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let local = listener.local_addr().unwrap();
        let client = TcpStream::connect(local).await.unwrap();
        let (stream, remote) = listener.accept().await.unwrap();
        let connection = Connection::new(stream, Peer { remote, local }, shared);
        (connection, client)
    }

    #[tokio::test]
    async fn what_a_connection_left_goes_before_the_peer_sees_its_end() {
        let shared = Arc::new(Shared::new(TrackerOptions::default()));
        let (connection, client) = accepted(&shared).await;
        // Read without the runtime, which does not hear of anything while this thread has the lock.
        let mut client = client.into_std().unwrap();
        let mut byte = [0];
        std::thread::scope(|scope| {
            let state = shared.lock();
            scope.spawn(move || drop(connection));
            std::thread::sleep(Duration::from_millis(100));
            // The queues cannot be changed yet, so that the connection has to be open.
            let unread = client.read(&mut byte);
            drop(state);
            assert_eq!(unread.unwrap_err().kind(), ErrorKind::WouldBlock);
        });
        client.set_nonblocking(false).unwrap();
        assert_eq!(client.read(&mut byte).unwrap(), 0);
        assert_eq!(shared.connections(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn each_message_has_the_time_for_itself() {
        let limit = Duration::from_secs(10);
        let options = TrackerOptions::default().with_message_timeout(limit);
        let mut connection = connection(options).await;
        let start = Instant::now();
        let mut deadline_after = |bytes: &[u8]| {
            connection.received(bytes).unwrap();
            connection.deadline.map(|deadline| deadline - start)
        };
        let second = Duration::from_secs(1);
        for (bytes, deadline) in [
            (&b"\x71\xf2"[..], Some(10)),
            // The end of the greeting and the beginning of a frame.
            (b"\x02\0\x03", Some(12)),
            (b"\0\0\0[", Some(12)),
            // Nothing is due.
            (b"1]", None),
            (b"\x03\0\0\0[1]\x03", Some(15)),
            (b"\0\0", Some(15)),
            (b"\0[1]\x03", Some(17)),
        ] {
            tokio::time::advance(second).await;
            let deadline = deadline.map(|seconds| second * seconds);
            assert_eq!(deadline_after(bytes), deadline, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_long_key_is_cut_between_characters() {
        assert_eq!(shown("rasp4b"), "rasp4b");
        assert_eq!(shown(&"é".repeat(1000)), "é".repeat(100));
    }

    #[test]
    fn a_peer_cannot_steer_the_terminal() {
        let mut connection = ServingConnection::new(rpc_proto::Limits::default());
        let mut input = &b"\x71\xf2\x02\x00\x09\0\0\0[1] \x1b[2J\n"[..];
        let error = connection.receive(&mut input, &mut Vec::new()).unwrap_err();
        let told = chain(&error);
        assert!(told.contains(r"\u{1b}[2J\n"), "{told}");
    }
}

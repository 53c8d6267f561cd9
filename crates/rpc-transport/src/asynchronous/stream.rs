use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, lookup_host, tcp};
use tokio::time::timeout;

use crate::socket::quick_ack;
use crate::{Address, Deadline, Step, TransportError};

/// A connection to one peer. Errors name the peer, and what was being done.
#[derive(Debug)]
pub struct Stream {
    reader: Reader,
    writer: Writer,
}

impl Stream {
    /// A stream on any two halves; `peer` is its name in messages. It starts without a deadline.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        peer: impl Into<String>,
    ) -> Self {
        let (reader, peer) = (ReadHalf::Other(Box::new(reader)), peer.into());
        Self::of(reader, Box::new(writer), peer.into())
    }

    pub(super) fn tcp(socket: TcpStream, peer: String) -> Self {
        let (reader, writer) = socket.into_split();
        Self::of(ReadHalf::Tcp(reader), Box::new(writer), peer.into())
    }

    fn of(reader: ReadHalf, writer: Box<dyn AsyncWrite + Send + Unpin>, peer: Arc<str>) -> Self {
        let watch = Watch {
            peer,
            deadline: Deadline::each_wait(Step::Reply, None),
        };
        Self {
            reader: Reader {
                half: reader,
                watch: watch.clone(),
            },
            writer: Writer {
                half: writer,
                watch,
            },
        }
    }

    /// The two halves, for two tasks.
    #[must_use]
    pub fn into_split(self) -> (Reader, Writer) {
        (self.reader, self.writer)
    }

    /// The peer's name, for messages.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.reader.peer()
    }

    /// What is being done from now on, and how long it may take.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.reader.set_deadline(deadline);
        self.writer.set_deadline(deadline);
    }

    /// Acknowledges what comes next at once, where the stream knows such a thing.
    pub fn quick_ack(&self) {
        if let ReadHalf::Tcp(half) = &self.reader.half {
            quick_ack(SockRef::from(half.as_ref()));
        }
    }

    /// See [`Reader::read`].
    ///
    /// # Errors
    /// The stream fails, or the deadline passes.
    pub async fn read(&mut self, target: &mut [u8]) -> Result<usize, TransportError> {
        self.reader.read(target).await
    }

    /// See [`Writer::write_all`].
    ///
    /// # Errors
    /// The stream fails, or the deadline passes. How much was written is then unknown.
    pub async fn write_all(&mut self, head: &[u8], payload: &[u8]) -> Result<(), TransportError> {
        self.writer.write_all(head, payload).await
    }
}

/// The half of a [`Stream`] that reads.
pub struct Reader {
    half: ReadHalf,
    watch: Watch,
}

enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Other(Box<dyn AsyncRead + Send + Unpin>),
}

impl Reader {
    /// The peer's name, for messages.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.watch.peer
    }

    /// What is being done from now on, and how long it may take.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.watch.deadline = deadline;
    }

    /// Reads some bytes; 0 at the end of the stream. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The stream fails, or the deadline passes.
    pub async fn read(&mut self, target: &mut [u8]) -> Result<usize, TransportError> {
        match &mut self.half {
            ReadHalf::Tcp(half) => self.watch.limit(half.read(target)).await,
            ReadHalf::Other(half) => self.watch.limit(half.read(target)).await,
        }
    }

    /// What it means that the stream ended where more was due.
    #[must_use]
    pub fn closed(&self) -> TransportError {
        self.watch.deadline.closed(self.peer())
    }

    /// What it means that the stream failed, for those who poll it.
    #[must_use]
    pub fn failed(&self, source: io::Error) -> TransportError {
        self.watch.failed(source)
    }
}

/// The half of a [`Stream`] that writes.
pub struct Writer {
    half: Box<dyn AsyncWrite + Send + Unpin>,
    watch: Watch,
}

impl Writer {
    /// The peer's name, for messages.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.watch.peer
    }

    /// What is being done from now on, and how long it may take.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.watch.deadline = deadline;
    }

    /// Writes some of `head` and `payload`, one behind the other, and says how many bytes. Nothing
    /// was written when the future is dropped. A stream with a buffer of its own may keep them there
    /// until [`Writer::flush`].
    ///
    /// # Errors
    /// The stream fails, or the deadline passes.
    pub async fn write(&mut self, head: &[u8], payload: &[u8]) -> Result<usize, TransportError> {
        let slices = [IoSlice::new(head), IoSlice::new(payload)];
        let used = if head.is_empty() {
            &slices[1..]
        } else {
            &slices[..]
        };
        match self.watch.limit(self.half.write_vectored(used)).await? {
            0 if !(head.is_empty() && payload.is_empty()) => {
                Err(self.watch.failed(ErrorKind::WriteZero.into()))
            }
            count => Ok(count),
        }
    }

    /// Has the peer get what was written: a stream with a buffer of its own sends what is there.
    ///
    /// # Errors
    /// The stream fails, or the deadline passes.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        self.watch.limit(self.half.flush()).await
    }

    /// Writes `head` and `payload`, one behind the other, and flushes.
    ///
    /// # Errors
    /// The stream fails, or the deadline passes. How much was written is then unknown.
    pub async fn write_all(
        &mut self,
        mut head: &[u8],
        mut payload: &[u8],
    ) -> Result<(), TransportError> {
        while !(head.is_empty() && payload.is_empty()) {
            let count = self.write(head, payload).await?;
            let of_head = count.min(head.len());
            head = &head[of_head..];
            payload = &payload[count - of_head..];
        }
        self.flush().await
    }

    /// What it means that the stream failed, for those who poll it.
    #[must_use]
    pub fn failed(&self, source: io::Error) -> TransportError {
        self.watch.failed(source)
    }

    /// Says that nothing more will be written.
    ///
    /// # Errors
    /// The stream fails, or the deadline passes.
    pub async fn shutdown(&mut self) -> Result<(), TransportError> {
        self.watch.limit(self.half.shutdown()).await
    }
}

/// For what takes any reader. Deadlines do not hold here.
impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.half {
            ReadHalf::Tcp(half) => Pin::new(half).poll_read(context, target),
            ReadHalf::Other(half) => Pin::new(half).poll_read(context, target),
        }
    }
}

/// For what takes any writer. Deadlines do not hold here.
impl AsyncWrite for Writer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.half).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.half).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.half.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.half).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.half).poll_shutdown(context)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Reader");
        debug.field("peer", &self.peer()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Writer");
        debug.field("peer", &self.peer()).finish_non_exhaustive()
    }
}

/// Whom a half talks to, and how long it may wait.
#[derive(Clone)]
struct Watch {
    peer: Arc<str>,
    deadline: Deadline,
}

impl Watch {
    async fn limit<T>(
        &self,
        operation: impl Future<Output = io::Result<T>>,
    ) -> Result<T, TransportError> {
        match within(self.deadline.next_wait(), operation).await {
            Some(result) => result.map_err(|source| self.failed(source)),
            None => Err(self.deadline.timed_out(&self.peer)),
        }
    }

    fn failed(&self, source: io::Error) -> TransportError {
        self.deadline.lost(&self.peer, source)
    }
}

/// What `operation` ends with, or nothing if the time is up first.
pub(super) async fn within<T>(
    limit: Option<Duration>,
    operation: impl Future<Output = T>,
) -> Option<T> {
    match limit {
        None => Some(operation.await),
        // Also for a peer that keeps us busy: an operation that is ready would win over the limit.
        Some(Duration::ZERO) => None,
        Some(limit) => timeout(limit, operation).await.ok(),
    }
}

/// The addresses of a host.
pub(super) async fn look_up(address: &Address, deadline: &Deadline) -> io::Result<Vec<SocketAddr>> {
    let found = lookup_host((address.host(), address.port()));
    match within(deadline.next_wait(), found).await {
        Some(found) => Ok(found?.collect()),
        None => Err(ErrorKind::TimedOut.into()),
    }
}

/// Opens a connection to one address.
pub(super) async fn open(address: SocketAddr, limit: Option<Duration>) -> io::Result<TcpStream> {
    let opened = within(limit, TcpStream::connect(address)).await;
    opened.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()))
}

#[cfg(unix)]
pub use pipe::spawn;

#[cfg(unix)]
mod pipe {
    use std::io;
    use std::pin::Pin;
    use std::process::Command;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, ReadBuf};
    use tokio::net::{UnixStream, unix};

    use super::Stream;
    use crate::TransportError;
    use crate::child::{ChildGuard, start};

    /// Starts a program and talks to it on its standard input and output. The child sees the end of
    /// its input when the stream is dropped. If it does not leave within two seconds then, it is killed,
    /// as long as our own process is still there to do it.
    ///
    /// # Errors
    /// The program cannot be started.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn(command: Command) -> Result<Stream, TransportError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let (socket, child) = start(command)?;
        let socket = socket
            .set_nonblocking(true)
            .and_then(|()| UnixStream::from_std(socket));
        let socket = socket.map_err(|source| TransportError::Spawn {
            program: program.clone(),
            source,
        })?;
        let (reader, writer) = socket.into_split();
        let reader = ChildReader {
            half: reader,
            _child: child,
        };
        Ok(Stream::new(reader, writer, program))
    }

    /// The half that reads keeps the child alive.
    struct ChildReader {
        half: unix::OwnedReadHalf,
        _child: ChildGuard,
    }

    impl AsyncRead for ChildReader {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            target: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.half).poll_read(context, target)
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn quick_acknowledgements_reach_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = Stream::tcp(open(address, None).await.unwrap(), address.to_string());
        let ReadHalf::Tcp(half) = &stream.reader.half else {
            panic!("a TCP stream has a TCP half");
        };
        let socket = SockRef::from(half.as_ref());
        socket.set_tcp_quickack(false).unwrap();
        stream.quick_ack();
        assert!(socket.tcp_quickack().unwrap());
    }
}

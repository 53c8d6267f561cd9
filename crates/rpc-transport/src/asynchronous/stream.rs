use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;
use std::time::Instant;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host, tcp};
use tokio::time::timeout;

use crate::socket::{Attempts, configure, quick_ack};
use crate::{Address, ConnectOptions, Deadline, Step, TransportError};

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
        peer: String,
    ) -> Self {
        Self::of(ReadHalf::Other(Box::new(reader)), Box::new(writer), peer)
    }

    fn of(reader: ReadHalf, writer: Box<dyn AsyncWrite + Send + Unpin>, peer: String) -> Self {
        let watch = Watch {
            peer: peer.into(),
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
    /// was written when the future is dropped.
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

    /// Writes `head` and `payload`, one behind the other.
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
        Ok(())
    }

    /// Says that nothing more will be written.
    ///
    /// # Errors
    /// The stream fails, or the deadline passes.
    pub async fn shutdown(&mut self) -> Result<(), TransportError> {
        self.watch.limit(self.half.shutdown()).await
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
        let result = match self.deadline.next_wait() {
            None => operation.await,
            Some(wait) => match timeout(wait, operation).await {
                Ok(result) => result,
                Err(_) => return Err(self.timed_out()),
            },
        };
        result.map_err(|source| self.failed(source))
    }

    fn timed_out(&self) -> TransportError {
        TransportError::TimedOut {
            peer: self.peer.to_string(),
            step: self.deadline.step(),
            allowed: self.deadline.allowed().unwrap_or_default(),
        }
    }

    fn failed(&self, source: io::Error) -> TransportError {
        TransportError::Io {
            peer: self.peer.to_string(),
            step: self.deadline.step(),
            source,
        }
    }
}

/// Connects to `address`, trying every address of a host name until one accepts.
///
/// # Errors
/// The name has no address, none of them accepts, or [`ConnectOptions::connect_timeout`] passes.
pub async fn connect(
    address: &Address,
    options: &ConnectOptions,
) -> Result<Stream, TransportError> {
    let peer = address.to_string();
    let timed_out = || TransportError::TimedOut {
        peer: address.to_string(),
        step: Step::Connect,
        allowed: options.connect_timeout,
    };
    let connecting = timeout(options.connect_timeout, try_all(address, options));
    let connected = connecting.await.map_err(|_| timed_out())?;
    let stream = connected.map_err(|source| match source.kind() {
        ErrorKind::TimedOut => timed_out(),
        _ => TransportError::Connect {
            peer: peer.clone(),
            source,
        },
    })?;
    let (reader, writer) = stream.into_split();
    Ok(Stream::of(ReadHalf::Tcp(reader), Box::new(writer), peer))
}

async fn try_all(address: &Address, options: &ConnectOptions) -> io::Result<TcpStream> {
    let deadline = Instant::now() + options.connect_timeout;
    let addresses: Vec<_> = lookup_host((address.host(), address.port()))
        .await?
        .collect();
    let mut attempts = Attempts::new(&addresses, deadline);
    for &address in &addresses {
        let attempt = timeout(attempts.next_share(), TcpStream::connect(address)).await;
        let attempt = attempt.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
        match attempt.and_then(|stream| configure(SockRef::from(&stream), options).map(|()| stream))
        {
            Ok(stream) => return Ok(stream),
            Err(error) => attempts.failed(error),
        }
    }
    Err(attempts.into_failure())
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
    /// its input when the stream is dropped, and is ended if it does not leave by itself.
    ///
    /// # Errors
    /// The program cannot be started.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn(command: &mut Command) -> Result<Stream, TransportError> {
        let (socket, child) = start(command)?;
        let program = command.get_program().to_string_lossy().into_owned();
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

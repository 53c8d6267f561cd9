//! A WebSocket as a stream of bytes.

mod wakers;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use self::wakers::{Half, Wakers};
use super::stream::{Stream, within};
use crate::websocket::{Inbound, NORMAL, Next, Outbound, Role};
use crate::{Deadline, TransportError};

/// A buffer that was not initialized is only so far at a time.
const MOST_AT_ONCE: usize = 64 << 10;

/// The stream of bytes that is in the binary messages of a WebSocket, on any connection `S` that was
/// upgraded to one.
///
/// The bounds of messages mean nothing. Frames of any length are read as they come; of the connection's
/// memory at most 80 KiB are used, whatever the peer does.
///
/// * **Reading** gives 0 bytes when the peer sent a close frame, which is answered, or closed the
///   connection. Pings are answered while reading. A text message, and whatever else is no WebSocket of
///   binary messages, is an error of the kind [`InvalidData`](io::ErrorKind::InvalidData), and the peer is
///   told by a close frame.
/// * **Writing** puts what is written into a frame of at most 64 KiB, which leaves at once. What the
///   connection does not take leaves as soon as it does, while one reads, writes or flushes; so flush ahead
///   of a time in which none of that is done.
/// * **Shutting down** sends a close frame behind what was written. What the peer still says can be read
///   until it has answered.
///
/// Both halves of [`tokio::io::split`] may be used by tasks of their own. A read that is dropped loses
/// nothing, a write that is dropped has written nothing.
///
/// ```no_run
/// # async fn example(upgraded: tokio::net::TcpStream) -> std::io::Result<()> {
/// use rpc_transport::asynchronous::WebSocket;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let mut stream = WebSocket::accepted(upgraded);
/// let mut magic = [0; 4];
/// stream.read_exact(&mut magic).await?;
/// stream.write_all(b"answer").await?;
/// stream.flush().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WebSocket<S> {
    connection: S,
    inbound: Inbound,
    outbound: Outbound,
    /// Something was written since the connection was flushed.
    unflushed: bool,
    wakers: Wakers,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// A WebSocket on a connection that a client had upgraded, as its server.
    #[must_use]
    pub fn accepted(connection: S) -> Self {
        Self::new(connection, Role::Server, &[])
    }

    /// A WebSocket on a connection that a server has upgraded, as its client. `unread` was read behind the
    /// server's answer already.
    #[must_use]
    pub fn opened(connection: S, unread: &[u8]) -> Self {
        Self::new(connection, Role::Client, unread)
    }

    fn new(connection: S, ours: Role, unread: &[u8]) -> Self {
        Self {
            connection,
            inbound: Inbound::new(ours, unread),
            outbound: Outbound::new(ours),
            unflushed: false,
            wakers: Wakers::default(),
        }
    }

    /// Flushes, and gives the connection back with what was read of it and not used: together they can be
    /// made a WebSocket again, in another process too. It is at most a few KiB more than the payload that
    /// a caller has not read.
    ///
    /// # Errors
    /// The connection fails.
    pub async fn into_parts(mut self) -> io::Result<(S, Vec<u8>)> {
        self.flush().await?;
        Ok((self.connection, self.inbound.into_unread()))
    }

    /// Sends what has to be sent.
    fn poll_send(&mut self, half: Half, context: &Context<'_>) -> Poll<io::Result<()>> {
        // Not the waker of this half alone: the other one may be waiting for the same.
        self.wakers.register(half, context.waker());
        let waker = self.wakers.both();
        let context = &mut Context::from_waker(&waker);
        loop {
            let unsent = self.outbound.unsent()?;
            if unsent.is_empty() {
                break;
            }
            self.unflushed = true;
            match ready!(Pin::new(&mut self.connection).poll_write(context, unsent))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.outbound.sent(count),
            }
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.connection).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what can be sent, on behalf of those who read. That it cannot be sent does not keep them from
    /// reading; those who write will see.
    fn send_some(&mut self, context: &Context<'_>) {
        let _ = self.poll_send(Half::Reading, context);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if target.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        this.send_some(context);
        loop {
            let room = target.remaining().min(MOST_AT_ONCE);
            match this.inbound.next(target.initialize_unfilled_to(room)) {
                Ok(Next::Payload(count)) => {
                    target.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Next::Straight(most)) => {
                    let mut straight = target.take(most);
                    let connection = Pin::new(&mut this.connection);
                    ready!(connection.poll_read(context, &mut straight))?;
                    let count = straight.filled().len();
                    this.inbound.came_straight(straight.filled_mut());
                    target.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Next::More) => {
                    let mut room = ReadBuf::new(this.inbound.room());
                    let connection = Pin::new(&mut this.connection);
                    ready!(connection.poll_read(context, &mut room))?;
                    let count = room.filled().len();
                    this.inbound.came(count);
                }
                Ok(Next::Ping(payload)) => {
                    this.outbound.pong(payload);
                    this.send_some(context);
                }
                Ok(Next::Close(code)) => {
                    this.outbound.close(code);
                    this.send_some(context);
                    return Poll::Ready(Ok(()));
                }
                Ok(Next::End) => return Poll::Ready(Ok(())),
                Err(violation) => {
                    this.outbound.refuse(violation);
                    this.send_some(context);
                    let error = io::Error::new(io::ErrorKind::InvalidData, violation);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_send(Half::Writing, context))?;
        let count = this.outbound.put(slices)?;
        match this.poll_send(Half::Writing, context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(count)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send(Half::Writing, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.outbound.close(Some(NORMAL));
        ready!(this.poll_send(Half::Writing, context))?;
        if this.inbound.is_over() {
            // A peer that still has something to say might take this for the end of both directions.
            let waker = this.wakers.both();
            let context = &mut Context::from_waker(&waker);
            return Pin::new(&mut this.connection).poll_shutdown(context);
        }
        Poll::Ready(Ok(()))
    }
}

/// What [`WebSocket::connect`] makes.
pub(super) type OnTcp = WebSocket<TcpStream>;

impl OnTcp {
    pub(super) fn into_stream(self, peer: String) -> Stream {
        let (reader, writer) = tokio::io::split(self);
        Stream::new(reader, writer, peer)
    }
}

pub(super) async fn send(
    socket: &mut TcpStream,
    bytes: &[u8],
    deadline: &Deadline,
    peer: &str,
) -> Result<(), TransportError> {
    match within(deadline.next_wait(), socket.write_all(bytes)).await {
        Some(sent) => sent.map_err(|source| deadline.lost(peer, source)),
        None => Err(deadline.timed_out(peer)),
    }
}

pub(super) async fn receive(
    socket: &mut TcpStream,
    target: &mut [u8],
    deadline: &Deadline,
    peer: &str,
) -> Result<usize, TransportError> {
    match within(deadline.next_wait(), socket.read(target)).await {
        Some(came) => came.map_err(|source| deadline.lost(peer, source)),
        None => Err(deadline.timed_out(peer)),
    }
}

//! The stream of a session that is being served, in pieces that a session can read and write.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rpc_transport::asynchronous::{Incoming, Reader, Stream, Writer};
use rpc_transport::{Deadline, Step, TransportError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::serving::expired_packet;
use crate::{ServeError, ServeOptions};

/// The connection to a client.
pub(crate) struct Wire {
    reader: Reader,
    writer: Writer,
    stall: Duration,
    /// An answer was begun and is not complete.
    answering: bool,
}

impl Wire {
    pub(crate) fn new(stream: Stream, options: &ServeOptions) -> Self {
        let (reader, writer) = stream.into_split();
        Self {
            reader,
            writer,
            stall: options.stall_timeout,
            answering: false,
        }
    }

    pub(crate) fn peer(&self) -> &str {
        self.reader.peer()
    }

    /// Here a session that expires is not heard of again.
    #[expect(clippy::unused_self, reason = "its twin has something to look at")]
    pub(crate) fn expired(&self) -> Option<ServeError> {
        None
    }

    /// The half that reads; between requests a client may be silent for ever.
    pub(crate) fn reader(&mut self, between_requests: bool) -> &mut Reader {
        let limit = Some(self.stall).filter(|_| !between_requests);
        self.reader
            .set_deadline(Deadline::each_wait(Step::Request, limit));
        &mut self.reader
    }

    /// Writes an answer, whole.
    pub(crate) async fn answer(&mut self, head: &[u8], payload: &[u8]) -> Result<(), ServeError> {
        self.answering = true;
        self.writer
            .set_deadline(Deadline::each_wait(Step::Answer, Some(self.stall)));
        self.writer.write_all(head, payload).await?;
        self.answering = false;
        Ok(())
    }

    /// Tells the client that its time is up, unless an answer was begun.
    pub(crate) async fn expire(&mut self, options: &ServeOptions, limit: Duration) {
        const MOMENT: Duration = Duration::from_millis(500);
        if !self.answering {
            self.writer
                .set_deadline(Deadline::total(Step::Answer, Some(MOMENT)));
            let packet = expired_packet(options, limit);
            // Whoever does not listen sees the end of the connection.
            let _: Result<(), TransportError> = self.writer.write_all(&packet, &[]).await;
        }
    }
}

/// The payload of a request, for a session to read.
pub(crate) struct PayloadReader<'a> {
    incoming: &'a mut Incoming,
    reader: &'a mut Reader,
    left: u64,
    failure: Option<TransportError>,
}

impl<'a> PayloadReader<'a> {
    pub(crate) fn new(incoming: &'a mut Incoming, wire: &'a mut Wire, left: u64) -> Self {
        Self {
            incoming,
            reader: wire.reader(false),
            left,
            failure: None,
        }
    }

    /// Bytes that were not read, or why the stream failed.
    pub(crate) fn finish(self) -> Result<u64, TransportError> {
        self.failure.map_or(Ok(self.left), Err)
    }
}

impl AsyncRead for PayloadReader<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let most = usize::try_from(this.left).unwrap_or(usize::MAX);
        let most = most.min(target.remaining());
        if most == 0 {
            return Poll::Ready(Ok(()));
        }
        let buffered = this.incoming.bytes();
        let count = if buffered.is_empty() {
            let mut part = ReadBuf::new(target.initialize_unfilled_to(most));
            let read = ready!(Pin::new(&mut *this.reader).poll_read(context, &mut part));
            let count = part.filled().len();
            let failure = match read {
                Ok(()) if count > 0 => None,
                Ok(()) => Some(this.reader.closed()),
                Err(source) => Some(this.reader.failed(source)),
            };
            if let Some(failure) = failure {
                let told = io::Error::other(failure.to_string());
                this.failure = Some(failure);
                return Poll::Ready(Err(told));
            }
            target.advance(count);
            count
        } else {
            let count = most.min(buffered.len());
            target.put_slice(&buffered[..count]);
            this.incoming.consume(count);
            count
        };
        this.left -= count as u64;
        Poll::Ready(Ok(()))
    }
}

/// The data of an answer, for a session to write: `head` goes out with its first bytes.
pub(crate) struct DataWriter<'a> {
    wire: &'a mut Wire,
    head: &'a [u8],
    left: u64,
    failure: Option<ServeError>,
}

impl<'a> DataWriter<'a> {
    pub(crate) fn new(wire: &'a mut Wire, head: &'a [u8], left: u64) -> Self {
        Self {
            wire,
            head,
            left,
            failure: None,
        }
    }

    /// Whether something was written, and how many bytes are missing; or why the stream failed.
    pub(crate) fn finish(self) -> Result<(bool, u64), ServeError> {
        let began = self.wire.answering;
        if self.left == 0 && self.head.is_empty() {
            self.wire.answering = false;
        }
        self.failure.map_or(Ok((began, self.left)), Err)
    }
}

impl AsyncWrite for DataWriter<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if bytes.len() as u64 > this.left {
            let left = this.left;
            let told = format!("{} bytes of data, where {left} were asked for", bytes.len());
            return Poll::Ready(Err(io::Error::other(told)));
        }
        loop {
            let slices = [IoSlice::new(this.head), IoSlice::new(bytes)];
            let used = if this.head.is_empty() {
                &slices[1..]
            } else {
                &slices[..]
            };
            let written =
                ready!(Pin::new(&mut this.wire.writer).poll_write_vectored(context, used));
            let count = match written {
                Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
                written => written,
            };
            let count = match count {
                Ok(count) => count,
                Err(source) => {
                    let told = io::Error::other(source.to_string());
                    this.failure = Some(this.wire.writer.failed(source).into());
                    return Poll::Ready(Err(told));
                }
            };
            this.wire.answering = true;
            let of_head = count.min(this.head.len());
            this.head = &this.head[of_head..];
            let of_data = count - of_head;
            if of_data > 0 || bytes.is_empty() {
                this.left -= of_data as u64;
                return Poll::Ready(Ok(of_data));
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire.writer).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

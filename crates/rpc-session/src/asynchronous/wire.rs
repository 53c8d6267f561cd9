//! The stream of a session that is being served, in pieces that a session can read and write.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rpc_transport::asynchronous::{Incoming, Reader, Stream, Writer};
use rpc_transport::{Deadline, Step, TransportError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::serving::{ClientGone, session_expired, too_much};
use crate::{ServeError, ServeOptions};

/// How long the last words may take.
const MOMENT: Duration = Duration::from_millis(500);

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

    /// The half that reads; between requests a client may be silent for ever.
    pub(crate) fn reader(&mut self, between_requests: bool) -> &mut Reader {
        let limit = Some(self.stall).filter(|_| !between_requests);
        self.reader
            .set_deadline(Deadline::each_wait(Step::Request, limit));
        &mut self.reader
    }

    /// Writes an answer, whole.
    pub(crate) async fn answer(
        &mut self,
        mut head: &[u8],
        mut payload: &[u8],
    ) -> Result<(), ServeError> {
        self.writer
            .set_deadline(Deadline::each_wait(Step::Answer, Some(self.stall)));
        while !(head.is_empty() && payload.is_empty()) {
            let count = self.writer.write(head, payload).await?;
            self.answering = true;
            let of_head = count.min(head.len());
            head = &head[of_head..];
            payload = &payload[count - of_head..];
        }
        self.complete().await
    }

    /// Says that an answer is complete.
    pub(crate) async fn complete(&mut self) -> Result<(), ServeError> {
        self.answering = false;
        Ok(self.writer.flush().await?)
    }

    /// Tells the client that its time is up, unless an answer was begun; says whether it was told.
    pub(crate) async fn expire(&mut self, options: &ServeOptions, limit: Duration) -> bool {
        if self.answering {
            return false;
        }
        self.writer
            .set_deadline(Deadline::total(Step::Answer, Some(MOMENT)));
        let packet = options.farewell(&session_expired(limit));
        let told = self.writer.write_all(&packet, &[]).await.is_ok();
        self.shutdown().await;
        told
    }

    /// Says that nothing more is written.
    pub(crate) async fn shutdown(&mut self) {
        self.writer
            .set_deadline(Deadline::total(Step::Answer, Some(MOMENT)));
        // Whoever does not listen sees the end of the connection.
        let _: Result<(), TransportError> = self.writer.shutdown().await;
    }
}

/// How long a peer may keep those waiting who poll it.
struct Patience {
    allowed: Duration,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    fn new(allowed: Duration) -> Self {
        let wait = None;
        Self { allowed, wait }
    }

    /// What `polled` says, or nothing if it has said nothing for too long.
    fn limit<T>(&mut self, context: &mut Context<'_>, polled: Poll<T>) -> Poll<Option<T>> {
        if let Poll::Ready(ready) = polled {
            self.wait = None;
            return Poll::Ready(Some(ready));
        }
        let wait = self
            .wait
            .get_or_insert_with(|| Box::pin(sleep(self.allowed)));
        wait.as_mut().poll(context).map(|()| None)
    }

    fn timed_out(&self, peer: &str, step: Step) -> TransportError {
        TransportError::TimedOut {
            peer: peer.to_owned(),
            step,
            allowed: self.allowed,
        }
    }
}

/// The payload of a request, for a session to read.
pub(crate) struct PayloadReader<'a> {
    incoming: &'a mut Incoming,
    reader: &'a mut Reader,
    patience: Patience,
    left: u64,
    failure: Option<TransportError>,
}

impl<'a> PayloadReader<'a> {
    pub(crate) fn new(incoming: &'a mut Incoming, wire: &'a mut Wire, left: u64) -> Self {
        Self {
            incoming,
            patience: Patience::new(wire.stall),
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
            let read = Pin::new(&mut *this.reader).poll_read(context, &mut part);
            let count = part.filled().len();
            let failure = match ready!(this.patience.limit(context, read)) {
                Some(Ok(())) if count > 0 => None,
                Some(Ok(())) => Some(this.reader.closed()),
                Some(Err(source)) => Some(this.reader.failed(source)),
                None => Some(this.patience.timed_out(this.reader.peer(), Step::Request)),
            };
            if let Some(failure) = failure {
                let told = ClientGone::told(&failure);
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
    began: bool,
    patience: Patience,
    failure: Option<ServeError>,
}

impl<'a> DataWriter<'a> {
    pub(crate) fn new(wire: &'a mut Wire, head: &'a [u8], left: u64) -> Self {
        let stall = wire.stall;
        wire.writer
            .set_deadline(Deadline::each_wait(Step::Answer, Some(stall)));
        Self {
            wire,
            head,
            left,
            began: false,
            patience: Patience::new(stall),
            failure: None,
        }
    }

    /// Whether something was written, and how many bytes are missing; or why the stream failed.
    pub(crate) fn finish(self) -> Result<(bool, u64), ServeError> {
        self.failure.map_or(Ok((self.began, self.left)), Err)
    }

    /// Writes some of the head and of `bytes`, and says how many in all.
    fn poll_some(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, TransportError>> {
        let slices = [IoSlice::new(self.head), IoSlice::new(bytes)];
        let used = &slices[usize::from(self.head.is_empty())..];
        let writer = &mut self.wire.writer;
        let written = Pin::new(&mut *writer).poll_write_vectored(context, used);
        Poll::Ready(match ready!(self.patience.limit(context, written)) {
            Some(Ok(0)) => Err(writer.failed(io::ErrorKind::WriteZero.into())),
            Some(Ok(count)) => Ok(count),
            Some(Err(source)) => Err(writer.failed(source)),
            None => Err(self.patience.timed_out(writer.peer(), Step::Answer)),
        })
    }
}

impl AsyncWrite for DataWriter<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if bytes.len() as u64 > this.left {
            return Poll::Ready(Err(too_much(bytes.len(), this.left)));
        }
        loop {
            let count = match ready!(this.poll_some(context, bytes)) {
                Ok(count) => count,
                Err(error) => {
                    let told = ClientGone::told(&error);
                    this.failure = Some(error.into());
                    return Poll::Ready(Err(told));
                }
            };
            this.began = true;
            let of_head = count.min(this.head.len());
            this.head = &this.head[of_head..];
            let of_data = count - of_head;
            this.left -= of_data as u64;
            this.wire.answering = this.left > 0;
            if of_data > 0 {
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

//! The connection of an async session.
//!
//! Callers write their requests themselves, one after the other, and a task of the session reads the
//! replies and gives each to the caller that waits for it. A payload is read by the caller that it is
//! for: the reading task lends it the connection's reading half.
//!
//! # What happens when a caller's future is dropped
//!
//! * Before its request was encoded: nothing was sent.
//! * While the request is written: what is missing stays in the [`Outbox`], and whoever writes next
//!   completes it first; a payload is completed with zeros. The packet was announced with its length,
//!   so it has to become that long, and nobody waits for its effect any more.
//! * While it waits for the reply: the reply is read all the same, and a handle in it is freed.
//! * While it reads a payload: the reading half goes back to the task, which skips the rest.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rpc_proto::endpoint::RequestError;
use rpc_proto::{ClientEndpoint, Packet, Received, Reply};
use rpc_transport::asynchronous::{Incoming, Reader, Stream, Writer};
use rpc_transport::{Deadline, Step, TransportError};
use tokio::sync::{MutexGuard as MutexGuardAsync, Notify, oneshot};
use tokio::task::JoinHandle;

use super::dual::payload::{self, Announced, PIECE, Sink, Source};
use crate::answer::Answer;
use crate::freed::{FreeQueue, Freed, Orphan};
use crate::{SessionError, SessionOptions};

/// What the end of a session waits for, it waits for so long.
const MOMENT: Duration = Duration::from_secs(1);

/// Shared by a session and all that came out of it; the last one ends the session.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    /// Those that [`Link::close`] did not see end.
    tasks: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
}

/// What callers and tasks have in common.
#[derive(Debug)]
struct Shared {
    peer: String,
    freed: FreeQueue,
    endpoint: Mutex<ClientEndpoint<Waiter>>,
    outbox: tokio::sync::Mutex<Outbox>,
    /// Somebody has to write although no request is coming.
    work: Notify,
    /// Why the session is over.
    failure: OnceLock<SessionError>,
    /// Tells those who wait for the peer that there is a [`Shared::failure`].
    over: Notify,
    /// The session ended before all requests were answered.
    unanswered: AtomicBool,
    reply_timeout: Option<Duration>,
    max_payload: u64,
}

/// A request that was sent and not answered yet.
#[derive(Debug)]
struct Waiter {
    since: Instant,
    /// When the payload of the request was sent, if it has one.
    payload_sent: Option<Arc<OnceLock<Instant>>>,
    orphan: Orphan,
    /// Nobody, for a request of the session's own.
    caller: Option<oneshot::Sender<Delivery>>,
}

/// What the reading task gives to a caller.
#[derive(Debug)]
enum Delivery {
    Answer(Unclaimed),
    Payload(Announced, Lease),
}

/// An answer on its way to its caller. If it never gets there, since the caller has gone, what it brings
/// is freed: also when the caller goes after the answer was handed over and before it took it.
#[derive(Debug)]
struct Unclaimed {
    answer: Option<Result<Answer, SessionError>>,
    orphan: Orphan,
    shared: Arc<Shared>,
}

impl Unclaimed {
    fn claim(mut self) -> Result<Answer, SessionError> {
        self.answer.take().unwrap_or(Err(SessionError::Closed))
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(Ok(answer)) = &self.answer
            && let Some(freed) = self.orphan.freed(answer)
        {
            self.shared.free(freed);
        }
    }
}

/// The reading half of the connection, and what is left of the payload that comes next.
#[derive(Debug)]
struct ReadHalf {
    reader: Reader,
    incoming: Incoming,
    left: u64,
    /// How long the peer may be silent; until its first answer, how long it may construct the session.
    limit: Option<Duration>,
}

/// The reading half, lent to the caller that a payload is for. It goes back when this is dropped.
#[derive(Debug)]
struct Lease {
    half: Option<ReadHalf>,
    back: Option<oneshot::Sender<ReadHalf>>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let (Some(half), Some(back)) = (self.half.take(), self.back.take()) {
            // When the task is gone, so is the session.
            let _ = back.send(half);
        }
    }
}

/// The writing half of the connection, and what was not written yet.
#[derive(Debug)]
struct Outbox {
    writer: Writer,
    head: Vec<u8>,
    written: usize,
    /// Bytes of payload that are due behind the head.
    payload_left: u64,
    /// Where to say that there are none any more.
    payload_sent: Option<Arc<OnceLock<Instant>>>,
}

impl Link {
    /// Starts the session's tasks.
    pub(crate) fn new(stream: Stream, options: &SessionOptions) -> Self {
        let peer = stream.peer().to_owned();
        let (reader, writer) = stream.into_split();
        let limits = options.connect.limits;
        let shared = Arc::new(Shared {
            peer,
            freed: FreeQueue::default(),
            endpoint: Mutex::new(ClientEndpoint::new(options.dialect, limits)),
            outbox: tokio::sync::Mutex::new(Outbox {
                writer,
                head: Vec::new(),
                written: 0,
                payload_left: 0,
                payload_sent: None,
            }),
            work: Notify::new(),
            failure: OnceLock::new(),
            over: Notify::new(),
            unanswered: AtomicBool::new(false),
            reply_timeout: options.reply_timeout,
            max_payload: limits.payload,
        });
        let half = ReadHalf {
            reader,
            incoming: Incoming::default(),
            left: 0,
            limit: Some(options.init_timeout),
        };
        let reading = tokio::spawn(Arc::clone(&shared).read_all(half));
        let writing = tokio::spawn(Arc::clone(&shared).write_leftovers());
        Self {
            shared,
            tasks: tokio::sync::Mutex::new(vec![reading, writing]),
        }
    }

    pub(crate) fn peer(&self) -> &str {
        &self.shared.peer
    }

    /// Most bytes of one payload.
    pub(crate) fn max_payload(&self) -> u64 {
        self.shared.max_payload
    }

    /// Has `freed` freed soon. Never waits.
    pub(crate) fn free(&self, freed: Freed) {
        self.shared.free(freed);
    }

    /// Sends a request with the payload that it announces, and waits for the answer.
    pub(crate) async fn exchange(
        &self,
        packet: &Packet<'_>,
        source: Source<'_>,
        sink: Sink<'_>,
    ) -> Result<Answer, SessionError> {
        let (caller, delivery) = oneshot::channel();
        let sent = self.shared.send(packet, source, caller).await;
        if let Err(error) = &sent
            && (error.is_fatal() || matches!(error, SessionError::Request(_)))
        {
            return Err(error.clone());
        }
        let delivery = delivery.await.map_err(|_| self.shared.why_over())?;
        let answer = match delivery {
            Delivery::Answer(answer) => answer.claim(),
            Delivery::Payload(announced, lease) => {
                self.shared.receive(announced, lease, sink).await
            }
        };
        sent.and(answer)
    }

    /// Ends the session; what is called later fails.
    pub(crate) async fn close(&self) {
        self.shared.fail(SessionError::Closed);
        let mut tasks = self.tasks.lock().await;
        while let Some(task) = tasks.last_mut() {
            let _ = task.await;
            tasks.pop();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The tasks say goodbye, and are then done.
        self.shared.fail(SessionError::Closed);
    }
}

impl Shared {
    fn free(&self, freed: Freed) {
        if self.failure.get().is_none() {
            self.freed.push(freed);
            self.work.notify_one();
        }
    }

    /// Why the session is over, once it is.
    fn why_over(&self) -> SessionError {
        self.failure.get().cloned().unwrap_or(SessionError::Closed)
    }

    /// The session is over: all that wait learn why.
    fn fail(&self, error: SessionError) -> SessionError {
        let why = self.failure.get_or_init(|| error).clone();
        self.abandon_all();
        self.over.notify_waiters();
        self.work.notify_one();
        why
    }

    /// What `work` ends with, or why the session was over first.
    async fn unless_over<T>(
        &self,
        work: impl Future<Output = Result<T, SessionError>>,
    ) -> Result<T, SessionError> {
        let (mut work, mut over) = (pin!(work), pin!(self.over.notified()));
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            // First to be woken when the session ends, and then to see whether it has ended already.
            let _ = over.as_mut().poll(context);
            match self.failure.get() {
                Some(why) => Poll::Ready(Err(why.clone())),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// A failure of `writing` ends the session.
    async fn deliver(
        &self,
        writing: impl Future<Output = Result<(), SessionError>>,
    ) -> Result<(), SessionError> {
        let error = match self.unless_over(writing).await {
            Err(error) if error.is_fatal() => error,
            written => return written,
        };
        // What the server said before it closed the connection tells more of why: it is being read.
        if !matches!(&error, SessionError::Transport(error) if error.is_timeout()) {
            let ended = self.unless_over(std::future::pending::<Result<(), SessionError>>());
            let _ = tokio::time::timeout(MOMENT, ended).await;
        }
        Err(self.fail(error))
    }

    /// Callers whose waiter is dropped ask [`Shared::why_over`].
    fn abandon_all(&self) {
        let waiters: Vec<_> = lock(&self.endpoint).abandon().collect();
        if !waiters.is_empty() {
            self.unanswered.store(true, Ordering::Relaxed);
        }
        drop(waiters);
    }

    async fn send(
        &self,
        packet: &Packet<'_>,
        source: Source<'_>,
        caller: oneshot::Sender<Delivery>,
    ) -> Result<(), SessionError> {
        let mut outbox = Writing {
            outbox: self.outbox.lock().await,
            work: &self.work,
        };
        let outbox = &mut *outbox.outbox;
        // What another caller left.
        self.deliver(outbox.complete(self.reply_timeout)).await?;
        self.encode(packet, caller, outbox)?;
        self.deliver(outbox.write(source, self.reply_timeout)).await
    }

    /// Encodes what was freed, and the request. From here on the request is as good as sent.
    fn encode(
        &self,
        packet: &Packet<'_>,
        caller: oneshot::Sender<Delivery>,
        outbox: &mut Outbox,
    ) -> Result<(), SessionError> {
        let since = Instant::now();
        let mut endpoint = lock(&self.endpoint);
        // Whoever ends the session empties the endpoint behind that, so that no waiter is forgotten.
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        self.encode_freed(&mut endpoint, since, outbox)?;
        let payload_sent = (packet.payload() > 0).then(Arc::default);
        let waiter = Waiter {
            since,
            payload_sent: payload_sent.clone(),
            orphan: Orphan::of(packet),
            caller: Some(caller),
        };
        endpoint.request(packet, waiter, &mut outbox.head)?;
        outbox.payload_left = packet.payload();
        outbox.payload_sent = payload_sent;
        Ok(())
    }

    fn encode_freed(
        &self,
        endpoint: &mut ClientEndpoint<Waiter>,
        since: Instant,
        outbox: &mut Outbox,
    ) -> Result<(), RequestError> {
        for freed in self.freed.take_batch() {
            endpoint.request(&freed.packet(), Waiter::nobody(since), &mut outbox.head)?;
        }
        Ok(())
    }

    /// Reads the payload that is for this caller.
    async fn receive(
        &self,
        announced: Announced,
        mut lease: Lease,
        sink: Sink<'_>,
    ) -> Result<Answer, SessionError> {
        let Some(half) = &mut lease.half else {
            return Err(self.why_over());
        };
        let ReadHalf {
            reader,
            incoming,
            left,
            limit,
        } = half;
        reader.set_deadline(Deadline::each_wait(Step::Reply, *limit));
        let receiving = payload::receive(announced, left, sink, incoming, reader);
        let answer = self.unless_over(receiving).await;
        answer.map_err(|error| {
            if error.is_fatal() {
                self.fail(error)
            } else {
                error
            }
        })
    }

    /// The reading task.
    async fn read_all(self: Arc<Self>, half: ReadHalf) {
        let half = Arc::clone(&self).read_replies(half).await;
        let closed = matches!(self.failure.get(), Some(SessionError::Closed));
        if let Some(mut half) = half
            && closed
            && self.unanswered.load(Ordering::Relaxed)
        {
            // A server whose replies are not taken fails: that of the reference serves nobody then.
            half.reader
                .set_deadline(Deadline::total(Step::Reply, Some(MOMENT)));
            let _ = half.incoming.skip_payload(&mut half.reader, u64::MAX).await;
        }
    }

    /// Reads until the session is over, and gives back the reading half, unless it is lent to somebody.
    async fn read_replies(self: Arc<Self>, mut half: ReadHalf) -> Option<ReadHalf> {
        // The last answer, if it was that the time is up. Servers close the connection behind it.
        let mut expired = None;
        loop {
            match self.unless_over(self.next_reply(&mut half)).await {
                Ok((waiter, Next::Answer(answer))) => {
                    let failure = answer.as_ref().err();
                    expired = failure.filter(|error| error.is_session_timeout()).cloned();
                    let answer = Unclaimed {
                        answer: Some(answer),
                        orphan: waiter.orphan,
                        shared: Arc::clone(&self),
                    };
                    if let Some(caller) = waiter.caller {
                        drop(caller.send(Delivery::Answer(answer)));
                    }
                }
                Ok((waiter, Next::Payload(announced))) => {
                    let (back, returned) = oneshot::channel();
                    let lease = Lease {
                        half: Some(half),
                        back: Some(back),
                    };
                    // A caller that has gone gives the lease back at once.
                    if let Some(caller) = waiter.caller {
                        drop(caller.send(Delivery::Payload(announced, lease)));
                    } else {
                        drop(lease);
                    }
                    let lent = async { returned.await.map_err(|_| self.why_over()) };
                    half = self.unless_over(lent).await.ok()?;
                    let (left, limit) = (half.left, half.limit);
                    half.reader
                        .set_deadline(Deadline::each_wait(Step::Reply, limit));
                    let skipping = half.incoming.skip_payload(&mut half.reader, left);
                    let skipping = async { skipping.await.map_err(SessionError::from) };
                    if let Err(error) = self.unless_over(skipping).await {
                        self.fail(error);
                    }
                }
                Err(error) => {
                    self.fail(expired.take().unwrap_or(error));
                }
            }
            half.limit = self.reply_timeout;
            if self.failure.get().is_some() {
                return Some(half);
            }
        }
    }

    /// Waits for the reply to the oldest request.
    async fn next_reply(&self, half: &mut ReadHalf) -> Result<(Waiter, Next), SessionError> {
        let mut last_byte = Instant::now();
        loop {
            let needed = match self.look_at(half)? {
                Look::Reply(waiter, next) => return Ok((waiter, next)),
                Look::Incomplete(needed) => needed,
            };
            let silent_for = |last_byte| {
                let endpoint = lock(&self.endpoint);
                let due = endpoint.oldest().and_then(Waiter::due_since);
                due.map(|since: Instant| since.max(last_byte).elapsed())
            };
            let spent = silent_for(last_byte).unwrap_or_default();
            let left = |limit: Duration| limit.saturating_sub(spent).max(Duration::from_millis(1));
            half.reader
                .set_deadline(Deadline::each_wait(Step::Reply, half.limit.map(left)));
            match half.incoming.fill(&mut half.reader, needed).await {
                Ok(()) => last_byte = Instant::now(),
                // Nothing was lost; whether it is too late depends on how long a reply is due.
                Err(error) if error.is_timeout() => {
                    if let (Some(silent), Some(allowed)) = (silent_for(last_byte), half.limit)
                        && silent >= allowed
                    {
                        let (peer, step) = (self.peer.clone(), Step::Reply);
                        return Err(TransportError::TimedOut {
                            peer,
                            step,
                            allowed,
                        }
                        .into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn look_at(&self, half: &mut ReadHalf) -> Result<Look, SessionError> {
        let mut endpoint = lock(&self.endpoint);
        let received = endpoint.receive(half.incoming.bytes());
        let received = received.map_err(|source| SessionError::Protocol {
            peer: self.peer.clone(),
            source,
        })?;
        let (consumed, look) = match received {
            Received::Incomplete { consumed, needed } => {
                let needed = usize::try_from(needed).unwrap_or(usize::MAX);
                (consumed, Look::Incomplete(needed))
            }
            Received::Reply {
                consumed,
                token,
                reply,
            } => {
                half.left = reply.payload();
                let next = match reply {
                    Reply::ReturnedBulk { text: true, .. } => Next::Payload(Announced::Text),
                    Reply::ReturnedBulk { .. } => Next::Payload(Announced::Bytes),
                    Reply::Data { .. } => Next::Payload(Announced::Data),
                    reply => Next::Answer(Answer::of(reply)),
                };
                (consumed, Look::Reply(token, next))
            }
            Received::Ended { text: Some(text) } => {
                return Err(SessionError::from_exception(&text));
            }
            _ => {
                return Err(SessionError::Ended {
                    peer: self.peer.clone(),
                });
            }
        };
        half.incoming.consume(consumed);
        Ok(look)
    }

    /// The writing task: what was freed while nobody calls, what dropped callers left, and at last the
    /// goodbye.
    async fn write_leftovers(self: Arc<Self>) {
        loop {
            self.work.notified().await;
            match self.failure.get() {
                None => {
                    if let Err(error) = self.write_freed().await {
                        self.fail(error);
                    }
                }
                Some(SessionError::Closed) => return self.leave(true).await,
                Some(_) => return self.leave(false).await,
            }
        }
    }

    async fn write_freed(&self) -> Result<(), SessionError> {
        loop {
            let mut outbox = self.outbox.lock().await;
            self.deliver(outbox.complete(self.reply_timeout)).await?;
            if self.freed.is_empty() || self.failure.get().is_some() {
                return Ok(());
            }
            self.encode_freed(&mut lock(&self.endpoint), Instant::now(), &mut outbox)?;
            self.deliver(outbox.complete(self.reply_timeout)).await?;
        }
    }

    /// Closes the connection for writing, with or without telling the server that the session ends.
    async fn leave(&self, goodbye: bool) {
        let leaving = async {
            let mut outbox = self.outbox.lock().await;
            if goodbye {
                outbox.complete(Some(MOMENT)).await?;
                let waiter = Waiter::nobody(Instant::now());
                lock(&self.endpoint).request(&Packet::Shutdown, waiter, &mut outbox.head)?;
                outbox.complete(Some(MOMENT)).await?;
            }
            outbox.writer.shutdown().await?;
            Ok::<(), SessionError>(())
        };
        let _ = tokio::time::timeout(MOMENT, leaving).await;
    }
}

/// The oldest request's reply, its payload aside.
enum Next {
    Answer(Result<Answer, SessionError>),
    Payload(Announced),
}

enum Look {
    Reply(Waiter, Next),
    Incomplete(usize),
}

/// A caller at the outbox. When it leaves something there, the writing task is woken.
struct Writing<'a> {
    outbox: MutexGuardAsync<'a, Outbox>,
    work: &'a Notify,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.outbox.is_complete() {
            self.work.notify_one();
        }
    }
}

impl Waiter {
    fn nobody(since: Instant) -> Self {
        Self {
            since,
            payload_sent: None,
            orphan: Orphan::Nothing,
            caller: None,
        }
    }

    /// Since when the reply is due; it is not before all of the request was sent.
    fn due_since(&self) -> Option<Instant> {
        match &self.payload_sent {
            Some(sent) => sent.get().copied(),
            None => Some(self.since),
        }
    }
}

impl Outbox {
    fn is_complete(&self) -> bool {
        self.written == self.head.len() && self.payload_left == 0
    }

    /// Writes the head and the payload that was announced with it.
    async fn write(
        &mut self,
        source: Source<'_>,
        limit: Option<Duration>,
    ) -> Result<(), SessionError> {
        self.writer
            .set_deadline(Deadline::each_wait(Step::Send, limit));
        let (reader, progress) = match source {
            Source::Memory(payload) => return self.write_through(payload).await,
            Source::Reader { reader, progress } => (reader, progress),
        };
        let total = self.payload_left;
        let mut piece = vec![0; PIECE];
        while self.payload_left > 0 {
            let count = usize::try_from(self.payload_left)
                .unwrap_or(PIECE)
                .min(PIECE);
            let filled = payload::read_piece(reader, &mut piece[..count]).await?;
            self.write_through(&piece[..filled]).await?;
            if filled < count {
                return Err(payload::ended_early(total));
            }
            progress(total - self.payload_left, total);
        }
        self.write_through(&[]).await
    }

    /// Writes what is left of the head, and `payload`. Every step is counted, so that it can go on
    /// where a dropped future left it.
    async fn write_through(&mut self, mut payload: &[u8]) -> Result<(), SessionError> {
        while self.written < self.head.len() || !payload.is_empty() {
            let head = &self.head[self.written..];
            let count = self.writer.write(head, payload).await?;
            let of_head = count.min(head.len());
            self.written += of_head;
            payload = &payload[count - of_head..];
            self.payload_left -= (count - of_head) as u64;
        }
        if self.payload_left == 0 {
            self.head.clear();
            self.written = 0;
            if let Some(sent) = self.payload_sent.take() {
                let _ = sent.set(Instant::now());
            }
        }
        Ok(())
    }

    /// Writes what is left of the head, and zeros for what is left of the payload.
    async fn complete(&mut self, limit: Option<Duration>) -> Result<(), SessionError> {
        self.writer
            .set_deadline(Deadline::each_wait(Step::Send, limit));
        let zeros = vec![
            0;
            usize::try_from(self.payload_left)
                .unwrap_or(PIECE)
                .min(PIECE)
        ];
        while self.payload_left > 0 {
            let count = usize::try_from(self.payload_left)
                .unwrap_or(PIECE)
                .min(zeros.len());
            self.write_through(&zeros[..count]).await?;
        }
        self.write_through(&[]).await
    }
}

/// No panic can leave these states half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rpc_proto::endpoint::RequestError;
use rpc_proto::{ClientEndpoint, Packet, Received, Reply};
use rpc_transport::asynchronous::{Incoming, Reader, Stream, Writer};
use rpc_transport::{Deadline, Step};
use tokio::sync::{MutexGuard as MutexGuardAsync, Notify, oneshot};
use tokio::task::JoinHandle;

use super::dual::payload::{self, Announced, PIECE, Sink, Source};
use crate::answer::Answer;
use crate::freed::{FreeQueue, Freed, Orphan};
use crate::{SessionError, SessionOptions};

/// Shared by a session and all that came out of it; the last one ends the session.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
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
    reply_timeout: Mutex<Option<Duration>>,
    max_payload: u64,
}

/// A request that was sent and not answered yet.
#[derive(Debug)]
struct Waiter {
    since: Instant,
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
            }),
            work: Notify::new(),
            failure: OnceLock::new(),
            reply_timeout: Mutex::new(Some(options.init_timeout)),
            max_payload: limits.payload,
        });
        let half = ReadHalf {
            reader,
            incoming: Incoming::default(),
            left: 0,
        };
        let tasks = [
            tokio::spawn(Arc::clone(&shared).read_replies(half)),
            tokio::spawn(Arc::clone(&shared).write_leftovers()),
        ];
        Self { shared, tasks }
    }

    /// The session is constructed: from now on, a reply may take as long as the options say.
    pub(crate) fn opened(&self, options: &SessionOptions) {
        *lock(&self.shared.reply_timeout) = options.reply_timeout;
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
        if self.shared.failure.set(SessionError::Closed).is_ok() {
            self.shared.say_goodbye().await;
            self.shared.abandon_all();
        }
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let [reading, writing] = &self.tasks;
        if self.shared.failure.set(SessionError::Closed).is_ok() {
            // The writing task says goodbye.
            self.shared.work.notify_one();
        } else {
            writing.abort();
        }
        reading.abort();
    }
}

impl Shared {
    fn free(&self, freed: Freed) {
        if self.failure.get().is_none() {
            self.freed.push(freed);
            self.work.notify_one();
        }
    }

    fn reply_timeout(&self) -> Option<Duration> {
        *lock(&self.reply_timeout)
    }

    /// Why the session is over, once it is.
    fn why_over(&self) -> SessionError {
        self.failure.get().cloned().unwrap_or(SessionError::Closed)
    }

    /// The session is over: all that wait learn why.
    fn fail(&self, error: SessionError) -> SessionError {
        let why = self.failure.get_or_init(|| error).clone();
        self.abandon_all();
        self.work.notify_one();
        why
    }

    /// Callers whose waiter is dropped ask [`Shared::why_over`].
    fn abandon_all(&self) {
        let waiters: Vec<_> = lock(&self.endpoint).abandon().collect();
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
        self.complete(outbox).await?;
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        self.encode(packet, caller, outbox)?;
        let sent = outbox.write(source, self.reply_timeout()).await;
        sent.map_err(|error| {
            if error.is_fatal() {
                self.fail(error)
            } else {
                error
            }
        })
    }

    /// Writes what another caller left.
    async fn complete(&self, outbox: &mut Outbox) -> Result<(), SessionError> {
        if outbox.is_complete() {
            return Ok(());
        }
        let limit = self.reply_timeout();
        outbox
            .complete(limit)
            .await
            .map_err(|error| self.fail(error))
    }

    /// Encodes what was freed, and the request. From here on the request is as good as sent.
    fn encode(
        &self,
        packet: &Packet<'_>,
        caller: oneshot::Sender<Delivery>,
        outbox: &mut Outbox,
    ) -> Result<(), RequestError> {
        let since = Instant::now();
        let mut endpoint = lock(&self.endpoint);
        self.encode_freed(&mut endpoint, since, outbox)?;
        let waiter = Waiter {
            since,
            orphan: Orphan::of(packet),
            caller: Some(caller),
        };
        endpoint.request(packet, waiter, &mut outbox.head)?;
        outbox.payload_left = packet.payload();
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
        let limit = self.reply_timeout();
        half.reader
            .set_deadline(Deadline::each_wait(Step::Reply, limit));
        let ReadHalf {
            reader,
            incoming,
            left,
        } = half;
        let answer = payload::receive(announced, left, sink, incoming, reader).await;
        answer.map_err(|error| {
            if error.is_fatal() {
                self.fail(error)
            } else {
                error
            }
        })
    }

    /// The reading task.
    async fn read_replies(self: Arc<Self>, mut half: ReadHalf) {
        loop {
            match self.next_reply(&mut half).await {
                Ok((waiter, Next::Answer(answer))) => {
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
                    let Ok(lent) = returned.await else { return };
                    half = lent;
                    let left = half.left;
                    let limit = self.reply_timeout();
                    half.reader
                        .set_deadline(Deadline::each_wait(Step::Reply, limit));
                    if let Err(error) = half.incoming.skip_payload(&mut half.reader, left).await {
                        self.fail(error.into());
                    }
                }
                Err(error) => {
                    self.fail(error);
                }
            }
            if self.failure.get().is_some() {
                return;
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
            let limit = self.reply_timeout();
            let due = lock(&self.endpoint)
                .oldest()
                .map(|waiter| waiter.since.max(last_byte));
            let spent = due.map_or(Duration::ZERO, |since| since.elapsed());
            let wait = limit.map(|limit| limit.saturating_sub(spent).max(Duration::from_millis(1)));
            half.reader
                .set_deadline(Deadline::each_wait(Step::Reply, wait));
            match half.incoming.fill(&mut half.reader, needed).await {
                Ok(()) => last_byte = Instant::now(),
                // Nothing was lost; whether it is too late depends on how long a reply is due.
                Err(error) if error.is_timeout() => {
                    let oldest = lock(&self.endpoint).oldest().map(|waiter| waiter.since);
                    let silent = oldest.map(|since| since.max(last_byte).elapsed());
                    if silent.is_some_and(|silent| limit.is_some_and(|limit| silent >= limit)) {
                        return Err(error.into());
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
                Some(SessionError::Closed) => return self.say_goodbye().await,
                Some(_) => return,
            }
        }
    }

    async fn write_freed(&self) -> Result<(), SessionError> {
        loop {
            let mut outbox = self.outbox.lock().await;
            self.complete(&mut outbox).await?;
            if self.freed.is_empty() || self.failure.get().is_some() {
                return Ok(());
            }
            self.encode_freed(&mut lock(&self.endpoint), Instant::now(), &mut outbox)?;
            outbox.complete(self.reply_timeout()).await?;
        }
    }

    /// Tells the server that the session ends; if that is not possible, it sees the connection close.
    async fn say_goodbye(&self) {
        const MOMENT: Duration = Duration::from_secs(1);
        let goodbye = async {
            let mut outbox = self.outbox.lock().await;
            outbox.complete(Some(MOMENT)).await?;
            let waiter = Waiter::nobody(Instant::now());
            lock(&self.endpoint).request(&Packet::Shutdown, waiter, &mut outbox.head)?;
            outbox.complete(Some(MOMENT)).await?;
            outbox.writer.shutdown().await?;
            Ok::<(), SessionError>(())
        };
        let _ = tokio::time::timeout(MOMENT, goodbye).await;
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
            orphan: Orphan::Nothing,
            caller: None,
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

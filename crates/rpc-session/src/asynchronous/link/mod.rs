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

mod outbox;
mod replies;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rpc_proto::endpoint::RequestError;
use rpc_proto::{ClientEndpoint, Packet};
use rpc_transport::asynchronous::Stream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use self::outbox::{Outbox, Writing};
use self::replies::{Delivery, ReadHalf, Waiter};
use super::dual::payload::{Sink, Source};
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

/// When one of the session's tasks is gone, however that came, nobody waits for it any more.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        // As a rule there is a reason already.
        self.0.fail(SessionError::Closed);
    }
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
            outbox: tokio::sync::Mutex::new(Outbox::new(writer)),
            work: Notify::new(),
            failure: OnceLock::new(),
            over: Notify::new(),
            unanswered: AtomicBool::new(false),
            reply_timeout: options.reply_timeout,
            max_payload: limits.payload,
        });
        let half = ReadHalf::new(reader, options.init_timeout);
        let ending = || Ending(Arc::clone(&shared));
        let (read_ends, write_ends) = (ending(), ending());
        let reading = tokio::spawn(async move { Arc::clone(&read_ends.0).read_all(half).await });
        let writing =
            tokio::spawn(async move { Arc::clone(&write_ends.0).write_leftovers().await });
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
        if error.is_lost_connection() {
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

/// No panic can leave these states half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

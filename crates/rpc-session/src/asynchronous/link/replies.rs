//! The reading half of the connection: a task reads the replies, and lends itself to the callers of large
//! ones.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rpc_proto::endpoint::Reply;
use rpc_proto::{BulkKind, Received};
use rpc_transport::asynchronous::{Incoming, Reader};
use rpc_transport::{Deadline, Step, TransportError};
use tokio::sync::oneshot;

use super::super::dual::payload::{self, Announced, Sink};
use super::{MOMENT, Shared, lock};
use crate::SessionError;
use crate::answer::Answer;
use crate::freed::Orphan;

/// A request that was sent and not answered yet.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) since: Instant,
    /// When the payload of the request was sent, if it has one.
    pub(super) payload_sent: Option<Arc<OnceLock<Instant>>>,
    pub(super) orphan: Orphan,
    /// Nobody, for a request of the session's own.
    pub(super) caller: Option<oneshot::Sender<Delivery>>,
}

impl Waiter {
    pub(super) fn nobody(since: Instant) -> Self {
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

/// What the reading task gives to a caller.
#[derive(Debug)]
pub(super) enum Delivery {
    Answer(Unclaimed),
    Payload(Announced, Lease),
}

/// An answer on its way to its caller. If it never gets there, since the caller has gone, what it brings
/// is freed: also when the caller goes after the answer was handed over and before it took it.
#[derive(Debug)]
pub(super) struct Unclaimed {
    answer: Option<Result<Answer, SessionError>>,
    orphan: Orphan,
    shared: Arc<Shared>,
}

impl Unclaimed {
    pub(super) fn claim(mut self) -> Result<Answer, SessionError> {
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
pub(super) struct ReadHalf {
    reader: Reader,
    incoming: Incoming,
    left: u64,
    /// How long the peer may be silent; until its first answer, how long it may construct the session.
    limit: Option<Duration>,
}

/// The reading half, lent to the caller that a payload is for. It goes back when this is dropped.
#[derive(Debug)]
pub(super) struct Lease {
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

impl ReadHalf {
    pub(super) fn new(reader: Reader, limit: Duration) -> Self {
        Self {
            reader,
            incoming: Incoming::default(),
            left: 0,
            limit: Some(limit),
        }
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

impl Shared {
    /// Reads the payload that is for this caller.
    pub(super) async fn receive(
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
    pub(super) async fn read_all(self: Arc<Self>, half: ReadHalf) {
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
        // The last answer, if it was why the session is over. Servers close the connection behind it.
        let mut farewell = None;
        loop {
            match self.unless_over(self.next_reply(&mut half)).await {
                Ok((waiter, Next::Answer(answer))) => {
                    let failure = answer.as_ref().err();
                    farewell = failure.filter(|error| error.is_farewell()).cloned();
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
                    self.fail(farewell.take().unwrap_or(error));
                }
            }
            half.limit = self.reply_timeout;
            if self.failure.get().is_some() {
                return Some(half);
            }
        }
    }

    /// Waits for the reply to the oldest request. However slowly its bytes come, its head has to be
    /// there in time.
    async fn next_reply(&self, half: &mut ReadHalf) -> Result<(Waiter, Next), SessionError> {
        let last_reply = Instant::now();
        loop {
            let needed = match self.look_at(half)? {
                Look::Reply(waiter, next) => return Ok((waiter, next)),
                Look::Incomplete(needed) => needed,
            };
            let due = lock(&self.endpoint).oldest().and_then(Waiter::due_since);
            let spent = due.map_or(Duration::ZERO, |due| due.max(last_reply).elapsed());
            let left = match half.limit {
                Some(allowed) if spent >= allowed => {
                    let (peer, step) = (self.peer.clone(), Step::Reply);
                    let late = TransportError::TimedOut {
                        peer,
                        step,
                        allowed,
                    };
                    return Err(late.into());
                }
                limit => limit.map(|limit| limit - spent),
            };
            half.reader.set_deadline(Deadline::total(Step::Reply, left));
            match half.incoming.fill(&mut half.reader, needed).await {
                // Nothing was lost; whether it is too late depends on how long a reply is due.
                Err(error) if !error.is_timeout() => return Err(error.into()),
                _ => {}
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
                    Reply::BulkReturn { kind, .. } => Next::Payload(match kind {
                        BulkKind::Text => Announced::Text,
                        BulkKind::Bytes => Announced::Bytes,
                    }),
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
}

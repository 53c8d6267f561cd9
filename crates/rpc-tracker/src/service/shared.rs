use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpc_proto::tracker::{Reply, Request, Summary};
use tokio::sync::Notify;
use tracing::{debug, info, warn};

use super::outbox::Outbox;
use crate::{ConnectionId, Effect, Peer, Queues, TrackerOptions};

/// What the tasks of a tracker have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: TrackerOptions,
    /// The tracker is to end.
    pub(super) stop: Notify,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    queues: Queues,
    outboxes: HashMap<ConnectionId, Arc<Outbox>>,
}

/// A connection that the queues know of, until this is dropped: also if its task panics or is ended.
#[derive(Debug)]
pub(super) struct Registered {
    shared: Arc<Shared>,
    id: ConnectionId,
    pub(super) outbox: Arc<Outbox>,
}

impl Shared {
    pub(super) fn new(options: TrackerOptions) -> Self {
        let state = State {
            queues: Queues::new(&options),
            outboxes: HashMap::new(),
        };
        Self {
            options,
            stop: Notify::new(),
            state: Mutex::new(state),
        }
    }

    pub(super) fn summary(&self) -> Summary {
        self.lock().queues.summary()
    }

    pub(super) fn connections(&self) -> usize {
        self.lock().queues.connections()
    }

    pub(super) fn register(self: &Arc<Self>, peer: Peer) -> Registered {
        let limits = self.options.limits;
        let outbox = Arc::new(Outbox::new(limits, self.options.unread_output));
        let mut state = self.lock();
        let id = state.queues.connected(peer);
        state.outboxes.insert(id, Arc::clone(&outbox));
        drop(state);
        Registered {
            shared: Arc::clone(self),
            id,
            outbox,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Hands a grant to the task of the connection that it is for. Under the lock, which that task
    /// takes before it ends, so that a grant always reaches a task that will send it or give it back.
    fn deliver(&self, effect: Effect) {
        if let Effect::Grant(grant) = effect
            && let Some(outbox) = self.outboxes.get(&grant.to())
        {
            debug!(key = grant.key(), to = ?grant.to(), "a device goes to a client that waited");
            outbox.push_grant(grant);
        }
    }
}

impl Registered {
    /// Carries out a request; whether it ends the tracker.
    pub(super) fn request(&self, request: Request) -> bool {
        let mut effects = Vec::new();
        let mut state = self.shared.lock();
        state.queues.request(self.id, request, &mut effects);
        let is_own = |effect: &Effect| match effect {
            Effect::Reply { to, .. } => *to == self.id,
            Effect::Grant(grant) => grant.to() == self.id,
            Effect::Stop => true,
        };
        // The answers for this connection are written out without the lock, since some are large.
        let mut own = Vec::new();
        for effect in effects {
            if is_own(&effect) {
                own.push(effect);
            } else {
                state.deliver(effect);
            }
        }
        drop(state);

        let mut ends = false;
        for effect in own {
            match effect {
                Effect::Reply { reply, .. } => {
                    if let Reply::Refused(answer) = &reply {
                        info!(answer, "refused");
                    }
                    if let Err(error) = self.outbox.push_reply(&reply) {
                        warn!(%error, "refused: the answer is over its limit");
                    }
                }
                Effect::Grant(grant) => self.outbox.push_grant(grant),
                Effect::Stop => ends = true,
            }
        }
        ends
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut effects = Vec::new();
        let mut state = self.shared.lock();
        state.outboxes.remove(&self.id);
        let undelivered = self.outbox.take_undelivered();
        state.queues.closed(self.id, undelivered, &mut effects);
        for effect in effects {
            state.deliver(effect);
        }
    }
}

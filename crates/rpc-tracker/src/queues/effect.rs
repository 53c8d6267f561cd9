use std::sync::Arc;

use rpc_proto::tracker::{Allocation, Reply};

#[cfg(doc)]
use super::Queues;
use super::queue::{Offer, Sequence};

/// One connection to a tracker. None gets the number of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(super) u64);

/// What is to be done, in this order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Effect {
    /// Send an answer.
    Reply {
        /// The connection that asked.
        to: ConnectionId,
        /// The answer.
        reply: Reply,
    },
    /// Send the answer to a REQUEST; if that cannot be done any more, close the connection and give
    /// the grant to [`Queues::closed`].
    Grant(Grant),
    /// End the tracker, once the answer ahead of this was sent.
    Stop,
}

/// A device that a request was granted, on the way to the one who asked.
#[derive(Debug)]
pub struct Grant {
    pub(super) to: ConnectionId,
    pub(super) allocation: Allocation,
    pub(super) key: Arc<str>,
    pub(super) sequence: Sequence,
    pub(super) offer: Offer,
}

impl Grant {
    /// The connection that asked.
    #[must_use]
    pub fn to(&self) -> ConnectionId {
        self.to
    }

    /// What it is told.
    #[must_use]
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// The key of the queue that the device is from.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

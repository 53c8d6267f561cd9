use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rpc_proto::tracker::{Priority, QueueStatus};

use super::ConnectionId;

/// The order in which something came; no two things share one.
pub(super) type Sequence = u64;

/// The queue of one key. Devices and requests are never in it at the same time.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) free: BTreeMap<Sequence, Offer>,
    pub(super) waiting: BTreeMap<Rank, ConnectionId>,
}

/// A device that a server offers.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) owner: ConnectionId,
    pub(super) match_key: Arc<str>,
    pub(super) port: u16,
    pub(super) custom_addr: Option<String>,
}

/// The place of a request: the highest priority first, then the one that came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) priority: Priority,
    pub(super) sequence: Sequence,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.free.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn status(&self) -> QueueStatus {
        QueueStatus {
            free: self.free.len() as u64,
            pending: self.waiting.len() as u64,
        }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        // A priority is finite and no -0, so that this order is that of the numbers.
        let by_priority = other.priority.get().total_cmp(&self.priority.get());
        by_priority.then(self.sequence.cmp(&other.sequence))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

//! Who may have a session now, and who has to wait.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::SemaphorePermit;
use tracing::{info, warn};

use crate::server::Shared;

/// What a session takes of its server, until this is dropped: with a tracker a match key, and in any case a
/// slot.
pub(crate) struct Place<'s> {
    shared: &'s Shared,
    offered: bool,
    slot: Option<SemaphorePermit<'s>>,
}

impl<'s> Place<'s> {
    /// A place for whoever names this match key, if it is good: one that is on offer at the tracker, and
    /// without a tracker the server's own key.
    pub(crate) fn of(shared: &'s Shared, match_key: &str) -> Option<Self> {
        let offered = shared.options.tracker.is_some();
        let good = match offered {
            true => shared.offers().take(match_key),
            false => match_key == shared.options.key,
        };
        // Not made otherwise, since its end gives a place back.
        good.then(|| Self {
            shared,
            offered,
            slot: None,
        })
    }

    /// The same with a slot. Clients have theirs in the order in which they came; one that goes while it
    /// waits, or that comes when too many wait already, has none.
    pub(crate) async fn with_slot(mut self, socket: &TcpStream) -> Option<Self> {
        let shared = self.shared;
        self.slot = match shared.slots.try_acquire() {
            Ok(slot) => Some(slot),
            Err(_) => Some(in_turn(shared, socket).await?),
        };
        self.changed();
        Some(self)
    }

    fn changed(&self) {
        #[cfg(unix)]
        if let Some(workers) = &self.shared.workers {
            workers.changed.notify_one();
        }
        self.shared.offers_changed.notify_one();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Before the match key, since whoever comes with the next one has no cause to wait.
        self.slot = None;
        if self.offered {
            self.shared.offers().release();
        }
        self.changed();
    }
}

async fn in_turn<'s>(shared: &'s Shared, socket: &TcpStream) -> Option<SemaphorePermit<'s>> {
    let Some(_waiting) = Waiting::one_more(&shared.waiting, shared.options.waiting) else {
        warn!("turned away: too many clients wait already");
        return None;
    };
    info!("waits: the server is busy");
    tokio::select! {
        slot = shared.slots.acquire() => slot.ok(),
        () = gone(socket) => {
            info!("gone while it waited");
            None
        }
    }
}

/// Waits until the client closes the connection. It has nothing to say before it is let in.
async fn gone(socket: &TcpStream) {
    let mut byte = [0; 1];
    if socket.ready(Interest::READABLE).await.is_ok()
        && let Ok(1) = socket.peek(&mut byte).await
    {
        // It speaks out of turn; what it says is looked at when it is let in.
        std::future::pending::<()>().await;
    }
}

/// A client that waits for a slot.
struct Waiting<'s>(&'s AtomicUsize);

impl<'s> Waiting<'s> {
    fn one_more(waiting: &'s AtomicUsize, most: usize) -> Option<Self> {
        let one_more = |count| (count < most).then_some(count + 1);
        let order = Ordering::Relaxed;
        let counted = waiting.fetch_update(order, order, one_more);
        counted.ok().map(|_| Self(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Which half waits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Half {
    Reading,
    Writing,
}

/// Who waits until the connection takes more. A connection wakes the last one who asked, but here both
/// halves may ask: one that writes, and one that reads and answers a ping.
#[derive(Clone, Default)]
pub(super) struct Wakers(Arc<Waiting>);

#[derive(Default)]
struct Waiting(Mutex<[Option<Waker>; 2]>);

impl Wakers {
    /// Has `waker` woken for this half.
    pub(super) fn register(&self, half: Half, waker: &Waker) {
        let slot = &mut self.0.lock()[half as usize];
        match slot {
            Some(present) => present.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
    }

    /// Wakes both halves.
    pub(super) fn both(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }
}

impl Waiting {
    /// Nothing can panic while it is locked.
    fn lock(&self) -> MutexGuard<'_, [Option<Waker>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = std::mem::take(&mut *self.lock());
        for waker in wakers.into_iter().flatten() {
            waker.wake();
        }
    }
}

impl fmt::Debug for Wakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakers").finish_non_exhaustive()
    }
}

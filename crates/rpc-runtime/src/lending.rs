//! Which memory there are references to, in this process. The runtime gives out one memory as many tensors,
//! of which each has a guard of its own; so it is here that nobody reads what is being written.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::Error;

static LENT: Mutex<Vec<Lent>> = Mutex::new(Vec::new());
static ENDED: Condvar = Condvar::new();

/// Addresses to which there is a reference until this is dropped.
#[derive(Debug)]
pub(crate) struct Lending(Lent);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lent {
    addresses: Range<usize>,
    is_mutable: bool,
    by: ThreadId,
}

impl Lending {
    /// Waits until there is no other reference, unless both are for reading.
    ///
    /// # Errors
    /// This thread has the other one, and would wait for itself.
    pub(crate) fn begin(addresses: Range<usize>, is_mutable: bool) -> Result<Self, Error> {
        let new = Lent::new(addresses, is_mutable);
        let mut all = all();
        loop {
            new.check(&all)?;
            if !all.iter().any(|other| new.excludes(other)) {
                all.push(new.clone());
                return Ok(Self(new));
            }
            all = ENDED.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Lending {
    fn drop(&mut self) {
        let mut all = all();
        if let Some(at) = all.iter().position(|lent| *lent == self.0) {
            all.swap_remove(at);
        }
        ENDED.notify_all();
    }
}

impl Lent {
    fn new(addresses: Range<usize>, is_mutable: bool) -> Self {
        Self {
            addresses,
            is_mutable,
            by: thread::current().id(),
        }
    }

    fn excludes(&self, other: &Self) -> bool {
        let [a, b] = [&self.addresses, &other.addresses];
        let overlap = a.start.max(b.start) < a.end.min(b.end);
        overlap && (self.is_mutable || other.is_mutable)
    }

    fn check(&self, all: &[Self]) -> Result<(), Error> {
        let is_own = |other: &Self| other.by == self.by && self.excludes(other);
        match all.iter().any(is_own) {
            true => Err(Error::new(
                "ValueError",
                "memory that is being read or written cannot be used otherwise meanwhile",
            )),
            false => Ok(()),
        }
    }
}

/// Whether this thread has no reference that would be in the way of another one.
///
/// # Errors
/// It has one.
pub(crate) fn check(addresses: Range<usize>, is_mutable: bool) -> Result<(), Error> {
    Lent::new(addresses, is_mutable).check(&all())
}

fn all() -> MutexGuard<'static, Vec<Lent>> {
    LENT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    // Addresses at which no other test has memory.
    const HERE: Range<usize> = 8..16;

    #[test]
    fn one_writes_or_many_read() {
        let reads = [(); 2].map(|()| Lending::begin(HERE, false).unwrap());
        assert!(Lending::begin(15..20, true).is_err());
        assert!(check(15..20, true).is_err());
        let beside = Lending::begin(16..20, true).unwrap();
        assert!(Lending::begin(12..17, false).is_err());
        drop(beside);
        drop(reads);
        drop(Lending::begin(HERE, true).unwrap());
        let nothing = Lending::begin(12..12, true);
        assert!(Lending::begin(HERE, true).is_ok());
        drop(nothing);
    }

    #[test]
    fn another_thread_waits() {
        let place = 32..40;
        let lending = Lending::begin(place.clone(), true).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                drop(Lending::begin(place, false).unwrap());
                assert!(is_over.load(Ordering::SeqCst));
            });
            is_over.store(true, Ordering::SeqCst);
            drop(lending);
        });
    }
}

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that nobody uses at the moment, the one that was used last on top.
#[derive(Debug)]
pub(crate) struct Idle<T>(Mutex<Vec<T>>);

/// More of them are closed: a burst of requests leaves no crowd of open connections behind.
const MOST: usize = 4;

impl<T> Idle<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.lock().pop()
    }

    pub(crate) fn put(&self, connection: T) {
        let mut idle = self.lock();
        if idle.len() < MOST {
            idle.push(connection);
        }
    }

    /// Closes them all.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_used_comes_first_and_few_are_kept() {
        let idle = Idle::new();
        for number in 0..MOST + 1 {
            idle.put(number);
        }
        assert_eq!(idle.take(), Some(MOST - 1));
        idle.clear();
        assert_eq!(idle.take(), None);
    }
}

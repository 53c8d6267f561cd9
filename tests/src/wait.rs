use std::thread;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls `condition` until it holds, for states that announce themselves to nobody, such as
/// a tracker's queues.
///
/// `what` completes the sentence "waited … for".
///
/// # Panics
///
/// When the condition does not hold within `limit`.
#[track_caller]
pub fn wait_until(limit: Duration, what: &str, condition: impl FnMut() -> bool) {
    assert!(
        holds_within(limit, condition),
        "waited {limit:?} for {what}"
    );
}

/// Polls `condition` until it holds (true) or `limit` has passed (false).
pub(crate) fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_as_soon_as_the_condition_holds() {
        let mut polls = 0;
        wait_until(Duration::from_secs(60), "the third poll", || {
            polls += 1;
            polls == 3
        });
        assert_eq!(polls, 3);
    }

    #[test]
    #[should_panic(expected = "waited 0ns for pigs to fly")]
    fn names_what_never_came() {
        wait_until(Duration::ZERO, "pigs to fly", || false);
    }
}

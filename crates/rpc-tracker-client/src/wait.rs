//! The times of one request.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use rpc_transport::{Deadline, Step};

use crate::RequestOptions;

/// How long a request may still wait for a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    end: Option<Instant>,
    deadline: Deadline,
}

impl Wait {
    pub(crate) fn start(allowed: Option<Duration>) -> Self {
        Self {
            // A time too far away to be told is no limit.
            end: allowed.and_then(|allowed| Instant::now().checked_add(allowed)),
            deadline: Deadline::total(Step::WaitForDevice, allowed),
        }
    }

    /// For the answer of the tracker.
    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// `pause`, or what is left if that is less.
    pub(crate) fn at_most(&self, pause: Duration) -> Duration {
        match self.end {
            Some(end) => pause.min(end.saturating_duration_since(Instant::now())),
            None => pause,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// The pauses between the tries of a request, without end.
pub(crate) fn pauses(options: &RequestOptions) -> impl Iterator<Item = Duration> + use<> {
    let exponential = options.backoff.map(|backoff| {
        ExponentialBuilder::new()
            .with_min_delay(backoff.first)
            .with_max_delay(backoff.longest)
            .without_max_times()
            .with_jitter()
            .build()
    });
    exponential
        .into_iter()
        .flatten()
        .chain(std::iter::repeat(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let options = RequestOptions::new("k");
        let expected = [50, 100, 200, 400, 800, 1600, 2000, 2000];
        for (pause, least) in pauses(&options).zip(expected.map(Duration::from_millis)) {
            assert!(least <= pause && pause <= 2 * least, "{pause:?} {least:?}");
        }
        assert_eq!(
            pauses(&options.without_backoff()).take(3).max(),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn a_wait_has_an_end_or_none() {
        let over = Wait::start(Some(Duration::ZERO));
        assert!(over.is_over());
        assert_eq!(over.at_most(Duration::from_secs(1)), Duration::ZERO);

        for endless in [None, Some(Duration::MAX)] {
            let wait = Wait::start(endless);
            assert!(!wait.is_over());
            assert_eq!(wait.at_most(Duration::MAX), Duration::MAX);
        }
    }
}

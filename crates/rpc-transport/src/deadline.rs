use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::TransportError;

/// What a connection was doing: errors say it, and each has its own time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Opening the connection.
    Connect,
    /// Introducing ourselves to a server or a tracker.
    Handshake,
    /// Waiting for a tracker's answer.
    TrackerAnswer,
    /// Waiting until a tracker has a device for us.
    WaitForDevice,
    /// Sending a request of a session.
    Send,
    /// Waiting for the reply of a session.
    Reply,
    /// Waiting for the request of a session, as its server.
    Request,
    /// Sending the answer to a request.
    Answer,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Handshake => "shaking hands",
            Self::TrackerAnswer => "waiting for the tracker's answer",
            Self::WaitForDevice => "waiting for a free device",
            Self::Send => "sending a request",
            Self::Reply => "waiting for a reply",
            Self::Request => "waiting for a request",
            Self::Answer => "sending an answer",
        })
    }
}

/// A limit from here on is none: systems take a time that is far away for an error, or for the past.
const AGES: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// A step and the time that it may take. A limit of 30 years and more is no limit.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    step: Step,
    allowed: Option<Duration>,
    end: Option<Instant>,
}

impl Deadline {
    /// All of `step` may take `allowed` from now on, or for ever.
    #[must_use]
    pub fn total(step: Step, allowed: Option<Duration>) -> Self {
        let mut deadline = Self::each_wait(step, allowed);
        deadline.end = deadline.allowed.map(|allowed| Instant::now() + allowed);
        deadline
    }

    /// Each single wait for the peer during `step` may take `allowed`, or for ever.
    #[must_use]
    pub fn each_wait(step: Step, allowed: Option<Duration>) -> Self {
        Self {
            step,
            allowed: allowed.filter(|allowed| *allowed < AGES),
            end: None,
        }
    }

    /// What is being done.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// How long the next wait may take: nothing when the time is up, `None` for ever.
    pub(crate) fn next_wait(&self) -> Option<Duration> {
        match self.end {
            Some(end) => Some(end.saturating_duration_since(Instant::now())),
            None => self.allowed,
        }
    }

    /// What it means that the time is up.
    pub(crate) fn timed_out(&self, peer: &str) -> TransportError {
        TransportError::TimedOut {
            peer: peer.to_owned(),
            step: self.step,
            allowed: self.allowed.unwrap_or_default(),
        }
    }

    /// What it means that the stream ended where more was due.
    pub(crate) fn closed(&self, peer: &str) -> TransportError {
        TransportError::Closed {
            peer: peer.to_owned(),
            step: self.step,
        }
    }

    /// What it means that the stream failed.
    pub(crate) fn lost(&self, peer: &str, source: io::Error) -> TransportError {
        TransportError::Io {
            peer: peer.to_owned(),
            step: self.step,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_limit_runs_out_and_a_limit_of_each_wait_does_not() {
        const LIMIT: Duration = Duration::from_millis(5);
        let total = Deadline::total(Step::Reply, Some(LIMIT));
        let each = Deadline::each_wait(Step::Reply, Some(LIMIT));
        let start = Instant::now();
        assert!(total.next_wait() <= Some(LIMIT));
        while start.elapsed() < LIMIT {
            std::hint::spin_loop();
        }
        assert_eq!(total.next_wait(), Some(Duration::ZERO));
        assert_eq!(each.next_wait(), Some(LIMIT));
    }

    #[test]
    fn a_limit_far_away_is_none() {
        for limit in [None, Some(AGES), Some(Duration::MAX)] {
            assert_eq!(Deadline::total(Step::Reply, limit).next_wait(), None);
            assert_eq!(Deadline::each_wait(Step::Reply, limit).next_wait(), None);
        }
    }
}

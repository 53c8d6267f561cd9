use std::fmt;
use std::time::{Duration, Instant};

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
        })
    }
}

/// A step and the time that it may take.
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
        Self {
            step,
            allowed,
            // A time too far away to be told is no limit.
            end: allowed.and_then(|allowed| Instant::now().checked_add(allowed)),
        }
    }

    /// Each single wait for the peer during `step` may take `allowed`, or for ever.
    #[must_use]
    pub fn each_wait(step: Step, allowed: Option<Duration>) -> Self {
        Self {
            step,
            allowed,
            end: None,
        }
    }

    /// What is being done.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// The limit, as it was given.
    pub(crate) fn allowed(&self) -> Option<Duration> {
        self.allowed
    }

    /// How long the next wait may take: nothing when the time is up, `None` for ever.
    pub(crate) fn next_wait(&self) -> Option<Duration> {
        match self.end {
            Some(end) => Some(end.saturating_duration_since(Instant::now())),
            None => self.allowed,
        }
    }
}

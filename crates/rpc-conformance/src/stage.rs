//! Where a case is played: its checks, its deadlines, what it may vary, and what passed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::transcript::{Direction, Event, Transcript, What};
use crate::wire::Held;

/// Why a case ends before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A check failed; it is in the list of checks.
    Failed,
    /// The peer says that it does not do this.
    Unsupported(String),
    /// The suite could not do its part.
    Suite(String),
}

/// What a case or a step of it comes to.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

/// How what the suite sends is cut into writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chunking {
    /// A message is one write.
    #[default]
    Whole,
    /// Each byte is a write.
    Bytes,
    /// Writes of random lengths, from the seed.
    Random,
    /// All messages up to the next answer are one write.
    Coalesced,
}

impl Chunking {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Whole, Self::Bytes, Self::Random, Self::Coalesced];
}

impl fmt::Display for Chunking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole",
            Self::Bytes => "bytes",
            Self::Random => "random",
            Self::Coalesced => "coalesced",
        })
    }
}

/// One expectation of a case, and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Its name within the case.
    pub name: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was expected, in words; only where it does not hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// What came, in words; only where it does not hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub found: String,
    /// The bytes that were expected, where they are known, as hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_hex: Option<String>,
    /// The bytes that came, as hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_hex: Option<String>,
}

/// The check that others are served after a case.
pub(crate) const SURVIVES: &str = "survives";
/// How the checks begin that others are served between what is tried in a case.
pub(crate) const SERVED_FOR: &str = "served-for-";

impl Check {
    /// Whether it says no more than that others are still served.
    pub(crate) fn is_survival(&self) -> bool {
        self.name == SURVIVES || self.name.starts_with(SERVED_FOR)
    }
}

/// Limits and variations of one playing of a case.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    /// How long one step of the peer may take.
    pub(crate) step: Duration,
    /// How long the whole case may take.
    pub(crate) total: Duration,
    pub(crate) chunking: Chunking,
    /// For what is random in the case; the same seed plays it the same way.
    pub(crate) seed: u64,
    /// All that passes is kept, also of a case that passes.
    pub(crate) is_recorded: bool,
}

/// One playing of a case.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) case: &'static Case,
    pub(crate) conditions: Conditions,
    ends: Mutex<Instant>,
    checks: Mutex<Vec<Check>>,
    transcript: Mutex<Transcript>,
    /// What is to be sent before the next wait.
    held: Mutex<Vec<Held>>,
}

impl Stage {
    pub(crate) fn new(case: &'static Case, conditions: Conditions) -> Arc<Self> {
        Arc::new(Self {
            case,
            ends: Mutex::new(Instant::now() + conditions.total),
            checks: Mutex::default(),
            held: Mutex::default(),
            transcript: Mutex::new(Transcript::new(conditions.is_recorded)),
            conditions,
        })
    }

    /// When the step that begins now has to be done.
    pub(crate) fn deadline(&self) -> Instant {
        let ends = *lock(&self.ends);
        ends.min(Instant::now() + self.conditions.step)
    }

    /// Gives the case more time, for what the peer under test is not to blame for.
    pub(crate) fn extend(&self, by: Duration) {
        *lock(&self.ends) += by;
    }

    /// Whether a check did not hold.
    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.checks).iter().any(|check| !check.holds)
    }

    /// A key that no other case uses, so that cases do not see each other's devices.
    pub(crate) fn key(&self, what: &str) -> String {
        let id = self.case.id.to_lowercase();
        format!("{id}-{:08x}-{what}", self.conditions.seed >> 32)
    }

    /// Says whether an expectation holds; if not, the case ends here.
    pub(crate) fn check(
        &self,
        name: &str,
        holds: bool,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Outcome {
        match holds {
            true => self.passes(name),
            false => Err(self.fail(name, expected, found)),
        }
    }

    /// An expectation that holds.
    pub(crate) fn passes(&self, name: &str) -> Outcome {
        lock(&self.checks).push(Check {
            name: name.to_owned(),
            holds: true,
            expected: String::new(),
            found: String::new(),
            expected_hex: None,
            found_hex: None,
        });
        Ok(())
    }

    /// A check that does not hold, as the reason to end the case.
    pub(crate) fn fail(
        &self,
        name: &str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Stop {
        self.fail_with(name, &expected.to_string(), found.to_string(), None, None)
    }

    /// The same with the bytes that were expected and that came, where they are known.
    pub(crate) fn fail_with(
        &self,
        name: &str,
        expected: &str,
        found: String,
        expected_bytes: Option<&[u8]>,
        found_bytes: Option<&[u8]>,
    ) -> Stop {
        let digits = |bytes: Option<&[u8]>| {
            let bytes = bytes?;
            Some(hex::encode(&bytes[..bytes.len().min(SHOWN)]))
        };
        lock(&self.checks).push(Check {
            name: name.to_owned(),
            holds: false,
            expected: shortened(expected.to_owned()),
            found: shortened(found),
            expected_hex: digits(expected_bytes),
            found_hex: digits(found_bytes),
        });
        Stop::Failed
    }

    /// The first check that did not hold, in words.
    pub(crate) fn first_failure(&self) -> String {
        let checks = lock(&self.checks);
        let failed = checks.iter().find(|check| !check.holds);
        failed.map_or_else(
            || "no connection".to_owned(),
            |check| format!("{}: {}", check.name, check.found),
        )
    }

    /// A connection that the suite makes.
    pub(crate) fn connection(&self, between: String) -> usize {
        lock(&self.transcript).connection(between, Direction::Sent)
    }

    /// A connection that the peer under test makes.
    pub(crate) fn accepted(&self, between: String) -> usize {
        lock(&self.transcript).connection(between, Direction::Received)
    }

    pub(crate) fn hold(&self, change: impl FnOnce(&mut Vec<Held>)) {
        change(&mut lock(&self.held));
    }

    pub(crate) fn take_held(&self) -> Vec<Held> {
        std::mem::take(&mut lock(&self.held))
    }

    pub(crate) fn passed(&self, connection: usize, direction: Direction, bytes: &[u8]) {
        lock(&self.transcript).bytes(connection, direction, bytes);
    }

    pub(crate) fn happened(&self, connection: usize, direction: Direction, what: What) {
        lock(&self.transcript).push(connection, direction, what);
    }

    /// What was checked and what passed up to now; the stage has neither afterwards.
    pub(crate) fn take(&self) -> (Vec<Check>, Vec<Event>) {
        let checks = std::mem::take(&mut *lock(&self.checks));
        let transcript = std::mem::replace(&mut *lock(&self.transcript), Transcript::new(false));
        (checks, transcript.into_events())
    }
}

/// Bytes of a message that a report shows.
const SHOWN: usize = 4096;
/// The longest text of a check that a report has, in bytes.
const WORDS: usize = 1000;

fn shortened(mut text: String) -> String {
    if text.len() > WORDS {
        let end = (0..=WORDS)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or_default();
        let whole = text.len();
        text.truncate(end);
        text.push_str(&format!("… ({whole} bytes in all)"));
    }
    text
}

/// A panic of another thread of the case does not make what it recorded wrong.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

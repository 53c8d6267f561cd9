//! What a run came to: the data behind every report.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::case::{Level, Role};
use crate::stage::{Check, Chunking};
use crate::transcript::Event;

/// The version of the JSON report's format; it grows when a member changes its meaning.
pub const FORMAT: u32 = 1;

/// What a case came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// Every check holds.
    Pass,
    /// A MUST was missed.
    Fail,
    /// A SHOULD was missed.
    Warn,
    /// The peer does not do this, and need not: a MAY, a quirk, or a function that it has not.
    Unsupported,
    /// Not played, for the reason that is given.
    Skipped,
    /// The suite could not do its part.
    Error,
    /// The run ended before.
    #[serde(rename = "not run")]
    NotRun,
}

impl Status {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Fail,
        Self::Warn,
        Self::Unsupported,
        Self::Skipped,
        Self::Error,
        Self::NotRun,
    ];
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Unsupported => "unsupported",
            Self::Skipped => "skipped",
            Self::Error => "error",
            Self::NotRun => "not run",
        })
    }
}

/// One playing of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// The id of the case.
    pub id: String,
    /// How what was sent was cut.
    #[serde(default, skip_serializing_if = "is_whole")]
    pub chunking: Chunking,
    /// How much the case binds.
    pub level: Level,
    /// The clause that it checks.
    pub clause: String,
    /// What it checks.
    pub what: String,
    /// What goes wrong for others where it does not hold.
    pub why: String,
    /// What it came to.
    pub status: Status,
    /// Why it is so, where the checks do not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The reason that a list of known failures or of flaky cases gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excused: Option<String>,
    /// Counts towards the verdict. Cases outside the chosen set are run all the same.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub scored: bool,
    /// Its checks, in order. After the first that does not hold the case ends.
    pub checks: Vec<Check>,
    /// What passed, for a case that did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transcript: Vec<Event>,
    /// The last lines of the peer's standard error, for a case that did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
}

impl Played {
    /// The id, and what was varied.
    #[must_use]
    pub fn name(&self) -> String {
        if is_whole(&self.chunking) {
            self.id.clone()
        } else {
            format!("{}[chunking={}]", self.id, self.chunking)
        }
    }

    /// The check that does not hold.
    #[must_use]
    pub fn failed_check(&self) -> Option<&Check> {
        self.checks.iter().find(|check| !check.holds)
    }

    /// Whether it stands against the peer: a MUST was missed, and nothing excuses it.
    #[must_use]
    pub fn counts_against(&self) -> bool {
        self.status == Status::Fail && self.excused.is_none() && self.scored
    }
}

/// What the suite found out about the peer before the first case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerInfo {
    /// Its address, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The command that started it, where the suite did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it said of itself and what it can.
    pub probed: BTreeMap<String, String>,
}

/// What a run says in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No MUST was missed, and every case that was selected was played.
    Conformant,
    /// A MUST was missed.
    #[serde(rename = "not conformant")]
    NotConformant,
    /// Nothing was missed, but not all was played.
    Incomplete,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conformant => "conformant",
            Self::NotConformant => "not conformant",
            Self::Incomplete => "incomplete",
        })
    }
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the suite.
    pub suite: String,
    /// The role that was tested.
    pub role: Role,
    /// The frozen set of cases that counts, or none where all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Who was tested.
    pub peer: PeerInfo,
    /// What `--seed` plays the same run again.
    pub seed: u64,
    /// When the run began, in seconds since 1970.
    pub began: u64,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// Every selected case, in the order of the suite.
    pub cases: Vec<Played>,
    /// What is wrong with the lists that were given: entries that match nothing, or that passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
}

impl Run {
    /// How many cases came to this.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.cases
            .iter()
            .filter(|case| case.status == status)
            .count()
    }

    /// Failures that nothing excuses.
    pub fn failures(&self) -> impl Iterator<Item = &Played> {
        self.cases.iter().filter(|case| case.counts_against())
    }

    /// What the run says in one word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let unplayed =
            |case: &&Played| case.scored && matches!(case.status, Status::Error | Status::NotRun);
        if self
            .cases
            .iter()
            .any(|case| case.status == Status::Fail && case.scored)
        {
            Verdict::NotConformant
        } else if self.cases.iter().any(|case| unplayed(&case)) {
            Verdict::Incomplete
        } else {
            Verdict::Conformant
        }
    }

    /// The exit status of the command: 0 as required, 1 a failure that nothing excuses or a stale
    /// entry, 4 where the suite could not do its part.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        if self.failures().next().is_some() || !self.stale.is_empty() {
            1
        } else if self.count(Status::Error) + self.count(Status::NotRun) > 0 {
            4
        } else {
            0
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "so serde calls it")]
fn is_whole(chunking: &Chunking) -> bool {
    *chunking == Chunking::Whole
}

fn yes() -> bool {
    true
}

//! What a run came to: the data behind every report.

use std::collections::{BTreeMap, HashMap, HashSet};
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
    /// What each try came to, for a case that is listed as flaky; the worst is [`Played::status`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tries: Vec<Status>,
    /// Counts towards the verdict. Cases outside the chosen set are run all the same.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub scored: bool,
    /// Its checks, in order. After the first that does not hold the case ends.
    pub checks: Vec<Check>,
    /// What passed between the suite and the peer, for a case that did not pass.
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

    /// What stays the same of it from run to run, also where the case has another id meanwhile.
    pub(crate) fn key(&self) -> (&str, Chunking) {
        (crate::ids::current(&self.id), self.chunking)
    }

    /// The check that does not hold: what the case is about before what it sees besides, that others are
    /// still served.
    #[must_use]
    pub fn failed_check(&self) -> Option<&Check> {
        let mut missed = self.checks.iter().filter(|check| !check.holds);
        let first = missed.clone().next();
        missed.find(|check| !check.is_survival()).or(first)
    }

    /// Whether it stands against the peer: a MUST was missed, and nothing excuses it.
    #[must_use]
    pub fn counts_against(&self) -> bool {
        self.status == Status::Fail && self.excused.is_none() && self.scored
    }

    /// Whether it was played, or at least found out that it need not be.
    #[must_use]
    pub fn was_run(&self) -> bool {
        !matches!(self.status, Status::Skipped | Status::NotRun)
    }

    /// The part of the id before the number, as `TRK-PUT`.
    #[must_use]
    pub fn area(&self) -> &str {
        self.id.rsplit_once('-').map_or(&self.id, |(area, _)| area)
    }

    /// The seed of a run in which the first try of the case is what is told of it here, of a run with this
    /// seed: of a case that is listed as flaky, the worst try may have been a later one.
    pub(crate) fn seed(&self, of_run: u64) -> u64 {
        let worst = self.tries.iter().position(|status| *status == self.status);
        let attempt = worst.and_then(|attempt| u64::try_from(attempt).ok());
        of_run ^ (attempt.unwrap_or(0) << 32)
    }

    /// How often it passed of how many tries, for a case that is listed as flaky.
    #[must_use]
    pub fn rate(&self) -> Option<(usize, usize)> {
        let passed = self.tries.iter().filter(|&&status| status == Status::Pass);
        (!self.tries.is_empty()).then(|| (passed.count(), self.tries.len()))
    }
}

/// What the suite found out about the peer before the first case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerInfo {
    /// What it is called, as was said when the run was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version, as was said when the run was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its address, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The command that started it, where the suite did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The key of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it said of itself and what it can.
    pub probed: BTreeMap<String, String>,
}

impl PeerInfo {
    /// Its name and version, or where it is, or how it was started.
    #[must_use]
    pub fn shown(&self) -> String {
        let name = [&self.name, &self.address, &self.command];
        let name = name.into_iter().flatten().next();
        let version = self.version.as_deref();
        let words = name.map(String::as_str).into_iter().chain(version);
        words.collect::<Vec<_>>().join(" ")
    }
}

/// What a run says in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No MUST was missed, and every MUST of the role, or of the chosen set, was played.
    Conformant,
    /// A MUST was missed.
    #[serde(rename = "not conformant")]
    NotConformant,
    /// No MUST was missed, but not every one was played, be it that the peer has not what it needs.
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
    /// How many cases the role has.
    pub of: usize,
    /// Every MUST of the role, or of the chosen set, was selected.
    pub is_whole: bool,
    /// Who was tested.
    pub peer: PeerInfo,
    /// What `--seed` plays the same run again.
    pub seed: u64,
    /// By what every deadline was multiplied.
    pub slow: f64,
    /// When the run began, in seconds since 1970.
    pub began: u64,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// Why nothing was run, where it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Every selected case, in the order of the suite.
    pub cases: Vec<Played>,
    /// What is wrong with the lists that were given: entries that match nothing, or that passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
}

impl Run {
    /// This run and another part of it, which has other cases.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.cases.extend(other.cases);
        let places: HashMap<_, _> = crate::cases::all().map(|case| case.id).zip(0..).collect();
        let place = |case: &Played| places.get(case.id.as_str()).copied();
        self.cases
            .sort_by_key(|case| (place(case).unwrap_or(usize::MAX), case.chunking as u8));
        let selected: HashSet<_> = self.cases.iter().map(|case| case.id.as_str()).collect();
        let mut musts = crate::cases::all()
            .filter(|case| case.role() == self.role && case.level == Level::Must);
        self.is_whole = musts.all(|case| selected.contains(case.id));
        self.milliseconds += other.milliseconds;
        // Of what was run in part, the cases say what was not.
        self.failure = self.failure.and(other.failure);
        self.stale.extend(other.stale);
        self
    }

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

    /// How many cases were run, of those that were selected.
    #[must_use]
    pub fn run(&self) -> usize {
        self.cases.iter().filter(|case| case.was_run()).count()
    }

    /// How many cases of a level passed, and how many were run; only those that count.
    #[must_use]
    pub fn reached(&self, level: Level) -> (usize, usize) {
        let of_level = self.cases.iter().filter(|case| {
            let counts = case.level == level && case.scored && case.was_run();
            counts && case.status != Status::Unsupported
        });
        let passed = of_level.clone().filter(|case| case.status == Status::Pass);
        (passed.count(), of_level.count())
    }

    /// What the run says in one word.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let unplayed = |case: &Played| {
            let was_played =
                case.was_run() && !matches!(case.status, Status::Error | Status::Unsupported);
            case.scored && case.level == Level::Must && !was_played
        };
        let failed = |case: &Played| case.status == Status::Fail && case.scored;
        if self.cases.iter().any(failed) {
            Verdict::NotConformant
        } else if !self.is_whole || self.cases.iter().any(unplayed) {
            Verdict::Incomplete
        } else {
            Verdict::Conformant
        }
    }

    /// The exit status of the command for a run that began: 0 as required, 1 a failure that nothing
    /// excuses or a stale entry of a list, 4 where the suite could not do its part.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn a_must_that_was_not_played_makes_a_run_incomplete() {
        let mut run = samples::run();
        run.is_whole = true;
        run.cases.retain(|case| case.status == Status::Pass);
        assert_eq!(run.verdict(), Verdict::Conformant);
        for (status, verdict) in [
            (Status::Unsupported, Verdict::Incomplete),
            (Status::Skipped, Verdict::Incomplete),
            (Status::NotRun, Verdict::Incomplete),
            (Status::Error, Verdict::Incomplete),
            (Status::Fail, Verdict::NotConformant),
        ] {
            run.cases[0].status = status;
            assert_eq!(run.verdict(), verdict, "{status}");
            // What is no MUST, or does not count, takes nothing away.
            for (level, scored) in [(Level::May, true), (Level::Must, false)] {
                let mut other = run.clone();
                (other.cases[0].level, other.cases[0].scored) = (level, scored);
                let is_missed = status == Status::Fail && scored;
                assert_eq!(other.verdict() == Verdict::Conformant, !is_missed);
            }
        }
    }
}

//! What has changed between two runs of the same role.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use crate::report::on_one_line;
use crate::results::{Run, Status};

/// What has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Cases that passed and do not any more, or that fail and did not.
    pub regressions: Vec<Change>,
    /// Cases that pass and did not.
    pub fixes: Vec<Change>,
    /// Other cases that came to something else.
    pub others: Vec<Change>,
    /// Cases that only the new run has.
    pub new: Vec<Change>,
    /// Cases that only the old run has.
    pub gone: Vec<Change>,
}

/// What has changed of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its id, and what was varied.
    pub name: String,
    /// What it checks.
    pub what: String,
    /// What it came to in the old run.
    pub old: Option<Status>,
    /// What it came to in the new run.
    pub new: Option<Status>,
}

impl Comparison {
    /// Compares two runs. Cases that have another id meanwhile are still the same.
    #[must_use]
    pub fn of(old: &Run, new: &Run) -> Self {
        let mut comparison = Self::default();
        let mut before: HashMap<_, _> = old.cases.iter().map(|case| (case.key(), case)).collect();
        for case in &new.cases {
            let was = before.remove(&case.key()).map(|case| case.status);
            let change = Change {
                name: case.name(),
                what: case.what.clone(),
                old: was,
                new: Some(case.status),
            };
            let kind = match (was, case.status) {
                (None, _) => &mut comparison.new,
                (Some(was), is) if was == is => continue,
                (Some(Status::Pass), _) | (_, Status::Fail) => &mut comparison.regressions,
                (_, Status::Pass) => &mut comparison.fixes,
                _ => &mut comparison.others,
            };
            kind.push(change);
        }
        let gone = old
            .cases
            .iter()
            .filter(|case| before.contains_key(&case.key()));
        comparison.gone.extend(gone.map(|case| Change {
            name: case.name(),
            what: case.what.clone(),
            old: Some(case.status),
            new: None,
        }));
        comparison
    }

    /// The exit status of the command: 1 where there are regressions.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        u8::from(!self.regressions.is_empty())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("regressions", &self.regressions),
            ("fixes", &self.fixes),
            ("other changes", &self.others),
            ("new", &self.new),
            ("gone", &self.gone),
        ];
        let mut counts = String::new();
        for (name, changes) in kinds {
            let _ = write!(
                counts,
                "{}{} {name}",
                if counts.is_empty() { "" } else { ", " },
                changes.len()
            );
            if !changes.is_empty() {
                writeln!(f, "{name}")?;
            }
            for change in changes {
                writeln!(f, "  {change}")?;
            }
        }
        writeln!(f, "{counts}")
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Reports may come from anywhere.
        let [name, what] = [&self.name, &self.what].map(|text| on_one_line(text));
        match (self.old, self.new) {
            (Some(old), Some(new)) => write!(f, "{name}: {old} → {new}: {what}"),
            (Some(status), None) | (None, Some(status)) => write!(f, "{name}: {status}: {what}"),
            (None, None) => write!(f, "{name}: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn every_kind_of_change() {
        let (old, mut new) = (samples::run(), samples::run());
        assert_eq!(Comparison::of(&old, &new), Comparison::default());
        // pass → warn, fail → pass, warn → skipped; unsupported is gone, and another one is new.
        new.cases[0].status = Status::Warn;
        new.cases[1].status = Status::Pass;
        new.cases[2].status = Status::Skipped;
        new.cases[3].id = "TRK-REQUEST-003".to_owned();
        let comparison = Comparison::of(&old, &new);
        insta::assert_snapshot!(comparison);
        assert_eq!(comparison.exit_status(), 1);
        assert_eq!(Comparison::of(&new, &old).regressions.len(), 1);
    }

    #[test]
    fn what_a_report_says_steers_no_terminal() {
        let (old, mut new) = (samples::run(), samples::run());
        new.cases[0].id = "TRK-\x1b[2J".to_owned();
        new.cases[0].what = "\x1b[2J".to_owned();
        let said = Comparison::of(&old, &new).to_string();
        assert!(!said.contains('\x1b'), "{said}");
    }

    #[test]
    fn what_is_new_is_no_regression() {
        let (mut old, new) = (samples::run(), samples::run());
        old.cases.clear();
        assert_eq!(Comparison::of(&old, &new).exit_status(), 0);
    }
}

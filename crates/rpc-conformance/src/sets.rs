//! Frozen sets of cases: what a revision of the specification requires. Cases that come later are run
//! too, but do not count.

use std::collections::BTreeSet;

use crate::case::{Case, Level, Role};
use crate::ids;
use crate::results::Run;

/// A file for each, which is never changed once the revision is out.
const SETS: &[(&str, &str)] = &[("2026.1", include_str!("../sets/2026.1.txt"))];

/// A frozen set of cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenSet {
    name: &'static str,
    ids: BTreeSet<&'static str>,
}

impl FrozenSet {
    /// The names of all sets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SETS.iter().map(|(name, _)| *name)
    }

    /// The set of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (name, text) = SETS.iter().find(|(known, _)| *known == name)?;
        let lines = text.lines().map(str::trim);
        let ids = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Some(Self {
            name,
            ids: ids.map(ids::current).collect(),
        })
    }

    /// Whether a case belongs to it.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.ids.contains(ids::current(id))
    }

    /// Lets only the cases of this set count.
    pub fn apply(&self, run: &mut Run) {
        run.set = Some(self.name.to_owned());
        for case in &mut run.cases {
            case.scored = self.has(&case.id);
        }
        let selected: BTreeSet<_> = run.cases.iter().map(|case| case.id.as_str()).collect();
        let musts = of_role(run.role).filter(|case| case.level == Level::Must && self.has(case.id));
        run.is_whole = musts.map(|case| case.id).all(|id| selected.contains(id));
    }
}

fn of_role(role: Role) -> impl Iterator<Item = &'static Case> {
    crate::cases::all().filter(move |case| case.role() == role)
}

/// The text of a set of all cases that there are now.
#[must_use]
pub fn frozen_now() -> String {
    let mut text = String::from("# The cases of a revision of the specification, an id a line.\n");
    for case in crate::cases::all() {
        text.push_str(case.id);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_of_a_set_is_known() {
        for name in FrozenSet::names() {
            let set = FrozenSet::named(name).unwrap();
            assert!(!set.ids.is_empty());
            for id in set.ids {
                let is_retired = ids::RETIRED.iter().any(|(retired, _)| *retired == id);
                assert!(ids::find(id).is_some() || is_retired, "{name}: {id}");
            }
        }
    }

    #[test]
    fn what_is_written_has_every_case_once() {
        let text = frozen_now();
        let ids: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(ids.len(), crate::cases::all().count());
    }
}

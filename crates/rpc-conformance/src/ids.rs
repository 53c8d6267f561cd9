//! Ids that are no more: what an id once meant it means for ever.

use crate::case::Case;

/// Ids of cases that were taken out, and why. They are never used again.
pub const RETIRED: &[(&str, &str)] = &[];

/// Cases that have another id now: the old one, and the new one.
pub const RENAMED: &[(&str, &str)] = &[];

/// The id that a case has now.
#[must_use]
pub fn current(id: &str) -> &str {
    let renamed = RENAMED.iter().find(|(old, _)| *old == id);
    renamed.map_or(id, |(_, new)| new)
}

/// All ids that a case had or has.
pub(crate) fn names(case: &Case) -> impl Iterator<Item = &'static str> {
    let id = case.id;
    let old = RENAMED.iter().filter(move |(_, new)| *new == id);
    std::iter::once(id).chain(old.map(|(old, _)| *old))
}

/// The case that has or had this id.
pub(crate) fn find(id: &str) -> Option<&'static Case> {
    let id = current(id);
    crate::cases::all().find(|case| case.id == id)
}

/// Why there is no case of this id.
pub(crate) fn why_missing(id: &str) -> String {
    match RETIRED.iter().find(|(retired, _)| *retired == id) {
        Some((_, why)) => format!("{id} was taken out of the suite: {why}"),
        None => format!("no case has the id {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_used_again() {
        for (old, why) in RETIRED {
            assert!(crate::cases::all().all(|case| case.id != *old), "{old}");
            assert!(RENAMED.iter().all(|(renamed, _)| renamed != old), "{old}");
            assert!(!why.is_empty(), "{old}");
        }
        for (at, (old, new)) in RENAMED.iter().enumerate() {
            assert!(crate::cases::all().all(|case| case.id != *old), "{old}");
            // To the id of today, so that nobody has to follow a chain.
            assert!(crate::cases::all().any(|case| case.id == *new), "{new}");
            assert!(RENAMED[..at].iter().all(|(other, _)| other != old), "{old}");
        }
    }
}

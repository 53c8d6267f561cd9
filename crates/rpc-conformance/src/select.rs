//! Which cases are run.

use crate::case::{Case, Level, Role, Tag};
use crate::ids;

/// What to run of a role; the default is everything.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    only: Vec<String>,
    ids: Option<Vec<String>>,
    skip: Vec<String>,
    level: Option<Level>,
    clauses: Vec<String>,
    tags: Vec<Tag>,
}

impl Selection {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only cases whose id, or one that it had, matches one of these patterns. `*` stands for any
    /// characters.
    #[must_use]
    pub fn with_only(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.only.extend(patterns);
        self
    }

    /// Only cases of these ids, besides what else is asked for.
    #[must_use]
    pub fn with_ids(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        self.ids.get_or_insert_default().extend(ids);
        self
    }

    /// No case whose id matches one of these patterns.
    #[must_use]
    pub fn with_skip(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.skip.extend(patterns);
        self
    }

    /// Only cases that bind at least so much.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// Only cases of these clauses, sections or chapters, as `2.4.1`, `2.4` or `2`.
    #[must_use]
    pub fn with_clauses(mut self, clauses: impl IntoIterator<Item = String>) -> Self {
        self.clauses.extend(clauses);
        self
    }

    /// Only cases that have one of these tags.
    #[must_use]
    pub fn with_tags(mut self, tags: impl IntoIterator<Item = Tag>) -> Self {
        self.tags.extend(tags);
        self
    }

    /// The cases of a role that are selected, in the order of the suite.
    #[must_use]
    pub fn of(&self, role: Role) -> Vec<&'static Case> {
        let of_role = crate::cases::all().filter(|case| case.role() == role);
        of_role.filter(|case| self.takes(case)).collect()
    }

    fn takes(&self, case: &Case) -> bool {
        let any = |patterns: &[String]| {
            let matches_one = |pattern: &String| ids::names(case).any(|id| matches(pattern, id));
            patterns.iter().any(matches_one)
        };
        (self.only.is_empty() || any(&self.only))
            && self
                .ids
                .as_ref()
                .is_none_or(|list| ids::names(case).any(|id| list.iter().any(|one| one == id)))
            && !any(&self.skip)
            && self.level.is_none_or(|weakest| case.level <= weakest)
            && (self.clauses.is_empty() || self.clauses.iter().any(|c| within(case.clause, c)))
            && (self.tags.is_empty() || self.tags.iter().any(|&tag| case.has(tag)))
    }
}

/// Whether a clause is this one, or in this section or chapter.
fn within(clause: &str, part: &str) -> bool {
    let rest = clause.strip_prefix(part);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a text matches a pattern in which `*` stands for any characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("TRK-PUT-001", "TRK-PUT-001", true),
            ("TRK-PUT-001", "TRK-PUT-0010", false),
            ("TRK-*", "TRK-PUT-001", true),
            ("*-001", "TRK-PUT-001", true),
            ("T*P*1", "TRK-PUT-001", true),
            ("T*X*1", "TRK-PUT-001", false),
            ("*", "", true),
            ("aa*aa", "aaa", false),
            ("", "TRK", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_section_is_not_the_prefix_of_a_number() {
        assert!(within("2.4.1", "2.4"));
        assert!(within("2.4.1", "2.4.1"));
        assert!(!within("2.41.1", "2.4"));
        assert!(!within("2.4", "2.4.1"));
    }
}

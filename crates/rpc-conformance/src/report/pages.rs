//! Where a clause stands.

/// The pages of the specification, by chapter.
const PAGES: &[&str] = &[
    "1-conventions",
    "2-tracker",
    "3-handshake",
    "4-packets",
    "5-values",
    "6-sessions",
    "7-memory",
    "8-endings",
    "9-clients",
    "10-functions",
    "11-proxy",
    "12-websocket",
];

/// The page and the place of a clause, as `docs/spec/2-tracker.md#2.4.1`.
#[must_use]
pub fn page(clause: &str) -> Option<String> {
    let chapter: usize = clause.split('.').next()?.parse().ok()?;
    let page = PAGES.get(chapter.checked_sub(1)?)?;
    Some(format!("docs/spec/{page}.md#{clause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_page_to_read() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for case in crate::cases::all() {
            let place = page(case.clause).unwrap();
            let (page, _) = place.split_once('#').unwrap();
            assert!(docs.join(page).exists(), "{}: {place}", case.id);
        }
        assert_eq!(page("recorded"), None);
        assert_eq!(page("99.1.1"), None);
    }
}

use serde_json::json;

use crate::case::Level;
use crate::results::{Run, Verdict};

/// A badge, as the endpoint of shields.io wants it.
#[must_use]
pub fn badge(run: &Run) -> String {
    let verdict = run.verdict();
    let color = match verdict {
        Verdict::Conformant => "brightgreen",
        Verdict::NotConformant => "red",
        Verdict::Incomplete => "yellow",
    };
    let (passed, of) = run.reached(Level::Must);
    let (message, color) = match run.failure {
        Some(_) => ("not run".to_owned(), "lightgrey"),
        None => (format!("{verdict}, {passed} of {of} MUST"), color),
    };
    let set = run.set.as_ref().map(|set| format!(" {set}"));
    let badge = json!({
        "schemaVersion": 1,
        "label": format!("TVM RPC {}{}", run.role, set.unwrap_or_default()),
        "message": message,
        "color": color,
    });
    format!("{badge:#}\n")
}

#[cfg(test)]
mod tests {
    use crate::report::samples;

    #[test]
    fn a_badge() {
        insta::assert_snapshot!(super::badge(&samples::run()));
    }
    #[test]
    fn a_run_that_did_not_begin_has_no_verdict() {
        let badge = super::badge(&samples::not_run());
        assert!(badge.contains("\"not run\""), "{badge}");
    }
}

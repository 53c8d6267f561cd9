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
    let set = run.set.as_ref().map(|set| format!(" {set}"));
    let badge = json!({
        "schemaVersion": 1,
        "label": format!("TVM RPC {}{}", run.role, set.unwrap_or_default()),
        "message": format!("{verdict}, {passed} of {of} MUST"),
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
}

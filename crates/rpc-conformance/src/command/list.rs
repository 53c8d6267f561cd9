//! The cases, without playing them.

use std::fmt::Write as _;

use rpc_conformance::Case;
use serde_json::json;

/// A line for each case: id, level, clause, what it checks, and in brackets what it needs.
pub(super) fn text(cases: &[&Case]) -> String {
    let mut out = String::new();
    for case in cases {
        let _ = write!(
            out,
            "{:<16} {:<6} {:<8} {}",
            case.id, case.level, case.clause, case.what
        );
        let tags = case.tags.iter().map(ToString::to_string);
        let functions = case.functions.iter().map(|name| format!("needs {name}"));
        let needs: Vec<_> = tags.chain(functions).collect();
        match needs.is_empty() {
            true => out.push('\n'),
            false => {
                let _ = writeln!(out, " ({})", needs.join(", "));
            }
        }
    }
    out
}

/// The same as JSON.
pub(super) fn json(cases: &[&Case]) -> String {
    let cases: Vec<_> = cases
        .iter()
        .map(|case| {
            json!({
                "id": case.id,
                "role": case.role(),
                "level": case.level,
                "clause": case.clause,
                "what": case.what,
                "why": case.why,
                "tags": case.tags,
                "functions": case.functions,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(cases))
}

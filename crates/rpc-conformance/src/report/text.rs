//! The report for a terminal: quiet where all is well, bytes where it is not.

use std::fmt::Write as _;

use crate::results::{Played, Run, Status};

/// The report as plain text.
#[must_use]
pub fn text(run: &Run) -> String {
    let mut out = String::new();
    for case in &run.cases {
        if case.status != Status::Pass {
            one(case, &mut out);
        }
    }
    let counts: Vec<_> = Status::ALL
        .into_iter()
        .map(|status| (run.count(status), status))
        .filter(|(count, _)| *count > 0)
        .map(|(count, status)| format!("{count} {status}"))
        .collect();
    let seconds = std::time::Duration::from_millis(run.milliseconds).as_secs_f64();
    let _ = writeln!(
        out,
        "{}: {} of {} cases in {seconds:.1} s: {} (seed {})",
        run.role,
        run.verdict(),
        run.cases.len(),
        counts.join(", "),
        run.seed
    );
    out
}

fn one(case: &Played, out: &mut String) {
    let _ = writeln!(
        out,
        "{} {} {} (clause {})",
        case.status,
        case.name(),
        case.what,
        case.clause
    );
    if !case.note.is_empty() {
        let _ = writeln!(out, "    {}", case.note);
    }
    if let Some(check) = case.failed_check() {
        let _ = writeln!(
            out,
            "    check {}: expected {}, found {}",
            check.name, check.expected, check.found
        );
        if let Some(hex) = &check.expected_hex {
            let _ = writeln!(out, "    expected bytes {hex}");
        }
        if let Some(hex) = &check.found_hex {
            let _ = writeln!(out, "    found bytes    {hex}");
        }
    }
}

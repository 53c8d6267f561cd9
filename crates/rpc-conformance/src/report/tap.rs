use std::fmt::Write as _;

use super::{Again, detail, reason};
use crate::results::{Played, Run, Status};

/// The report as TAP, version 14. What does not count is marked as TODO.
#[must_use]
pub fn tap(run: &Run, again: &Again) -> String {
    let count = run.cases.len() + run.stale.len();
    let mut out = format!("TAP version 14\n1..{count}\n");
    let _ = writeln!(out, "# {}", super::summary(run));
    for (number, case) in (1..).zip(&run.cases) {
        let ok = match case.status {
            Status::Fail | Status::Warn | Status::Error | Status::NotRun => "not ok",
            _ => "ok",
        };
        let what = escaped(&format!("{} {}", case.name(), case.what));
        let _ = writeln!(out, "{ok} {number} - {what}{}", directive(case));
        if case.counts_against() || case.status == Status::Error {
            block(run, case, again, &mut out);
        }
    }
    for (number, stale) in (run.cases.len() + 1..).zip(&run.stale) {
        let _ = writeln!(out, "not ok {number} - stale: {}", escaped(stale));
    }
    if let Some(failure) = &run.failure {
        let _ = writeln!(out, "Bail out! {}", super::on_one_line(failure));
    }
    out
}

fn directive(case: &Played) -> String {
    let (word, why) = match case.status {
        Status::Skipped | Status::Unsupported => ("SKIP", reason(case)),
        Status::Fail | Status::Warn if !case.counts_against() => {
            let why = case.excused.clone().unwrap_or_else(|| reason(case));
            ("TODO", why)
        }
        _ => return String::new(),
    };
    format!(" # {word} {}", escaped(&why))
}

/// What there is to say of a case, as a text in YAML.
fn block(run: &Run, case: &Played, again: &Again, out: &mut String) {
    let _ = writeln!(
        out,
        "  ---\n  level: {}\n  clause: \"{}\"\n  report: |",
        case.level, case.clause
    );
    for line in detail::lines(run, case, again, detail::Paint::NONE) {
        let _ = writeln!(out, "   {line}");
    }
    out.push_str("  ...\n");
}

fn escaped(text: &str) -> String {
    let text = super::on_one_line(text);
    text.replace('\\', "\\\\").replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn tap(run: &Run) -> String {
        super::tap(run, &Again::default())
    }

    #[test]
    fn a_run() {
        insta::assert_snapshot!(tap(&samples::run()));
    }
    #[test]
    fn a_stale_entry_is_not_ok() {
        let mut run = samples::run();
        run.stale.push("X passes".to_owned());
        let text = tap(&run);
        assert!(text.contains("\n1..7\n"), "{text}");
        assert!(text.ends_with("\nnot ok 7 - stale: X passes\n"), "{text}");
    }

    #[test]
    fn a_run_that_did_not_begin_bails_out() {
        let text = tap(&samples::not_run());
        assert!(
            text.contains("\nBail out! the tracker under test"),
            "{text}"
        );
    }
}

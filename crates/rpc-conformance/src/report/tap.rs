use std::fmt::Write as _;

use super::{detail, reason};
use crate::results::{Played, Run, Status};

/// The report as TAP, version 14. What does not count is marked as TODO.
#[must_use]
pub fn tap(run: &Run) -> String {
    let mut out = format!("TAP version 14\n1..{}\n", run.cases.len());
    let _ = writeln!(out, "# {}", super::summary(run));
    for (number, case) in (1..).zip(&run.cases) {
        let ok = match case.status {
            Status::Fail | Status::Warn | Status::Error | Status::NotRun => "not ok",
            _ => "ok",
        };
        let what = escaped(&format!("{} {}", case.name(), case.what));
        let _ = writeln!(out, "{ok} {number} - {what}{}", directive(case));
        if case.counts_against() || case.status == Status::Error {
            block(run, case, &mut out);
        }
    }
    for stale in &run.stale {
        let _ = writeln!(out, "# stale: {stale}");
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
fn block(run: &Run, case: &Played, out: &mut String) {
    let _ = writeln!(
        out,
        "  ---\n  level: {}\n  clause: \"{}\"\n  report: |",
        case.level, case.clause
    );
    for line in detail::lines(run, case, "tvm-rpc-conformance", detail::Paint::NONE) {
        let _ = writeln!(out, "   {line}");
    }
    out.push_str("  ...\n");
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use crate::report::samples;

    #[test]
    fn a_run() {
        insta::assert_snapshot!(super::tap(&samples::run()));
    }
}

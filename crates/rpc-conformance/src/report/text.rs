//! The report for a terminal: quiet where all is well, bytes where it is not.

use std::fmt::Write as _;
use std::time::Duration;

use super::detail::{self, Paint};
use super::{Again, areas, counts, on_one_line, reason};
use crate::results::{Played, Run, Status, Verdict};

/// How the text report looks.
///
/// By default it is without colours, and with nothing of what needs nobody's attention.
#[derive(Debug, Clone, Default)]
pub struct Text {
    verbose: bool,
    coloured: bool,
    again: Again,
}

impl Text {
    /// A line for every case, and all that there is to say of warnings and known failures too.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    /// With the colours of a terminal.
    #[must_use]
    pub fn coloured(mut self, coloured: bool) -> Self {
        self.coloured = coloured;
        self
    }

    /// With the command that plays a case again.
    #[must_use]
    pub fn again(mut self, again: Again) -> Self {
        self.again = again;
        self
    }

    /// The whole report.
    #[must_use]
    pub fn report(&self, run: &Run) -> String {
        let mut out = String::new();
        for (area, cases) in areas(run) {
            let texts: Vec<_> = cases
                .iter()
                .filter_map(|case| self.told(run, case))
                .collect();
            if !texts.is_empty() {
                let counts = counts(cases.iter());
                let _ = writeln!(out, "{} ({counts})", self.paint().strong(area));
                out.extend(texts);
                out.push('\n');
            }
        }
        for stale in &run.stale {
            let stale = on_one_line(stale);
            let _ = writeln!(out, "{} {stale}", self.paint().bad("stale"));
        }
        if let Some(failure) = &run.failure {
            let failure = on_one_line(failure);
            let _ = writeln!(out, "{} {failure}", self.paint().bad("nothing was run:"));
        }
        let verdict = match run.verdict() {
            Verdict::Conformant => self.paint().good("conformant"),
            Verdict::NotConformant => self.paint().bad("not conformant"),
            Verdict::Incomplete => self.paint().odd("incomplete"),
        };
        let _ = writeln!(out, "{}", summed_up(run, &verdict));
        out
    }

    /// One case with all that there is to say of it.
    #[must_use]
    pub fn case(&self, run: &Run, case: &Played) -> String {
        let mut lines = vec![self.headline(case)];
        lines.extend(detail::lines(run, case, &self.again, self.paint()));
        lines.join("\n") + "\n"
    }

    /// What is said of a case, if anything.
    fn told(&self, run: &Run, case: &Played) -> Option<String> {
        let all = |case| Some(self.case(run, case));
        let line = |more: &str| Some(format!("{}{more}\n", self.headline(case)));
        if case.status == Status::Fail && case.counts_against() {
            return all(case);
        }
        if let Some((passed, of)) = case.rate() {
            let rate = format!("\n  flaky: passed {passed} of {of}");
            let because = case
                .excused
                .as_ref()
                .map(|why| format!(": {}", on_one_line(why)));
            return line(&(rate + &because.unwrap_or_default()));
        }
        match (case.status, &case.excused) {
            (Status::Fail, None) | (Status::Error, _) => all(case),
            (Status::Fail | Status::Warn, _) if self.verbose => all(case),
            (_, Some(why)) => line(&format!("\n  known: {}", on_one_line(why))),
            (Status::Warn, None) => line(&format!("\n  {} {}", case.clause, reason(case))),
            (Status::Pass, None) if self.verbose => line(""),
            (_, None) if self.verbose => line(&format!("\n  {}", reason(case))),
            _ => None,
        }
    }

    fn headline(&self, case: &Played) -> String {
        let status = format!("{:<6}", case.status.to_string());
        let unscored = if case.scored { "" } else { " (not scored)" };
        format!(
            "{} {}{unscored}: {}",
            self.paint().status(case.status, &status),
            self.paint().strong(&on_one_line(&case.name())),
            on_one_line(&case.what)
        )
    }

    fn paint(&self) -> Paint {
        Paint(self.coloured)
    }
}

/// A run on one line: the verdict, how many cases were selected, run and skipped, what they came to, and
/// the seed.
#[must_use]
pub fn summary(run: &Run) -> String {
    summed_up(run, &run.verdict().to_string())
}

fn summed_up(run: &Run, verdict: &str) -> String {
    let selected = run.cases.len();
    let ran = run.run();
    let excused = run
        .cases
        .iter()
        .filter(|case| case.excused.is_some())
        .count();
    let mut text = format!("{}: {verdict}. {selected} selected of {}", run.role, run.of);
    if let Some(set) = &run.set {
        let _ = write!(text, " (set {set})");
    }
    let _ = write!(text, ", {ran} run, {} skipped", run.count(Status::Skipped));
    if ran > 0 {
        let ran = run.cases.iter().filter(|case| case.was_run());
        let _ = write!(text, ": {}", counts(ran));
    }
    if excused > 0 {
        let _ = write!(text, ", of which {excused} excused");
    }
    if let left @ 1.. = run.count(Status::NotRun) {
        let _ = write!(text, ", {left} not run");
    }
    if !run.stale.is_empty() {
        let _ = write!(text, ", {} stale", run.stale.len());
    }
    let seconds = Duration::from_millis(run.milliseconds).as_secs_f64();
    let _ = write!(text, ". {seconds:.1} s, seed {}", run.seed);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn a_run_with_everything_in_it() {
        insta::assert_snapshot!(Text::default().report(&samples::run()));
    }

    #[test]
    fn more_is_said_on_request() {
        let report = Text::default().verbose(true).report(&samples::run());
        assert!(
            report.contains(&format!("pass   {}", samples::PASSING)),
            "{report}"
        );
        assert!(report.contains("skipped"), "{report}");
    }

    #[test]
    fn where_all_is_well_there_is_one_line() {
        let mut run = samples::run();
        run.cases.retain(|case| case.status == Status::Pass);
        let report = Text::default().report(&run);
        assert_eq!(report.lines().count(), 1);
        assert!(
            report.starts_with("tracker: incomplete. 1 selected of"),
            "{report}"
        );
        run.is_whole = true;
        let report = Text::default().report(&run);
        assert!(
            report.starts_with("tracker: conformant. 1 selected of"),
            "{report}"
        );
        assert!(
            report.ends_with("1 run, 0 skipped: 1 pass. 1.2 s, seed 7\n"),
            "{report}"
        );
    }

    #[test]
    fn colours_only_on_request() {
        let run = samples::run();
        assert!(!Text::default().report(&run).contains('\x1b'));
        assert!(Text::default().coloured(true).report(&run).contains('\x1b'));
    }

    #[test]
    fn nothing_of_a_peer_or_a_recording_steers_a_terminal() {
        let odd = || "\x1b[2J".to_owned();
        let mut run = samples::run();
        run.stale.push(odd());
        for case in &mut run.cases {
            (case.what, case.why, case.note) = (odd(), odd(), odd());
        }
        for excused in [None, Some(odd())] {
            for case in &mut run.cases {
                case.excused.clone_from(&excused);
            }
            for verbose in [false, true] {
                let report = Text::default().verbose(verbose).report(&run);
                assert!(!report.contains('\x1b'), "{report}");
            }
        }
    }

    #[test]
    fn nothing_run_says_why() {
        insta::assert_snapshot!(Text::default().report(&samples::not_run()));
    }
}

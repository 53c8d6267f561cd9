use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Again, areas, detail, reason};
use crate::results::{Played, Run, Status};

/// The report as JUnit's XML: a suite for each area. A failure that is known or does not count is
/// skipped, and a SHOULD that was missed is a success with a text.
#[must_use]
pub fn junit(run: &Run, again: &Again) -> String {
    let mut report = Report::new(format!("conformance of a {}", run.role));
    report.set_time(Duration::from_millis(run.milliseconds));
    for (area, cases) in areas(run) {
        let mut suite = TestSuite::new(area);
        suite.set_time(
            cases
                .iter()
                .map(|case| Duration::from_millis(case.milliseconds))
                .sum(),
        );
        suite.add_property(Property::new("seed", run.seed.to_string()));
        suite.add_property(Property::new("peer", run.peer.shown()));
        suite.add_property(Property::new("suite", &run.suite));
        suite.add_test_cases(cases.iter().map(|case| test_case(run, case, again)));
        report.add_test_suite(suite);
    }
    if !run.stale.is_empty() || run.failure.is_some() {
        report.add_test_suite(about_the_run(run));
    }
    // Fails only where a writer does, and a text never does.
    report.to_string().unwrap_or_default()
}

/// What is wrong with the run itself, so that a green report is never seen where the command failed.
fn about_the_run(run: &Run) -> TestSuite {
    let mut suite = TestSuite::new("RUN");
    if let Some(failure) = &run.failure {
        let status = non_success(NonSuccessKind::Error, "not run", failure);
        suite.add_test_case(TestCase::new("RUN-BEGIN", status));
    }
    for stale in &run.stale {
        let status = non_success(NonSuccessKind::Failure, "stale entry", stale);
        suite.add_test_case(TestCase::new("RUN-LISTS", status));
    }
    suite
}

fn test_case(run: &Run, case: &Played, again: &Again) -> TestCase {
    let status = match case.status {
        Status::Pass | Status::Warn => TestCaseStatus::success(),
        Status::Fail if case.counts_against() => non_success(
            NonSuccessKind::Failure,
            &case.level.to_string(),
            &reason(case),
        ),
        Status::Error | Status::NotRun => non_success(
            NonSuccessKind::Error,
            &case.status.to_string(),
            &reason(case),
        ),
        Status::Fail | Status::Unsupported | Status::Skipped => {
            let mut skipped = TestCaseStatus::skipped();
            let because = match &case.excused {
                Some(why) => format!("known failure: {why}"),
                None => format!("{}: {}", case.status, reason(case)),
            };
            skipped.set_message(because);
            skipped
        }
    };
    let mut test = TestCase::new(case.name(), status);
    test.set_classname(format!("{}.{}", run.role, case.area()));
    test.set_time(Duration::from_millis(case.milliseconds));
    match case.status {
        Status::Pass | Status::Skipped | Status::Unsupported | Status::NotRun => {}
        status => {
            let lines = detail::lines(run, case, again, detail::Paint::NONE);
            let lines = lines.join("\n");
            test.set_system_out(format!("{status} {}: {}\n{lines}", case.name(), case.what));
        }
    }
    test
}

fn non_success(kind: NonSuccessKind, kind_name: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(kind_name);
    status.set_message(message);
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn junit(run: &Run) -> String {
        super::junit(run, &Again::default())
    }

    #[test]
    fn a_run() {
        insta::assert_snapshot!(junit(&samples::run()));
    }

    #[test]
    fn what_is_wrong_with_the_run_is_seen() {
        let mut run = samples::run();
        run.stale.push("X passes".to_owned());
        assert!(junit(&run).contains("stale entry"));
        assert!(junit(&samples::not_run()).contains("RUN-BEGIN"));
    }
}

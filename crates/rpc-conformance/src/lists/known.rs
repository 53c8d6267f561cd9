use super::{List, ListError};
use crate::ids;
use crate::results::{Played, Run, Status};

/// What a run is excused for.
#[derive(Debug, Clone, Default)]
pub struct Excuses {
    pub(super) known: List,
    pub(super) flaky: List,
    pub(super) version: Option<String>,
}

impl Excuses {
    /// Known failures, and cases that fail now and then, of a peer of this version.
    ///
    /// # Errors
    /// The lists contradict each other.
    pub fn new(known: List, flaky: List, version: Option<String>) -> Result<Self, ListError> {
        for entry in flaky.entries() {
            let problem = if entry.check.is_some() {
                format!("{}: a flaky case is listed as a whole", entry.name)
            } else if known.entries().iter().any(|known| known.overlaps(entry)) {
                format!("{} is a known failure too", entry.name)
            } else {
                continue;
            };
            let line = entry.line;
            return Err(ListError { line, problem });
        }
        Ok(Self {
            known,
            flaky,
            version,
        })
    }

    /// The cases that have to be played several times.
    pub fn flaky_ids(&self) -> impl Iterator<Item = &str> {
        self.flaky.ids()
    }

    /// The reason why a failure does not count.
    #[must_use]
    pub fn excuse(&self, played: &Played) -> Option<&str> {
        if played.status == Status::Pass || played.failed_check().is_none() {
            return None;
        }
        let version = self.version.as_deref();
        let known = self.known.entries().iter();
        let mut entries = known.chain(self.flaky.entries());
        let entry = entries.find(|entry| !entry.is_over(version) && entry.excuses(played))?;
        Some(&entry.reason)
    }

    /// Writes into a run what is excused, and which entries are of no use: they name no case, or what
    /// they excuse does not happen.
    pub fn apply(&self, run: &mut Run) {
        run.stale.extend(self.unknown());
        self.apply_to_cases(run);
    }

    /// Whether it excuses nothing.
    #[cfg(feature = "harness")]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.entries().is_empty() && self.flaky.entries().is_empty()
    }

    /// What is to be said of entries that name no case.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = String> {
        let entries = self.known.entries().iter().chain(self.flaky.entries());
        let version = self.version.as_deref();
        let unknown =
            entries.filter(move |entry| ids::find(&entry.id).is_none() && !entry.is_over(version));
        unknown.map(|entry| format!("{}: {}", entry.name, ids::why_missing(&entry.id)))
    }

    /// The same as [`Excuses::apply`], but for entries that name no case.
    pub(crate) fn apply_to_cases(&self, run: &mut Run) {
        for played in &mut run.cases {
            played.excused = self.excuse(played).map(str::to_owned);
        }
        let version = self.version.as_deref();
        for entry in self
            .known
            .entries()
            .iter()
            .filter(|entry| !entry.is_over(version))
        {
            let mut about = run
                .cases
                .iter()
                .filter(|played| entry.is_about(played))
                .peekable();
            let was_played = about.peek().is_some();
            if was_played && about.all(|played| played.status == Status::Pass) {
                run.stale.push(format!(
                    "{} passes; take it out of the known failures",
                    entry.name
                ));
            }
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn excuses(known: &str, flaky: &str) -> Result<Excuses, ListError> {
        let list = |text| List::parse(text).unwrap();
        Excuses::new(list(known), list(flaky), Some("0.27".to_owned()))
    }

    /// A run in which the suite itself made no mistake.
    fn sample() -> Run {
        let mut run = samples::run();
        run.cases.retain(|case| case.status != Status::Error);
        run
    }

    fn applied(known: &str, flaky: &str) -> Run {
        let mut run = sample();
        excuses(known, flaky).unwrap().apply(&mut run);
        run
    }

    #[test]
    fn a_known_failure_does_not_count() {
        assert_eq!(sample().exit_status(), 1);
        let known = format!("{}: so it is", samples::FAILING);
        let run = applied(&known, "");
        assert_eq!((run.exit_status(), run.failures().count()), (0, 0));
        // It is no less a failure.
        assert_eq!(run.verdict(), crate::Verdict::NotConformant);
        let excused = run.cases.iter().find_map(|case| case.excused.as_deref());
        assert_eq!(excused, Some("so it is"));
    }

    #[test]
    fn only_the_check_that_is_known_is_excused() {
        let failing = samples::FAILING;
        let check = samples::FAILED_CHECK;
        assert_eq!(
            applied(&format!("{failing}.{check}: x"), "").exit_status(),
            0
        );
        let other = applied(&format!("{failing}.other: x"), "");
        assert_eq!((other.exit_status(), other.stale), (1, vec![]));
    }

    #[test]
    fn what_is_over_excuses_nothing() {
        let failing = samples::FAILING;
        assert_eq!(
            applied(&format!("{failing} until 0.27: x"), "").exit_status(),
            1
        );
        assert_eq!(
            applied(&format!("{failing} until 0.28: x"), "").exit_status(),
            0
        );
        // A peer of that version passes, as it should.
        let passing = format!("{} until 0.27: x", samples::PASSING);
        assert_eq!(applied(&passing, "").stale, [""; 0]);
    }

    #[test]
    fn entries_of_no_use_are_errors() {
        let known = format!(
            "{}: x\n{}: y\nTRK-NONE-999: z",
            samples::FAILING,
            samples::PASSING
        );
        let run = applied(&known, "");
        assert_eq!(run.exit_status(), 1);
        assert_eq!(
            run.stale,
            [
                "TRK-NONE-999: no case has the id TRK-NONE-999".to_owned(),
                format!(
                    "{} passes; take it out of the known failures",
                    samples::PASSING
                )
            ]
        );
        // A case that was not selected says nothing about its entry.
        let other = crate::cases::all().find(|case| case.role() == crate::Role::Client);
        let run = applied(&format!("{}: x", other.unwrap().id), "");
        assert_eq!(run.stale, [""; 0]);
    }

    #[test]
    fn flaky_cases_do_not_count_whether_they_pass_or_not() {
        let flaky = format!("{}: x\n{}: y", samples::FAILING, samples::PASSING);
        let run = applied("", &flaky);
        assert_eq!((run.exit_status(), run.stale), (0, vec![]));
    }

    #[test]
    fn lists_must_not_contradict_each_other() {
        let both = excuses("A.b: x", "A: y").unwrap_err();
        assert_eq!(both.to_string(), "line 1: A is a known failure too");
        let check = excuses("", "A.b: y").unwrap_err();
        assert_eq!(
            check.to_string(),
            "line 1: A.b: a flaky case is listed as a whole"
        );
    }
}

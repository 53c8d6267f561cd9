use super::entry::{Entry, encoded};
use super::{Excuses, List};
use crate::ids;
use crate::report::on_one_line;
use crate::results::{Played, Run, Status};
use crate::stage::{Check, Chunking};

/// A list of what failed in this run, to be written over the list `before`.
///
/// What the excuses or the list before know already keeps its reason. Entries of which the run says nothing
/// are kept: those whose cases were not played, and those that are over for a peer of this version.
#[must_use]
pub fn write_known_failures(run: &Run, excuses: &Excuses, before: &List) -> String {
    let known = Known::of(excuses, before);
    let mut written = Written(vec!["# ID[.CHECK] [until VERSION]: REASON".to_owned()]);
    for played in run.cases.iter().filter(|played| known.may_excuse(played)) {
        if let Some(entry) = known.entry(played) {
            // One that fails for longer than it was said does so until nobody knows when.
            let until = entry.until.as_deref();
            let until = until.filter(|_| !entry.is_over(known.version));
            written.line(&entry.name, until, &entry.reason);
        } else if let Some(check) = played.failed_check().filter(|_| played.counts_against()) {
            let name = known.new_name(run, played, &check.name);
            written.line(&name, None, &reason(check));
        }
    }
    for entry in &known.entries {
        let mut failed = run.cases.iter().filter(|played| known.may_excuse(played));
        let is_written = failed.any(|played| known.entry(played) == Some(*entry));
        if !is_written && ids::find(&entry.id).is_some() && known.stays(entry, run) {
            written.line(&entry.name, entry.until.as_deref(), &entry.reason);
        }
    }
    written.0.join("\n") + "\n"
}

/// What is known of a peer before the run.
struct Known<'a> {
    excuses: &'a Excuses,
    version: Option<&'a str>,
    entries: Vec<&'a Entry>,
}

impl<'a> Known<'a> {
    fn of(excuses: &'a Excuses, before: &'a List) -> Self {
        let known = excuses.known.entries();
        let is_open = |entry: &&Entry| {
            let mut others = known.iter().chain(excuses.flaky.entries());
            !others.any(|other| other.overlaps(entry))
        };
        let before = before.entries().iter().filter(is_open);
        Self {
            excuses,
            version: excuses.version.as_deref(),
            entries: known.iter().chain(before).collect(),
        }
    }

    /// Whether an entry could excuse it: one that is flaky is on a list already.
    fn may_excuse(&self, played: &Played) -> bool {
        let mut flaky = self.excuses.flaky.entries().iter();
        played.status != Status::Pass
            && played.failed_check().is_some()
            && !flaky.any(|entry| entry.is_about(played) && !entry.is_over(self.version))
    }

    fn entry(&self, played: &Played) -> Option<&'a Entry> {
        let mut entries = self.entries.iter().copied();
        entries.find(|entry| entry.excuses(played))
    }

    /// The name of an entry for a failure that is not known. It speaks of all ways in which the case was
    /// played where all have failed so, and else of this one, so that no two entries are about the same.
    fn new_name(&self, run: &Run, played: &Played, check: &str) -> String {
        let (id, chunking) = played.key();
        let mut ways = run.cases.iter().filter(|other| other.key().0 == id);
        let has_whole = ways.clone().any(|other| other.chunking == Chunking::Whole);
        let fails_so = |other: &Played| {
            let failed = other.failed_check();
            other.counts_against() && failed.is_some_and(|other| other.name == check)
        };
        let is_known = |entry: &&Entry| {
            entry.id == id && entry.check.as_deref().is_none_or(|known| known == check)
        };
        let is_general = has_whole && ways.all(fails_so) && !self.entries.iter().any(is_known);
        let check = encoded(check);
        match is_general {
            true => format!("{id}.{check}"),
            false => format!("{id}[chunking={chunking}].{check}"),
        }
    }

    /// Whether the run says nothing of an entry that excused none of its failures.
    fn stays(&self, entry: &Entry, run: &Run) -> bool {
        let says_something = |played: &Played| {
            let went_far = played.status == Status::Pass || played.failed_check().is_some();
            entry.is_about(played) && went_far
        };
        entry.is_over(self.version) || !run.cases.iter().any(says_something)
    }
}

/// The lines of a list.
struct Written(Vec<String>);

impl Written {
    fn line(&mut self, name: &str, until: Option<&str>, reason: &str) {
        let until = until.map(|version| format!(" until {version}"));
        let name = name.to_owned() + &until.unwrap_or_default();
        let is_there = |line: &String| {
            let rest = line.strip_prefix(&name);
            rest.is_some_and(|rest| rest.starts_with(": "))
        };
        if !self.0.iter().any(is_there) {
            self.0.push(format!("{name}: {reason}"));
        }
    }
}

/// What a line says that nobody has given a reason for.
fn reason(check: &Check) -> String {
    match check.expected.as_str() {
        "" => shortened(&check.found),
        expected => format!(
            "expected {}, found {}",
            shortened(expected),
            shortened(&check.found)
        ),
    }
}

/// One line that says what was found.
fn shortened(found: &str) -> String {
    const LONGEST: usize = 100;
    let words = found.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST) {
        Some((end, _)) => on_one_line(&words[..end]) + "…",
        None if words.is_empty() => "fails".to_owned(),
        None => on_one_line(&words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Role;
    use crate::report::samples;

    fn excuses(known: &str, flaky: &str, version: &str) -> Excuses {
        let list = |text| List::parse(text).unwrap();
        Excuses::new(list(known), list(flaky), Some(version.to_owned())).unwrap()
    }

    /// What is written, without the line that explains the form.
    fn written(run: &Run, excuses: &Excuses, before: &str) -> Vec<String> {
        let mut run = run.clone();
        excuses.apply(&mut run);
        let text = write_known_failures(&run, excuses, &List::parse(before).unwrap());
        // Whatever it is, it is a list.
        List::parse(&text).unwrap();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// A run of one case in all ways, which fails so in each, or passes.
    fn run(id: &str, checks: [Option<&str>; 4]) -> Run {
        let mut run = samples::run();
        let played = Chunking::ALL.into_iter().zip(checks);
        run.cases = played
            .map(|(chunking, check)| failing(id, chunking, check))
            .collect();
        run
    }

    fn failing(id: &str, chunking: Chunking, check: Option<&str>) -> Played {
        let check = check.map(|name| Check {
            name: name.to_owned(),
            holds: false,
            expected: "a".to_owned(),
            found: "b".to_owned(),
            expected_hex: None,
            found_hex: None,
        });
        Played {
            id: id.to_owned(),
            chunking,
            status: match check {
                Some(_) => Status::Fail,
                None => Status::Pass,
            },
            checks: check.into_iter().collect(),
            ..samples::failing()
        }
    }

    #[test]
    fn what_is_written_excuses_the_same_run() {
        let mut run = samples::run();
        run.cases.retain(|case| case.status != Status::Error);
        let text = write_known_failures(&run, &Excuses::default(), &List::default());
        excuses(&text, "", "1").apply(&mut run);
        assert_eq!(run.exit_status(), 0, "{text}");
    }

    #[test]
    fn no_two_entries_are_about_the_same() {
        let id = samples::FAILING;
        let none = Excuses::default();
        let all = run(id, [Some("a"); 4]);
        assert_eq!(
            written(&all, &none, ""),
            [format!("{id}.a: expected a, found b")]
        );
        let some = run(id, [Some("a"), Some("c"), None, Some("a")]);
        let expected = [
            format!("{id}[chunking=whole].a: expected a, found b"),
            format!("{id}[chunking=bytes].c: expected a, found b"),
            format!("{id}[chunking=coalesced].a: expected a, found b"),
        ];
        assert_eq!(written(&some, &none, ""), expected);
        // One way is known, and keeps its reason.
        let known = format!("{id}[chunking=bytes].a: so");
        let names = written(&all, &excuses(&known, "", "1"), "");
        let expected = ["whole", "bytes", "random", "coalesced"].map(|way| {
            let reason = if way == "bytes" {
                "so"
            } else {
                "expected a, found b"
            };
            format!("{id}[chunking={way}].a: {reason}")
        });
        assert_eq!(names, expected);
    }

    #[test]
    fn an_entry_matches_the_check_of_which_it_was_written_and_no_other() {
        let odd = [
            "a", "a b", "a:", "%", "%3a", "x.y", "[z]", "é\u{a0}", "\x1b\n#", "until 1",
        ];
        for case in crate::cases::all() {
            let checks = odd.map(str::to_owned).into_iter();
            for check in checks.chain([format!("{}-{:?}", case.id, "0 : 1")]) {
                for chunking in Chunking::ALL {
                    let mut run = samples::run();
                    run.cases = vec![failing(case.id, chunking, Some(&check))];
                    let lines = written(&run, &Excuses::default(), "");
                    let excuses = excuses(&lines.join("\n"), "", "1");
                    for other in odd.iter().copied().chain([check.as_str()]) {
                        let played = failing(case.id, chunking, Some(other));
                        assert_eq!(excuses.excuse(&played).is_some(), other == check);
                    }
                }
            }
        }
    }

    #[test]
    fn reasons_that_somebody_wrote_are_kept() {
        let mut run = samples::run();
        run.cases.retain(|case| case.status != Status::Error);
        let client = crate::cases::all().find(|case| case.role() == Role::Client);
        let known = format!(
            "{} until 0.28: so\n{}: later",
            samples::FAILING,
            client.unwrap().id
        );
        let lines: Vec<_> = known.lines().collect();
        assert_eq!(written(&run, &excuses(&known, "", "0.27"), ""), lines);
        // Those of the list that is written over, too.
        assert_eq!(written(&run, &excuses("", "", "0.27"), &known), lines);
        let other = format!("{}: because", samples::FAILING);
        let both = written(&run, &excuses(&other, "", "0.27"), &known);
        assert_eq!(both, [other.as_str(), lines[1]]);
        // A case that is flaky is on one list only.
        let flaky = excuses("", &other, "0.27");
        assert_eq!(written(&run, &flaky, &known), [lines[1]]);
    }

    #[test]
    fn entries_about_other_versions_are_kept() {
        let passing = format!("{} until 0.27: it was so", samples::PASSING);
        let run = samples::run();
        let lines = written(&run, &excuses(&passing, "", "0.27"), "");
        assert!(lines.contains(&passing), "{lines:?}");
        // One that is not over and passes is stale.
        let lines = written(&run, &excuses(&passing, "", "0.26"), "");
        assert!(!lines.contains(&passing), "{lines:?}");
        // One that fails though it is over is known all the same.
        let failing = format!("{} until 0.27: it is so", samples::FAILING);
        let lines = written(&run, &excuses(&failing, "", "0.27"), "");
        assert!(
            lines.contains(&failing.replace(" until 0.27", "")),
            "{lines:?}"
        );
    }

    #[test]
    fn what_the_suite_could_not_play_says_nothing_of_an_entry() {
        let known = "TRK-STOP-002: so";
        let error = samples::run();
        assert!(error.cases.iter().any(|case| case.id == "TRK-STOP-002"));
        let lines = written(&error, &excuses(known, "", "1"), "");
        assert!(lines.contains(&known.to_owned()), "{lines:?}");
    }

    #[test]
    fn what_a_peer_said_stays_on_its_line() {
        let mut run = run(samples::FAILING, [Some("a"); 4]);
        for case in &mut run.cases {
            case.checks[0].found = "\x1b[2J\nx: y".to_owned();
        }
        let lines = written(&run, &Excuses::default(), "");
        assert_eq!(
            lines,
            [format!(
                "{}.a: expected a, found \\u{{1b}}[2J x: y",
                samples::FAILING
            )]
        );
    }
}

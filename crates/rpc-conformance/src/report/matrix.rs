//! Several peers beside each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use super::markdown::{cell, in_table};
use super::{on_one_line, page};
use crate::case::{Level, Role};
use crate::lists::List;
use crate::results::{Played, Run, Status};

/// A peer: its name, and its run.
#[derive(Debug, Clone)]
pub struct Column {
    /// The name above its column.
    pub name: String,
    /// Its run.
    pub run: Run,
}

/// Tables of several peers as Markdown, for each role: how many cases came to what, what did not pass
/// with the explanation that `notes` gives, and all cases.
#[must_use]
pub fn matrix(columns: &[Column], notes: &List) -> String {
    let mut out = String::new();
    for role in Role::ALL {
        let columns: Vec<_> = columns
            .iter()
            .filter(|column| column.run.role == role)
            .collect();
        if !columns.is_empty() {
            of_role(role, &columns, notes, &mut out);
        }
    }
    out
}

/// Cases that some peer fails and that `notes` does not explain.
#[must_use]
pub fn unexplained(columns: &[Column], notes: &List) -> Vec<String> {
    let cases = columns.iter().flat_map(|column| &column.run.cases);
    let odd = cases.filter(|case| matches!(case.status, Status::Fail | Status::Warn));
    let odd = odd.filter(|case| notes.reason(&case.id).is_none());
    let odd: BTreeSet<_> = odd
        .map(|case| on_one_line(crate::ids::current(&case.id)))
        .collect();
    odd.into_iter().collect()
}

fn of_role(role: Role, columns: &[&Column], notes: &List, out: &mut String) {
    let _ = writeln!(out, "## {}s\n", capitalized(&role.to_string()));
    counts(columns, out);
    let rows = rows(columns);
    let (odd, even): (Vec<_>, Vec<_>) = rows.iter().partition(|row| !row.passes_everywhere());
    if !odd.is_empty() {
        let _ = writeln!(out, "\n### What did not pass everywhere\n");
        header(
            &["case", "level", "clause", "what"],
            columns,
            &["explanation"],
            out,
        );
        for row in odd {
            let Played {
                level,
                clause,
                what,
                ..
            } = row.case;
            let name = row.name();
            let clause = link(clause);
            let _ = write!(out, "| {name} | {level} | {clause} | {} |", cell(what));
            row.cells(columns, out);
            // It is Markdown already, and may have links.
            let note = notes.reason(&row.case.id).unwrap_or_default();
            let _ = writeln!(out, " {} |", in_table(note));
        }
    }
    if !even.is_empty() {
        let names: Vec<_> = even.iter().map(|row| row.name()).collect();
        let _ = writeln!(out, "\n### What passed everywhere\n\n{}", names.join(", "));
    }
    out.push('\n');
}

fn counts(columns: &[&Column], out: &mut String) {
    header(&[""], columns, &[], out);
    let mut line = |name: &str, value: &dyn Fn(&Run) -> String| {
        let _ = write!(out, "| {name} |");
        for column in columns {
            let _ = write!(out, " {} |", value(&column.run));
        }
        out.push('\n');
    };
    line("verdict", &|run| match run.failure {
        Some(_) => "not run".to_owned(),
        None => run.verdict().to_string(),
    });
    for level in [Level::Must, Level::Should, Level::May, Level::Quirk] {
        line(&format!("{level} passed"), &|run| {
            let (passed, of) = run.reached(level);
            format!("{passed} of {of}")
        });
    }
    for status in Status::ALL {
        if columns.iter().any(|column| column.run.count(status) > 0) {
            line(&status.to_string(), &|run| run.count(status).to_string());
        }
    }
    line("suite", &|run| match &run.set {
        Some(set) => cell(&format!("{}, set {set}", run.suite)),
        None => cell(&run.suite),
    });
}

fn header(before: &[&str], columns: &[&Column], after: &[&str], out: &mut String) {
    let names = columns.iter().map(|column| cell(&column.name));
    let all = before.iter().map(ToString::to_string).chain(names);
    let all: Vec<_> = all.chain(after.iter().map(ToString::to_string)).collect();
    let _ = writeln!(out, "| {} |", all.join(" | "));
    let _ = writeln!(out, "|{}", " --- |".repeat(all.len()));
}

/// One playing of a case, in all columns.
struct Row<'a> {
    case: &'a Played,
    statuses: BTreeMap<usize, Status>,
}

impl Row<'_> {
    /// The id of today, and what was varied.
    fn name(&self) -> String {
        let id = crate::ids::current(&self.case.id);
        cell(&self.case.name().replacen(&self.case.id, id, 1))
    }

    fn passes_everywhere(&self) -> bool {
        self.statuses.values().all(|status| *status == Status::Pass)
    }

    fn cells(&self, columns: &[&Column], out: &mut String) {
        for number in 0..columns.len() {
            let _ = match self.statuses.get(&number) {
                None => write!(out, " |"),
                Some(status @ (Status::Fail | Status::Warn)) => write!(out, " **{status}** |"),
                Some(status) => write!(out, " {status} |"),
            };
        }
    }
}

/// Every case that one of them has, in the order of the first that has it.
fn rows<'a>(columns: &[&'a Column]) -> Vec<Row<'a>> {
    let mut places = HashMap::new();
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        for case in &column.run.cases {
            let place = *places.entry(case.key()).or_insert_with(|| {
                rows.push(Row {
                    case,
                    statuses: BTreeMap::new(),
                });
                rows.len() - 1
            });
            rows[place].statuses.insert(number, case.status);
        }
    }
    rows
}

fn link(clause: &str) -> String {
    match page(clause) {
        // The table is for `docs/conformance`.
        Some(page) => format!("[{clause}]({})", page.replacen("docs/", "../", 1)),
        None => cell(clause),
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn two_peers() {
        let mut better = samples::run();
        better.cases.retain(|case| case.status != Status::Error);
        for case in &mut better.cases {
            case.status = Status::Pass;
        }
        let columns = [("worse", samples::run()), ("better", better)].map(|(name, run)| Column {
            name: name.to_owned(),
            run,
        });
        let notes = format!("{}: answers 1 where 0 is right", samples::FAILING);
        let notes = List::parse(&notes).unwrap();
        insta::assert_snapshot!(matrix(&columns, &notes));
    }
    #[test]
    fn a_run_that_did_not_begin_has_no_verdict() {
        let (name, run) = ("gone".to_owned(), samples::not_run());
        let text = matrix(&[Column { name, run }], &List::default());
        assert!(text.contains("\n| verdict | not run |\n"), "{text}");
    }

    #[test]
    fn nothing_of_a_report_ends_a_cell() {
        let odd = "a|b`c\x1b[2J\nd";
        let mut run = samples::run();
        (run.suite, run.set) = (odd.to_owned(), Some(odd.to_owned()));
        for case in &mut run.cases {
            (case.clause, case.what) = (odd.to_owned(), odd.to_owned());
            if case.id != samples::FAILING {
                case.id += odd;
            }
        }
        let name = odd.to_owned();
        let columns = [Column { name, run }];
        let notes = List::parse(&format!("{}: x|y", samples::FAILING)).unwrap();
        let text = matrix(&columns, &notes);
        assert!(!text.contains('\x1b') && !text.contains("a|b"), "{text}");
        assert!(!text.contains("\nd"), "{text}");
        let rows = text.lines().filter(|line| line.starts_with('|'));
        for row in rows {
            let bare = row.replace("\\|", "");
            assert!(matches!(bare.matches('|').count(), 3 | 7), "{row}");
        }
        assert!(!unexplained(&columns, &notes).concat().contains('\x1b'));
    }
}

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{areas, on_one_line, page, reason, summary};
use crate::case::Level;
use crate::results::{Played, Run, Status};

/// The report as Markdown: counts by area, what did not pass, and what became of each clause.
#[must_use]
pub fn markdown(run: &Run) -> String {
    let mut out = format!("# Conformance of a {}\n\n{}\n\n", run.role, summary(run));
    if let Some(failure) = &run.failure {
        let _ = writeln!(out, "**Nothing was run**: {}\n", cell(failure));
    }
    about(run, &mut out);
    levels(run, &mut out);
    by_area(run, &mut out);
    not_passed(run, &mut out);
    by_clause(run, &mut out);
    out
}

fn about(run: &Run, out: &mut String) {
    let _ = writeln!(out, "* peer: {}", code(&run.peer.shown()));
    for (name, value) in &run.peer.probed {
        let _ = writeln!(out, "* {}: {}", cell(name), cell(value));
    }
    let _ = writeln!(out, "* suite: {}, seed {}\n", run.suite, run.seed);
    for stale in &run.stale {
        let _ = writeln!(out, "* **stale**: {}", cell(stale));
    }
}

fn levels(run: &Run, out: &mut String) {
    let _ = writeln!(out, "| level | passed | of |\n| --- | ---: | ---: |");
    for level in [Level::Must, Level::Should, Level::May, Level::Quirk] {
        if let (passed, of @ 1..) = run.reached(level) {
            let _ = writeln!(out, "| {level} | {passed} | {of} |");
        }
    }
}

fn by_area(run: &Run, out: &mut String) {
    out.push_str("\n## By area\n\n| area |");
    for status in Status::ALL {
        let _ = write!(out, " {status} |");
    }
    out.push_str("\n| --- |");
    out.push_str(&" ---: |".repeat(Status::ALL.len()));
    for (area, cases) in areas(run) {
        let _ = write!(out, "\n| {} |", cell(area));
        for status in Status::ALL {
            match cases.iter().filter(|case| case.status == status).count() {
                0 => out.push_str(" |"),
                count => {
                    let _ = write!(out, " {count} |");
                }
            }
        }
    }
    out.push('\n');
}

fn not_passed(run: &Run, out: &mut String) {
    let mut odd = run
        .cases
        .iter()
        .filter(|case| case.status != Status::Pass)
        .peekable();
    if odd.peek().is_none() {
        return;
    }
    out.push_str("\n## What did not pass\n\n");
    out.push_str("| case | level | clause | outcome | what | because |\n");
    out.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for case in odd {
        let excused = case.excused.as_ref().map(|why| format!(" (known: {why})"));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {}{} |",
            cell(&case.name()),
            case.level,
            link(&case.clause),
            outcome(case),
            cell(&case.what),
            cell(&reason(case)),
            cell(&excused.unwrap_or_default()),
        );
    }
}

fn outcome(case: &Played) -> String {
    match case.rate() {
        Some((passed, of)) => format!("{} ({passed} of {of} passed)", case.status),
        None if case.counts_against() => format!("**{}**", case.status),
        None => case.status.to_string(),
    }
}

fn by_clause(run: &Run, out: &mut String) {
    out.push_str("\n## By clause\n\n| clause | outcome | cases |\n| --- | --- | --- |\n");
    let mut clauses: BTreeMap<Vec<u32>, Vec<&Played>> = BTreeMap::new();
    for case in &run.cases {
        clauses.entry(number(&case.clause)).or_default().push(case);
    }
    let chapters: BTreeSet<_> = clauses.keys().filter_map(|clause| clause.first()).collect();
    let mut rows: BTreeMap<_, _> = crate::cases::untested()
        .filter(|(clause, _)| chapters.contains(&number(clause).first().unwrap_or(&0)))
        .map(|(clause, why)| (number(clause), row(clause, "no case", &cell(why))))
        .collect();
    for (clause, cases) in clauses {
        let statuses: BTreeSet<_> = cases.iter().map(|case| case.status).collect();
        let statuses: Vec<_> = statuses.iter().map(ToString::to_string).collect();
        let names: Vec<_> = cases.iter().map(|case| cell(&case.name())).collect();
        rows.insert(
            clause,
            row(&cases[0].clause, &statuses.join(", "), &names.join(", ")),
        );
    }
    out.extend(rows.into_values());
}

fn row(clause: &str, outcome: &str, cases: &str) -> String {
    format!("| {} | {outcome} | {cases} |\n", link(clause))
}

/// The numbers of a clause, so that 2.10 comes behind 2.9.
fn number(clause: &str) -> Vec<u32> {
    clause
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

fn link(clause: &str) -> String {
    match page(clause) {
        Some(page) => format!("[{clause}]({page})"),
        None => cell(clause),
    }
}

/// A text that does not end the cell of a table, and of which nothing is taken for markup.
pub(super) fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '<' | '*' | '_' | '`' | '[' | '\\' => cell.extend(['\\', c]),
            c if c.is_control() => cell.push(' '),
            c => cell.push(c),
        }
    }
    cell
}

/// A text in Markdown, such that it does not end the cell of a table.
pub(super) fn in_table(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut is_escaped = false;
    for c in text.chars() {
        match c {
            '|' if !is_escaped => line.push_str("\\|"),
            c if c.is_control() => line.push(' '),
            c => line.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    line
}

fn code(text: &str) -> String {
    format!("`{}`", on_one_line(text).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn a_run() {
        let text = markdown(&samples::run());
        // What no case checks changes with the suite.
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.contains("| no case |"))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn nothing_ends_a_cell() {
        assert_eq!(cell("a|b\nc<d>"), "a\\|b c\\<d>");
        assert_eq!(in_table("a|b\\|`c`\n\\\\|"), "a\\|b\\|`c` \\\\\\|");
    }
    #[test]
    fn a_run_that_did_not_begin_says_so_before_all_else() {
        let text = markdown(&samples::not_run());
        let said = text.lines().find(|line| line.starts_with("**"));
        assert_eq!(
            said,
            Some("**Nothing was run**: the tracker under test: nobody answers at 127.0.0.1:9")
        );
    }

    #[test]
    fn the_name_of_a_peer_stays_code() {
        let mut run = samples::run();
        run.peer.name = Some("a`b\n\x1b# c".to_owned());
        assert!(markdown(&run).contains("* peer: `a'b\\n\\u{1b}# c`\n"));
    }
}

use std::fmt::{self, Display, Write as _};

use super::{Again, areas, detail, on_one_line, page, reason, summary};
use crate::case::Level;
use crate::evidence::Timeline;
use crate::results::{Played, Run, Status};
use crate::transcript::Direction;

const STYLE: &str = include_str!("style.css");

/// The report as one page of HTML without scripts: a section for each case that did not pass.
#[must_use]
pub fn html(run: &Run, again: &Again) -> String {
    let mut out = String::new();
    let title = format!("Conformance of a {}", run.role);
    let _ = writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p class=\"summary\">{}</p>",
        Text(&summary(run))
    );
    if let Some(failure) = &run.failure {
        let _ = writeln!(
            out,
            "<p class=\"fail\">Nothing was run: {}</p>",
            Text(failure)
        );
    }
    about(run, &mut out);
    levels(run, &mut out);
    out.push_str("<h2>Cases</h2>\n");
    for (area, cases) in areas(run) {
        table(area, cases, &mut out);
    }
    let mut odd = run.cases.iter().filter(|case| has_section(case)).peekable();
    if odd.peek().is_some() {
        out.push_str("<h2>What did not pass</h2>\n");
    }
    for case in odd {
        section(run, case, again, &mut out);
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn has_section(case: &Played) -> bool {
    case.failed_check().is_some() || case.status == Status::Error
}

fn about(run: &Run, out: &mut String) {
    out.push_str("<dl>\n");
    let mut say = |name: &str, value: &str| {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", Text(name), Text(value));
    };
    say("peer", &run.peer.shown());
    for (name, value) in &run.peer.probed {
        say(name, value);
    }
    say("suite", &run.suite);
    for stale in &run.stale {
        say("stale", stale);
    }
    out.push_str("</dl>\n");
}

fn levels(run: &Run, out: &mut String) {
    out.push_str("<table>\n<tr><th>level</th><th>passed</th><th>of</th></tr>\n");
    for level in [Level::Must, Level::Should, Level::May, Level::Quirk] {
        if let (passed, of @ 1..) = run.reached(level) {
            let _ = writeln!(
                out,
                "<tr><td>{level}</td><td>{passed}</td><td>{of}</td></tr>"
            );
        }
    }
    out.push_str("</table>\n");
}

fn table(area: &str, cases: &[Played], out: &mut String) {
    let is_fine = cases.iter().all(|case| case.status == Status::Pass);
    let open = if is_fine { "" } else { " open" };
    let _ = writeln!(
        out,
        "<details{open}><summary>{}: {}</summary>\n<table>",
        Text(area),
        super::counts(cases.iter())
    );
    for case in cases {
        let name = Text(&case.name()).to_string();
        let name = match has_section(case) {
            true => format!("<a href=\"#{}\">{name}</a>", Text(&anchor(case))),
            false => name,
        };
        let _ = writeln!(
            out,
            "<tr><td class=\"{0}\">{1}</td><td>{name}</td><td>{2}</td><td>{3}</td><td>{4}</td></tr>",
            class(case.status),
            case.status,
            case.level,
            Text(&case.clause),
            Text(&case.what),
        );
    }
    out.push_str("</table>\n</details>\n");
}

fn section(run: &Run, case: &Played, again: &Again, out: &mut String) {
    let _ = writeln!(
        out,
        "<section id=\"{}\">\n<h3><span class=\"{}\">{}</span> {}: {}</h3>\n<p>{}</p>\n<dl>",
        Text(&anchor(case)),
        class(case.status),
        case.status,
        Text(&case.name()),
        Text(&case.what),
        Text(&case.why),
    );
    let mut say = |name: &str, value: &str| {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", Text(value));
    };
    let read = page(&case.clause).unwrap_or_default();
    say(
        "clause",
        &format!("{} ({}) {read}", case.clause, case.level),
    );
    if let Some(check) = case.failed_check() {
        say("check", &check.name);
        say("expected", &check.expected);
        say("received", &check.found);
    } else {
        say("because", &reason(case));
    }
    for (name, text) in [("note", Some(&case.note)), ("known", case.excused.as_ref())] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            say(name, text);
        }
    }
    out.push_str("</dl>\n");
    let timeline = Timeline::of(case);
    for (title, lines) in detail::blocks(case, &timeline) {
        if title == "timeline" {
            conversation(&timeline, out);
        } else {
            let _ = writeln!(
                out,
                "<h4>{title}</h4>\n<pre>{}</pre>",
                Text(&lines.join("\n"))
            );
        }
    }
    let _ = writeln!(
        out,
        "<h4>replay</h4>\n<pre>{}</pre>\n</section>",
        Text(&again.line(run, case))
    );
}

/// Everything that happened; a message can be opened and is explained field by field.
fn conversation(timeline: &Timeline, out: &mut String) {
    out.push_str("<h4>timeline</h4>\n<ol class=\"timeline\">\n");
    for moments in timeline.repeated() {
        let moment = &moments[0];
        let times = match moments.len() {
            1 => String::new(),
            times => format!(" ({times} times)"),
        };
        let arrow = match moment.direction {
            Direction::Sent => "→",
            Direction::Received => "←",
        };
        let line = format!(
            "{:.3} s #{} {arrow} {}{times}",
            moment.at,
            moment.connection,
            on_one_line(&moment.text)
        );
        let _ = match moment.message {
            None => writeln!(out, "<li>{}</li>", Text(&line)),
            Some(message) => writeln!(
                out,
                "<li><details><summary>{}</summary><pre>{}</pre></details></li>",
                Text(&line),
                Text(&timeline.explained(message))
            ),
        };
    }
    out.push_str("</ol>\n");
}

/// A place in the page.
fn anchor(case: &Played) -> String {
    let name = case.name();
    name.replace(['[', ']', '='], "-")
        .trim_end_matches('-')
        .to_owned()
}

fn class(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail | Status::Error => "fail",
        Status::Warn => "warn",
        _ => "other",
    }
}

/// A text, of which nothing is taken for markup.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;"),
                '<' => f.write_str("&lt;"),
                '>' => f.write_str("&gt;"),
                '"' => f.write_str("&quot;"),
                c if c.is_control() && c != '\n' => write!(f, "{}", c.escape_default()),
                c => f.write_char(c),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn html(run: &Run) -> String {
        super::html(run, &Again::default())
    }

    #[test]
    fn a_run() {
        insta::assert_snapshot!(html(&samples::run()).replace(STYLE, ""));
    }
    #[test]
    fn a_run_that_did_not_begin_says_so_before_all_else() {
        let page = html(&samples::not_run());
        let said = page.find("<p class=\"fail\">Nothing was run: the tracker under test");
        assert!(said.unwrap() < page.find("<dl>").unwrap());
    }
}

//! All that there is to say of one case that did not pass.

use anstyle::{AnsiColor, Style};

use super::hex::{Comparison, dump};
use super::{Again, on_one_line, page};
use crate::evidence::Timeline;
use crate::results::{Played, Run, Status};
use crate::stage::Check;
use crate::transcript::Direction;

/// Lines of one block that are shown.
const LINES: usize = 24;
/// Moments of a timeline that are shown.
const MOMENTS: usize = 40;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) const NONE: Self = Self(false);

    fn paint(self, style: Style, text: &str) -> String {
        match self.0 {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn odd(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// A text in the colour of a status.
    pub(crate) fn status(self, status: Status, text: &str) -> String {
        match status {
            Status::Pass => self.good(text),
            Status::Fail | Status::Error => self.bad(text),
            Status::Warn => self.odd(text),
            _ => self.faint(text),
        }
    }
}

/// The lines about a case, for a terminal or a text in another report.
pub(crate) fn lines(run: &Run, case: &Played, again: &Again, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |name: &str, text: &str| {
        lines.push(format!("  {} {text}", paint.faint(&format!("{name:<9}"))));
    };
    say("why", &on_one_line(&case.why));
    let read = page(&case.clause).unwrap_or_default();
    say(
        "clause",
        format!("{} ({}) {read}", case.clause, case.level).trim_end(),
    );
    if !case.note.is_empty() {
        say("note", &on_one_line(&case.note));
    }
    if let Some(check) = case.failed_check() {
        say("check", &paint.strong(&on_one_line(&check.name)));
        say("expected", &on_one_line(&check.expected));
        say("received", &on_one_line(&check.found));
    }
    let timeline = Timeline::of(case);
    for (title, block) in blocks(case, &timeline) {
        lines.push(format!("  {}", paint.faint(title)));
        lines.extend(block.iter().map(|line| {
            let line = format!("    {line}");
            let is_mark = line.contains("^^") && line.trim_matches([' ', '^']).is_empty();
            if is_mark { paint.bad(&line) } else { line }
        }));
    }
    lines.push(format!(
        "  {} {}",
        paint.faint("replay   "),
        again.line(run, case)
    ));
    lines
}

/// What is shown of a case below what is said of it.
pub(crate) fn blocks(case: &Played, timeline: &Timeline) -> Vec<(&'static str, Vec<String>)> {
    let mut blocks = Vec::new();
    let explained = |direction| {
        let message = timeline.last(direction)?;
        Some(shortened(
            timeline
                .explained(message)
                .lines()
                .map(str::to_owned)
                .collect(),
        ))
    };
    blocks.extend(explained(Direction::Sent).map(|lines| ("last sent", lines)));
    blocks.extend(explained(Direction::Received).map(|lines| ("last received", lines)));
    let bytes = case.failed_check().and_then(compared);
    blocks.extend(bytes.map(|lines| ("bytes", lines)));
    if !timeline.moments.is_empty() {
        blocks.push(("timeline", moments(timeline)));
    }
    if !case.stderr.is_empty() {
        let lines = case.stderr.iter().map(|line| on_one_line(line));
        blocks.push((
            "standard error of the peer, also of cases before",
            lines.collect(),
        ));
    }
    blocks
}

/// The bytes of a check: both beside each other, or the one that is known.
fn compared(check: &Check) -> Option<Vec<String>> {
    let bytes = |digits: &Option<String>| digits.as_deref().and_then(|text| hex::decode(text).ok());
    let (expected, found) = (bytes(&check.expected_hex), bytes(&check.found_hex));
    match (&expected, &found) {
        (Some(expected), Some(found)) => Some(Comparison::new(expected, found).lines()),
        (Some(bytes), None) => Some(titled("expected", bytes)),
        (None, Some(bytes)) => Some(titled("received", bytes)),
        (None, None) => None,
    }
}

fn titled(title: &str, bytes: &[u8]) -> Vec<String> {
    let mut lines = vec![format!("        {title}")];
    lines.extend(dump(bytes));
    lines
}

fn moments(timeline: &Timeline) -> Vec<String> {
    let moments = timeline.repeated();
    let skipped = moments.len().saturating_sub(MOMENTS);
    let first = (skipped > 0).then(|| format!("… {skipped} lines before"));
    let shown = moments[skipped..].iter().map(|moments| {
        let moment = &moments[0];
        let arrow = match moment.direction {
            Direction::Sent => '→',
            Direction::Received => '←',
        };
        let text = on_one_line(&moment.text);
        let times = match moments.len() {
            1 => String::new(),
            times => format!(" ({times} times)"),
        };
        format!(
            "{:8.3} s  #{} {arrow} {text}{times}",
            moment.at, moment.connection
        )
    });
    first.into_iter().chain(shown).collect()
}

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    if let Some(more @ 1..) = lines.len().checked_sub(LINES) {
        lines.truncate(LINES);
        lines.push(format!("… {more} more lines"));
    }
    lines
}

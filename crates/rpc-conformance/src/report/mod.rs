//! What a run is written as.

mod again;
mod badge;
mod detail;
mod hex;
mod html;
#[cfg(feature = "junit")]
mod junit;
mod markdown;
mod matrix;
mod pages;
#[cfg(test)]
pub(crate) mod samples;
mod tap;
mod text;

pub use again::Again;
pub use badge::badge;
pub use html::html;
#[cfg(feature = "junit")]
pub use junit::junit;
pub use markdown::markdown;
pub use matrix::{Column, matrix, unexplained};
pub use pages::page;
pub use tap::tap;
pub use text::{Text, summary};

use crate::results::{Played, Run, Status};

/// The report as JSON, which `docs/conformance/report.schema.json` describes.
#[must_use]
pub fn json(run: &Run) -> String {
    // Maps have texts as keys, and floats are finite: there is nothing that JSON cannot hold.
    let mut text = serde_json::to_string_pretty(run).unwrap_or_default();
    text.push('\n');
    text
}

/// Runs of cases of the same area, as `TRK-PUT`, in the order of the suite.
fn areas(run: &Run) -> impl Iterator<Item = (&str, &[Played])> {
    let chunks = run.cases.chunk_by(|one, other| one.area() == other.area());
    chunks.map(|cases| (cases[0].area(), cases))
}

/// How many of these cases came to what, as `68 pass, 2 warn`.
fn counts<'a>(cases: impl Iterator<Item = &'a Played> + Clone) -> String {
    let count = |status| cases.clone().filter(|case| case.status == status).count();
    let counts = Status::ALL
        .into_iter()
        .map(|status| (count(status), status));
    let counts: Vec<_> = counts
        .filter(|(count, _)| *count > 0)
        .map(|(count, status)| format!("{count} {status}"))
        .collect();
    counts.join(", ")
}

/// The longest reason, in characters.
const REASON: usize = 300;

/// Why a case came to what it came to, on one line.
fn reason(case: &Played) -> String {
    let check = case.failed_check().map(|check| {
        format!(
            "{}: expected {}, received {}",
            check.name, check.expected, check.found
        )
    });
    let note = Some(&case.note).filter(|note| !note.is_empty()).cloned();
    let reasons = [check, note].into_iter().flatten();
    let reasons = on_one_line(&reasons.collect::<Vec<_>>().join("; "));
    match reasons.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}…", &reasons[..end]),
        None => reasons,
    }
}

/// A text of a peer's, with nothing in it that ends the line or steers a terminal.
#[must_use]
pub fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_back() {
        let run = samples::run();
        let again: Run = serde_json::from_str(&json(&run)).unwrap();
        assert_eq!(again, run);
    }

    #[test]
    fn json_is_as_its_schema_says() {
        let schema = include_str!("../../../../docs/conformance/report.schema.json");
        let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
        let report = |run: &Run| serde_json::to_value(run).unwrap();
        for run in [samples::run(), samples::not_run()] {
            let errors: Vec<_> = schema
                .iter_errors(&report(&run))
                .map(|e| e.to_string())
                .collect();
            assert_eq!(errors, [""; 0]);
        }
        let mut wrong = report(&samples::run());
        wrong["cases"][0]["status"] = "perhaps".into();
        assert!(!schema.is_valid(&wrong));
        let mut wrong = report(&samples::run());
        wrong["verdict of the day"] = "fine".into();
        assert!(!schema.is_valid(&wrong));
    }

    #[test]
    fn what_a_peer_says_steers_no_terminal() {
        assert_eq!(on_one_line("a\x1b[2J\nb é"), "a\\u{1b}[2J\\nb é");
    }
}

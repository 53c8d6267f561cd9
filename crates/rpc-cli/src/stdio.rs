//! Standard output, standard error and logs.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::usage::wrong_usage;

const LOG_VARIABLE: &str = "TVM_RPC_LOG";

/// Writes to standard output. The error is always an [`io::Error`], see [`is_broken_pipe`].
///
/// What servers send must not steer the terminal; a file or another program gets it as it is.
pub(crate) fn print(text: &str) -> Result<()> {
    Ok(print_text(text)?)
}

fn print_text(text: &str) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => write(&text.replace(steers, "\u{fffd}")),
        false => write(text),
    }
}

/// Much text for standard output, which gets it in large pieces of whole lines, each as [`print`] does it.
/// The errors are those of [`print`].
#[derive(Debug, Default)]
pub(crate) struct Printer {
    text: Vec<u8>,
}

impl Printer {
    /// As far as whoever reads a pipe takes at once.
    const PIECE: usize = 64 << 10;

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        Ok(self.flush()?)
    }
}

impl Write for Printer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // Not in what was there before, as a line may be long and come in many pieces.
        let last = text.iter().rposition(|byte| *byte == b'\n');
        let (lines, rest) = text.split_at(last.map_or(0, |last| last + 1));
        self.text.extend_from_slice(lines);
        if self.text.len() >= Self::PIECE && !lines.is_empty() {
            self.flush()?;
        }
        self.text.extend_from_slice(rest);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        print_text(&String::from_utf8_lossy(&text))
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn steers(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Clears the terminal, if standard output is one.
pub(crate) fn clear() -> Result<()> {
    const ERASE_AND_GO_TO_TOP: &str = "\x1b[2J\x1b[H";
    match io::stdout().is_terminal() {
        true => Ok(write(ERASE_AND_GO_TO_TOP)?),
        false => Ok(()),
    }
}

/// Prints one JSON document over several lines.
pub(crate) fn print_json(document: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(document)?))
}

/// Prints one JSON document on a line of its own.
pub(crate) fn print_json_line(document: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string(document)?))
}

/// Did whoever reads our standard output stop reading?
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Says on standard error what takes long, or what else is no error.
pub(crate) fn note(text: &str) {
    to_stderr(&format!("note: {}", one_line(text)));
}

/// Says on standard error, in one line, why the command failed.
pub(crate) fn error(error: &anyhow::Error) {
    to_stderr(&format!("error: {}", one_line(&format!("{error:#}"))));
}

fn to_stderr(line: &str) {
    // Nobody is left to be told that standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Servers report errors of many lines, at any length, and what they send must not steer the terminal.
fn one_line(text: &str) -> String {
    /// Characters: some screens full.
    const LONGEST: usize = 8000;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut line = String::new();
    for part in lines {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(part);
        if let Some((end, _)) = line.char_indices().nth(LONGEST) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line.replace(char::is_control, "\u{fffd}")
}

/// Sends logs to standard error if the user wants some: by `--verbose`, or by a filter in
/// [`LOG_VARIABLE`], which counts more. Else it is the `usual` filter of the command, if it has one.
pub(crate) fn start_logs(verbose: bool, usual: Option<&str>) -> Result<()> {
    let filter = std::env::var(LOG_VARIABLE).unwrap_or_default();
    let filter = match (filter.as_str(), verbose) {
        ("", false) => match usual {
            Some(usual) => EnvFilter::new(usual),
            None => return Ok(()),
        },
        ("", true) => EnvFilter::new("debug"),
        (filter, _) => EnvFilter::try_new(filter)
            .map_err(|error| wrong_usage(format!("{LOG_VARIABLE}={filter}: {error}")))?,
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // That a log cannot be written would be told to standard error as well, and end what was going on.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_in_many_pieces_takes_no_square_of_its_length() {
        use std::time::{Duration, Instant};

        const LEN: usize = 2_000_000;
        let start = Instant::now();
        let mut printer = Printer::default();
        for _ in 0..LEN {
            printer.write_all(b".").unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(60));
        assert_eq!(printer.text.len(), LEN);
    }

    #[test]
    fn an_error_is_one_line_with_all_its_causes() {
        let error = anyhow::anyhow!("Check failed:\n  x == y\n\nhere").context("cannot run");
        assert_eq!(
            one_line(&format!("{error:#}")),
            "cannot run: Check failed: x == y here"
        );
    }

    #[test]
    fn an_error_without_end_is_cut() {
        let line = one_line(&"x\n".repeat(10_000_000));
        assert_eq!(line.chars().count(), 8001);
        assert!(line.starts_with("x x x") && line.ends_with('…'));
    }

    #[test]
    fn an_error_does_not_steer_the_terminal() {
        assert_eq!(
            one_line("a\x1b[31m\u{9b}1mb\0"),
            "a\u{fffd}[31m\u{fffd}1mb\u{fffd}"
        );
    }

    #[test]
    fn lines_and_columns_do_not_steer() {
        assert_eq!("a\tb\n\x1b]0;x\x07".replace(steers, "?"), "a\tb\n?]0;x?");
    }

    #[test]
    fn a_broken_pipe_is_known_also_in_context() {
        let broken = || anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_broken_pipe(&broken()));
        assert!(is_broken_pipe(&broken().context("while printing")));
        assert!(!is_broken_pipe(&anyhow::anyhow!("broken pipe")));
    }
}

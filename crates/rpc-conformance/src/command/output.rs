//! Where reports go.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rpc_conformance::{Run, report};

use super::arguments::OutputArguments;
use super::{Failure, usage, write};

/// A report, and its file.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) format: Format,
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Junit,
    Markdown,
    Html,
    Tap,
    Badge,
}

impl FromStr for Report {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = match format {
            "text" => Format::Text,
            "json" => Format::Json,
            "junit" => Format::Junit,
            "markdown" => Format::Markdown,
            "html" => Format::Html,
            "tap" => Format::Tap,
            "badge" => Format::Badge,
            _ => return Err("formats are text, json, junit, markdown, html, tap, badge".to_owned()),
        };
        Ok(Self { format, file })
    }
}

/// All reports that were asked for.
#[derive(Debug)]
pub(super) struct Reports {
    files: Vec<(Format, PathBuf)>,
    /// What goes to standard output.
    shown: Option<Format>,
    verbose: bool,
    command: String,
}

impl Reports {
    pub(super) fn new(arguments: &OutputArguments) -> Result<Self, Failure> {
        let mut files = Vec::new();
        let mut without = Vec::new();
        for Report { format, file } in arguments.report.iter().cloned() {
            match file {
                Some(file) => files.push((format, file)),
                None => without.push(format),
            }
        }
        let mut shown = match without[..] {
            [] => None,
            [format] => Some(format),
            _ => {
                let why = "only one report may be without a file: --report FORMAT=FILE";
                return Err(usage(anyhow::anyhow!(why)));
            }
        };
        match &arguments.out {
            // What has no format is the text.
            Some(file) => files.push((shown.take().unwrap_or(Format::Text), file.clone())),
            None => shown = shown.or(Some(Format::Text)),
        }
        Ok(Self {
            files,
            // Without one, the text still says how it went.
            shown: shown.or(Some(Format::Text)),
            verbose: arguments.verbose,
            command: std::env::var("TVM_RPC_CONFORMANCE_COMMAND")
                .unwrap_or_else(|_| "tvm-rpc-conformance".to_owned()),
        })
    }

    /// Writes all of them, even if one cannot be written.
    pub(super) fn write(&self, run: &Run) -> Result<(), Failure> {
        let mut failure = Ok(());
        for (format, file) in &self.files {
            if let Err(error) = write(file, &self.text(*format, run, false)) {
                failure = Err(error);
            }
        }
        if let Some(format) = self.shown {
            let coloured = anstream::AutoStream::choice(&std::io::stdout());
            let coloured = coloured != anstream::ColorChoice::Never;
            show(&self.text(format, run, coloured));
            if format != Format::Text {
                eprintln!("{}", report::summary(run));
            }
        }
        failure
    }

    fn text(&self, format: Format, run: &Run, coloured: bool) -> String {
        match format {
            Format::Text => report::Text::default()
                .verbose(self.verbose)
                .coloured(coloured)
                .command(&self.command)
                .report(run),
            Format::Json => report::json(run),
            Format::Junit => report::junit(run),
            Format::Markdown => report::markdown(run),
            Format::Html => report::html(run),
            Format::Tap => report::tap(run),
            Format::Badge => report::badge(run),
        }
    }
}

/// Prints a text. Whoever reads it may have enough of it.
pub(super) fn show(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes what passed in a case to a file that has its name.
pub(super) fn record(folder: &Path, played: &rpc_conformance::Played) -> Result<(), anyhow::Error> {
    let name = played.name().replace(['[', '='], "-").replace(']', "");
    let recording = played.recording();
    recording.write(&folder.join(format!("{name}.json")))?;
    Ok(())
}

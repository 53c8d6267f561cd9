//! Where reports go.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rpc_conformance::{Case, Run, report};

use super::arguments::OutputArguments;
use super::{Failure, list, usage, write};

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
    again: report::Again,
}

impl Reports {
    /// `again` is what the command was told besides what a run knows.
    pub(super) fn new(arguments: &OutputArguments, again: report::Again) -> Result<Self, Failure> {
        let (files, shown) = places(arguments)?;
        Ok(Self {
            files,
            // Without one, the text still says how it went.
            shown: shown.or(Some(Format::Text)),
            verbose: arguments.verbose,
            again,
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
                tell(&report::summary(run));
            }
        }
        failure
    }

    fn text(&self, format: Format, run: &Run, coloured: bool) -> String {
        match format {
            Format::Text => report::Text::default()
                .verbose(self.verbose)
                .coloured(coloured)
                .again(self.again.clone())
                .report(run),
            Format::Json => report::json(run),
            Format::Junit => report::junit(run, &self.again),
            Format::Markdown => report::markdown(run),
            Format::Html => report::html(run, &self.again),
            Format::Tap => report::tap(run, &self.again),
            Format::Badge => report::badge(run),
        }
    }
}

/// Formats with their files, and the one that goes to standard output, if any.
type Places = (Vec<(Format, PathBuf)>, Option<Format>);

fn places(arguments: &OutputArguments) -> Result<Places, Failure> {
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
    if let Some(file) = &arguments.out {
        // What has no format is the text.
        files.push((shown.take().unwrap_or(Format::Text), file.clone()));
    }
    Ok((files, shown))
}

/// Writes a list of cases to where reports would go.
pub(super) fn write_list(arguments: &OutputArguments, cases: &[&Case]) -> Result<(), Failure> {
    let text = |format| match format {
        Format::Text => Ok(list::text(cases)),
        Format::Json => Ok(list::json(cases)),
        _ => Err(usage(anyhow::anyhow!("a list is text or json"))),
    };
    let (files, shown) = places(arguments)?;
    let shown = shown.or(files.is_empty().then_some(Format::Text));
    let shown = shown.map(text).transpose()?;
    let files: Vec<_> = files
        .into_iter()
        .map(|(format, file)| Ok((text(format)?, file)))
        .collect::<Result<_, _>>()?;
    for (text, file) in files {
        write(&file, &text)?;
    }
    show(&shown.unwrap_or_default());
    Ok(())
}

/// Prints a text. Whoever reads it may have enough of it.
pub(super) fn show(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Says something on standard error, with nothing in it that steers a terminal.
pub(super) fn tell(text: &str) {
    let lines = text.lines().map(|line| report::on_one_line(line) + "\n");
    // There is nobody to tell where that is closed.
    let _ = std::io::stderr().write_all(lines.collect::<String>().as_bytes());
}

/// Writes what passed in a case to a file that has its name.
pub(super) fn record(folder: &Path, played: &rpc_conformance::Played) -> Result<(), anyhow::Error> {
    let name = played.name().replace(['[', '='], "-").replace(']', "");
    let recording = played.recording();
    recording.write(&folder.join(format!("{name}.json")))?;
    Ok(())
}

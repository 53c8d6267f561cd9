mod arguments;
mod check;
mod compare;
mod last;
mod list;
mod output;
mod play;
mod progress;
mod soak;

use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use rpc_conformance::{Peer, Run, Target};

pub(crate) use arguments::Arguments;
use arguments::{Command, PeerArguments};

/// Why the command ends with another status than that of a run.
#[derive(Debug)]
struct Failure {
    status: u8,
    error: anyhow::Error,
}

/// A file cannot be read, or an argument means nothing.
const USAGE: u8 = 2;
/// The peer cannot be reached, or does not get ready.
const NO_PEER: u8 = 3;
/// The suite could not do its part.
const SUITE: u8 = 4;

fn usage(error: impl Into<anyhow::Error>) -> Failure {
    Failure {
        status: USAGE,
        error: error.into(),
    }
}

fn suite(error: impl Into<anyhow::Error>) -> Failure {
    Failure {
        status: SUITE,
        error: error.into(),
    }
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let done = match arguments.command {
        Command::Tracker { peer, run } => play::run(
            peer.peer().map(Target::Tracker),
            rpc_conformance::Role::Tracker,
            &run,
        ),
        Command::Server { peer, key, run } => {
            let target = peer.peer().map(|peer| Target::Server { peer, key });
            play::run(target, rpc_conformance::Role::Server, &run)
        }
        Command::Client { cmd, run } => {
            let target = cmd.map(|command| Target::Client { command });
            play::run(target, rpc_conformance::Role::Client, &run)
        }
        Command::Diff { old, new } => compare::diff(&old, &new),
        Command::Matrix {
            reports,
            notes,
            out,
        } => compare::matrix(&reports, notes.as_deref(), out.as_deref()),
        Command::Soak(arguments) => soak::run(arguments),
        Command::Check { files } => check::run(&files),
        Command::WriteSet { file } => write(&file, &rpc_conformance::frozen_now()).map(|()| 0),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(Failure { status, error }) => {
            output::tell(&format!("error: {error:#}"));
            ExitCode::from(status)
        }
    }
}

impl PeerArguments {
    fn peer(self) -> Option<Peer> {
        match (self.addr, self.cmd) {
            (Some(addr), _) => Some(Peer::Running(addr)),
            (None, command) => command.map(Peer::Command),
        }
    }
}

/// The longest list that is read, in bytes.
const LONGEST: u64 = 64 << 20;
/// The longest report that is read, in bytes: it may hold what passed in hundreds of cases.
const LONGEST_REPORT: u64 = 1 << 30;

/// Reads a list.
fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    read.with_context(|| file.display().to_string())
        .and_then(|len| too_long(file, len as u64, LONGEST))
        .map_err(usage)?;
    Ok(text)
}

fn too_long(file: &Path, len: u64, longest: u64) -> anyhow::Result<()> {
    let file = file.display();
    ensure!(len <= longest, "{file} has more than {longest} bytes");
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let written = fs::write(file, text);
    written
        .with_context(|| file.display().to_string())
        .map_err(suite)
}

/// Reads a JSON report.
fn read_run(file: &Path) -> Result<Run, Failure> {
    let opened = File::open(file);
    let opened = opened
        .with_context(|| file.display().to_string())
        .map_err(usage)?;
    // As it comes, so that what is no report is given up at its first bytes.
    let mut text = BufReader::new(opened.take(LONGEST_REPORT + 1));
    let run = serde_json::from_reader(&mut text);
    let len = LONGEST_REPORT + 1 - text.get_ref().limit();
    too_long(file, len, LONGEST_REPORT).map_err(usage)?;
    let run: Run = run
        .with_context(|| format!("{} is no report", file.display()))
        .map_err(usage)?;
    let newest = rpc_conformance::results::FORMAT;
    if run.format != newest {
        let format = run.format;
        let file = file.display();
        return Err(usage(anyhow::anyhow!(
            "{file} has the format {format}, not {newest}"
        )));
    }
    Ok(run)
}

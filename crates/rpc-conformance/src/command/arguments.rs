use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use rpc_conformance::{Chunking, Level, Role, Tag};
use serde::de::DeserializeOwned;

use super::output::Report;

/// Test a tracker, a server or a client against the specification of the protocol.
///
/// Exit status: 0 as required; 1 a failure, or an entry of a list that is stale; 2 wrong usage, or nothing
/// selected; 3 the peer cannot be reached or does not get ready; 4 the suite could not do its part, or
/// was interrupted.
#[derive(Debug, Parser)]
#[command(name = "tvm-rpc-conformance", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Test a tracker; the suite plays servers and clients.
    Tracker {
        #[command(flatten)]
        peer: PeerArguments,
        #[command(flatten)]
        run: Box<RunArguments>,
    },
    /// Test a server without a tracker; the suite plays clients.
    Server {
        #[command(flatten)]
        peer: PeerArguments,
        /// The key of the server, which its clients name as match key.
        #[arg(long, default_value = "conformance")]
        key: String,
        #[command(flatten)]
        run: Box<RunArguments>,
    },
    /// Test a client; the suite plays the tracker and the server.
    Client {
        /// The command that runs the script of the client, with {tracker} and {key} in it.
        #[arg(long, value_name = "COMMAND")]
        cmd: Option<String>,
        #[command(flatten)]
        run: Box<RunArguments>,
    },
    /// Say what has changed between two reports. Exit status 1 if something got worse.
    Diff {
        /// The older JSON report.
        old: PathBuf,
        /// The newer one.
        new: PathBuf,
    },
    /// Put several peers beside each other, as tables in Markdown.
    Matrix {
        /// JSON reports; what stands before = is the name of the column.
        #[arg(required = true, value_name = "[NAME=]FILE")]
        reports: Vec<String>,
        /// A file of explanations, with lines of the form ID: TEXT.
        #[arg(long, value_name = "FILE")]
        notes: Option<PathBuf>,
        /// Where the tables go; standard output by default.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Have one short conversation with a tracker or a server over and over, on many connections at once,
    /// and tell how long it took and what is left of it. Exit status 1 if one did not go as it should.
    Soak(SoakArguments),
    /// Hold what two peers said to each other, which a relay has recorded, against the specification.
    /// Exit status 1 if something is wrong.
    Check {
        /// What was recorded (`tvm-rpc relay --record FILE`).
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write the ids of all cases, as a set that can be frozen.
    WriteSet {
        /// The file.
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct PeerArguments {
    /// Where it listens, if it runs already.
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) addr: Option<String>,
    /// The command that starts it, with {host}, {port} and {key} in it. With the port 0 or without
    /// {port} it has to print `listening on HOST:PORT`.
    #[arg(long, value_name = "COMMAND")]
    pub(super) cmd: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct SoakArguments {
    /// tracker or server.
    #[arg(value_parser = named::<Role>)]
    pub(super) role: Role,
    #[command(flatten)]
    pub(super) peer: PeerArguments,
    /// The key of a server, which its clients name as match key.
    #[arg(long, default_value = "conformance")]
    pub(super) key: String,
    /// Conversations at a time.
    #[arg(long, default_value = "16", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(super) connections: u16,
    /// Conversations altogether.
    #[arg(long, default_value = "2000", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) cycles: u32,
    /// Multiply every deadline; from 0.01 to 1000.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    pub(super) slow: f64,
    /// How long the peer may take until it accepts connections, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = factor)]
    pub(super) patience: f64,
    /// The figures as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) selection: SelectionArguments,
    #[command(flatten)]
    pub(super) playing: PlayingArguments,
    #[command(flatten)]
    pub(super) lists: ListArguments,
    #[command(flatten)]
    pub(super) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Which cases")]
pub(super) struct SelectionArguments {
    /// Only these cases; * stands for any characters.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Not these cases.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(super) skip: Vec<String>,
    /// Only cases that bind at least so much: must, should, may, quirk.
    #[arg(long, value_parser = named::<Level>)]
    pub(super) level: Option<Level>,
    /// Only cases of this clause, section or chapter, as 2.4.1, 2.4 or 2.
    #[arg(long, value_name = "CLAUSE", value_delimiter = ',')]
    pub(super) clause: Vec<String>,
    /// Only cases with this tag: hostile, alone, spoils, large, slow.
    #[arg(long, value_delimiter = ',', value_parser = named::<Tag>)]
    pub(super) tag: Vec<Tag>,
    /// Only cases that did not pass in this JSON report, with its seed.
    #[arg(long, value_name = "FILE")]
    pub(super) rerun_failed: Option<PathBuf>,
    /// List the cases instead of playing them; with --report json as JSON.
    #[arg(long)]
    pub(super) list: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "How they are played")]
pub(super) struct PlayingArguments {
    /// What to vary: chunking=whole,bytes,random,coalesced, which is how messages are cut into writes.
    #[arg(long, value_name = "AXIS=VALUE", value_parser = axis)]
    pub(super) axis: Vec<Chunkings>,
    /// Play each case with every value of every axis.
    #[arg(long, conflicts_with = "axis")]
    pub(super) exhaustive: bool,
    /// Cases at a time; by default what suits the peer.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) jobs: Option<u16>,
    /// Multiply every deadline; from 0.01 to 1000, by default 1.
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub(super) slow: Option<f64>,
    /// How long the peer may take until it accepts connections, in seconds; by default 30.
    #[arg(long, value_name = "SECONDS", value_parser = factor)]
    pub(super) patience: Option<f64>,
    /// Play what is random as in the run with this seed.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Instead of the cases, play what a relay has recorded (`tvm-rpc relay --record FILE`): what was
    /// said to the recorded peer is said again, and the answers have to be the same.
    #[arg(long, value_name = "FILE", conflicts_with_all = ABOUT_CASES)]
    pub(super) replay: Vec<PathBuf>,
    /// Spoil the peer by this defect, to see that the suite finds it; `list` lists them.
    #[arg(long, value_name = "DEFECT")]
    pub(super) broken: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What counts")]
pub(super) struct ListArguments {
    /// A file of failures that are known, with lines of the form ID[.CHECK] [until VERSION]: REASON.
    #[arg(long, value_name = "FILE")]
    pub(super) known_failures: Option<PathBuf>,
    /// Write what fails to such a file.
    #[arg(long, value_name = "FILE")]
    pub(super) write_known_failures: Option<PathBuf>,
    /// A file of cases that fail now and then, with lines of the form ID: REASON. Each is played three
    /// times and does not count.
    #[arg(long, value_name = "FILE")]
    pub(super) flaky: Option<PathBuf>,
    /// Let only the cases of this frozen set count.
    #[arg(long)]
    pub(super) set: Option<String>,
    /// What the peer is called, for the report.
    #[arg(long, value_name = "NAME")]
    pub(super) peer_name: Option<String>,
    /// The version of the peer, for the report and for `until` in lists.
    #[arg(long, value_name = "VERSION")]
    pub(super) peer_version: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What is told")]
pub(super) struct OutputArguments {
    /// A report: text, json, junit, markdown, html, tap or badge. Several may be given, each but one with
    /// a file.
    #[arg(long, value_name = "FORMAT[=FILE]")]
    pub(super) report: Vec<Report>,
    /// The file of the report that has none; standard output by default.
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Write what passes in each case to a file in this folder, which `tvm-rpc decode` explains.
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,
    /// A line for every case, and all that there is to say of each that did not pass.
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Nothing while cases are played.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// What says something of the cases of the suite, and nothing of a recorded conversation.
const ABOUT_CASES: [&str; 13] = [
    "only",
    "skip",
    "level",
    "clause",
    "tag",
    "rerun_failed",
    "list",
    "axis",
    "exhaustive",
    "known_failures",
    "write_known_failures",
    "flaky",
    "set",
];

/// Ways to cut what is sent.
#[derive(Debug, Clone)]
pub(super) struct Chunkings(pub(super) Vec<Chunking>);

fn axis(text: &str) -> Result<Chunkings, String> {
    match text.split_once('=') {
        Some(("chunking", "all")) => Ok(Chunkings(Chunking::ALL.to_vec())),
        Some(("chunking", values)) => values
            .split(',')
            .map(named)
            .collect::<Result<_, _>>()
            .map(Chunkings),
        Some((axis, _)) => Err(format!("there is no axis {axis}; there is chunking")),
        None => Err("an axis is NAME=VALUE".to_owned()),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "no number".to_owned())?;
    match factor_in_range(factor) {
        true => Ok(factor),
        false => Err("it has to be from 0.01 to 1000".to_owned()),
    }
}

/// Less than a hundredth leaves no peer the time to answer.
pub(super) fn factor_in_range(factor: f64) -> bool {
    (0.01..=1000.0).contains(&factor)
}

/// A value by the name that it has in reports.
fn named<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    serde_json::from_value(name.into()).map_err(|error| error.to_string())
}

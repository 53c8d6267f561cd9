//! The commands, one module each.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::args::Command;

pub(crate) mod call;
pub(crate) mod decode;
pub(crate) mod demo;
pub(crate) mod download;
pub(crate) mod ls;
pub(crate) mod query;
pub(crate) mod relay;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod tracker;
pub(crate) mod upload;
pub(crate) mod worker;

/// Runs the command that was given.
pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Upload(arguments) => upload::run(&arguments),
        Command::Download(arguments) => download::run(&arguments),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Rm(arguments) => rm::run(&arguments),
        Command::Tracker(arguments) => tracker::run(&arguments),
        Command::Server(arguments) => server::run(&arguments),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Worker(arguments) => worker::run(&arguments),
    }
}

/// Bytes of a file that is going to be sent.
fn file_bytes(path: &Path) -> Result<u64> {
    let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
    ensure!(metadata.is_file(), "{} is not a file", path.display());
    Ok(metadata.len())
}

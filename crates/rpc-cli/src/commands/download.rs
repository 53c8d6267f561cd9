use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use rpc_session::SessionError;
use rpc_session::blocking::Files;

use crate::args::PeerArgs;
use crate::report::Seconds;
use crate::usage::wrong_usage;
use crate::{open, progress, stdio};

/// Fetch a file from a server
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Its name at the server
    name: String,
    /// Where to write it, `-` for standard output [default: its own name, here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    peer: PeerArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { name, output, peer } = arguments;
    let own_name = || Path::new(name).file_name().map(PathBuf::from);
    let output = output.clone().or_else(own_name).ok_or_else(|| {
        wrong_usage(format!(
            "{name:?} has no name to write it under: --output FILE"
        ))
    })?;
    if output.is_dir() {
        return Err(wrong_usage(format!("{} is a directory", output.display())));
    }

    let session = open::open(peer)?;
    if output == Path::new("-") {
        return to_stdout(&session.files(), name);
    }
    let start = Instant::now();
    let bytes = progress::with_bar(name, |progress| {
        session.files().download_file(name, &output, progress)
    })?;
    let took = Seconds(start.elapsed().as_secs_f64());
    let output = output.display();
    stdio::print(&format!(
        "{output}: {bytes} bytes from {} in {took}\n",
        session.peer()
    ))
}

fn to_stdout(files: &Files, name: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match files.download_to(name, &mut stdout, &mut |_, _| {}) {
        // Not a failure of the server's, see `stdio::is_broken_pipe`.
        Err(SessionError::File { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
            Err(io::Error::from(ErrorKind::BrokenPipe).into())
        }
        result => {
            result?;
            Ok(stdout.flush()?)
        }
    }
}

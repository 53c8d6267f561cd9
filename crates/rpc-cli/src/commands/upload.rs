use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;

use crate::args::PeerArgs;
use crate::report::Seconds;
use crate::usage::wrong_usage;
use crate::{open, progress, stdio};

/// Send a file to a server
///
/// A server forgets its files when the session ends, and with it this command: ours and TVM's own. TVM's
/// Python server keeps those with an absolute NAME.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file
    file: PathBuf,
    /// Its name at the server [default: its own]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { file, name, peer } = arguments;
    let own_name = || file.file_name()?.to_str().map(str::to_owned);
    let name = name.clone().or_else(own_name);
    let name = name.ok_or_else(|| {
        wrong_usage(format!(
            "{} has no name to upload it under: --as NAME",
            file.display()
        ))
    })?;
    // Before a device is taken.
    let bytes = super::file_bytes(file)?;

    let session = open::open(peer)?;
    let start = Instant::now();
    progress::with_bar(&name, |progress| {
        session.files().upload_file_as(file, &name, progress)
    })?;
    let took = Seconds(start.elapsed().as_secs_f64());
    stdio::print(&format!(
        "{name}: {bytes} bytes to {} in {took}\n",
        session.peer()
    ))
}

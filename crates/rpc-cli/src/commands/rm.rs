use anyhow::Result;

use crate::args::PeerArgs;
use crate::open;

/// Remove a file from a server; that there is none is no error
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Its name at the server
    name: String,
    #[command(flatten)]
    peer: PeerArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    open::open(&arguments.peer)?
        .files()
        .remove(&arguments.name)?;
    Ok(())
}

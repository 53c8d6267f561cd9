use anyhow::Result;

use crate::args::PeerArgs;
use crate::{open, stdio};

/// List the files of a server, one a line
///
/// TVM's own Python server cannot do that.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The directory at the server [default: the session's work directory]
    #[arg(default_value = "", hide_default_value = true)]
    dir: String,
    #[command(flatten)]
    peer: PeerArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let names = open::open(&arguments.peer)?.files().list(&arguments.dir)?;
    let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
    stdio::print(&lines)
}

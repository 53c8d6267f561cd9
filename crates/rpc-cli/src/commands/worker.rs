use anyhow::Result;
use rpc_server::worker;
use rpc_session::ServeOptions;

use crate::served::{self, ServedArgs};

/// Serve one session, for a server that starts this ahead of time
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    served: ServedArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let make = |session: &_| served::constructors(&arguments.served, session);
    Ok(worker::run(&ServeOptions::default(), make)?)
}

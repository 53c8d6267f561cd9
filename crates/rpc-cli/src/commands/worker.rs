use anyhow::{Context, Result};
use rpc_server::worker;
use rpc_session::ServeOptions;

use crate::served::{Offer, RuntimeArgs, ServedArgs};

/// Serve one session, for a server that starts this ahead of time
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    served: ServedArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    worker::limit_memory(arguments.served.process_memory())
        .context("cannot limit the memory of this process")?;
    let offer = Offer::new(&arguments.served, &arguments.runtime);
    let make = |session: &_| offer.constructors(session);
    Ok(worker::run(&ServeOptions::default(), make)?)
}

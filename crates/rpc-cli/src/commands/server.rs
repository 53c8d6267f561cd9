use std::path::PathBuf;

use anyhow::Result;
use rpc_server::{Isolation, ServerBuilder};
use rpc_transport::Address;

use crate::served::{self, RuntimeArgs, ServedArgs};
use crate::service::{self, ListenArgs};

/// Run a server: it lends this machine to one client after the other
///
/// With --tracker the machine is offered there under its key, and clients come by way of the tracker;
/// without, they name the key to the server itself. Each session has a process and a folder of its
/// own. Clients can have it connect to other servers and start programs here (rpc.Connect,
/// rpc.PopenSession): keep it among those whom you trust.
///
/// It prints one line, `listening on HOST:PORT`, and logs to standard error. SIGINT and SIGTERM
/// end it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    listen: ListenArgs,
    /// The port; the first free one from here up to --port-end is taken, 0 is any
    #[arg(long, value_name = "PORT", default_value = "9090")]
    port: u16,
    /// The tracker to offer this machine at
    #[arg(long, value_name = "HOST:PORT")]
    tracker: Option<Address>,
    /// What kind of device this is
    #[arg(
        long,
        value_name = "KEY",
        default_value = "",
        hide_default_value = true
    )]
    key: String,
    /// The host that the tracker sends clients to [default: as the tracker sees this machine]
    #[arg(long, value_name = "HOST", requires = "tracker")]
    custom_addr: Option<String>,
    /// Sessions at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    slots: u16,
    /// The folder in which sessions have theirs [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    served: ServedArgs,
}

impl Arguments {
    pub(crate) fn silent(&self) -> bool {
        self.listen.silent
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let ports = arguments.listen.ports(arguments.port);
    let runtime = arguments.runtime.resolve()?;
    let isolation = Isolation::Process(served::worker(&arguments.served, &runtime)?);
    let mut builder =
        ServerBuilder::new(&arguments.key, isolation).with_slots(arguments.slots.into());
    if let Some(tracker) = &arguments.tracker {
        builder = builder.with_tracker(tracker.clone());
    }
    if let Some(host) = &arguments.custom_addr {
        builder = builder.with_custom_addr(host);
    }
    if let Some(folder) = &arguments.work_dir {
        builder = builder.with_work_dir(folder);
    }
    service::runtime()?.block_on(async {
        let server = builder.bind(&arguments.listen.host, ports)?;
        service::run(server.local_addr(), server.serve()).await
    })
}

use anyhow::Result;
use rpc_tracker::{Tracker, TrackerOptions};

use crate::service::{self, ListenArgs};

/// Run a tracker: servers offer their devices to it, clients wait for one
///
/// It prints one line, `listening on HOST:PORT`, and logs to standard error. SIGINT and SIGTERM
/// end it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    listen: ListenArgs,
    /// The port; the first free one from here up to --port-end is taken, 0 is any
    #[arg(long, value_name = "PORT", default_value = "9190")]
    port: u16,
    /// What a client has to know to end the tracker by a request; without it none can
    #[arg(
        long,
        value_name = "TEXT",
        env = "TVM_TRACKER_STOP_KEY",
        hide_env_values = true
    )]
    stop_key: Option<String>,
}

impl Arguments {
    pub(crate) fn silent(&self) -> bool {
        self.listen.silent
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let ports = arguments.listen.ports(arguments.port);
    let mut options = TrackerOptions::default();
    if let Some(key) = &arguments.stop_key {
        options = options.with_stop_key(key);
    }
    service::runtime()?.block_on(async {
        let tracker = Tracker::bind(&arguments.listen.host, ports, options).await?;
        service::run(tracker.local_addr(), tracker.serve()).await
    })
}

use std::thread;
use std::time::Duration;

use anyhow::Result;
use rpc_proto::tracker::Summary;
use rpc_transport::Address;
use serde::Serialize;

use crate::args::{PatienceArgs, seconds};
use crate::stdio;
use crate::tracker::{self, Environment};

/// Show what a tracker has: its servers, and the queue of each kind of device
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The tracker, in one word
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["host", "port"])]
    tracker: Option<Address>,
    /// The tracker's host [env: TVM_TRACKER_HOST] [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// The tracker's port [env: TVM_TRACKER_PORT] [default: 9190]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Print a JSON document; with --watch, one a line
    #[arg(long)]
    json: bool,
    /// Print it again and again, until interrupted
    #[arg(long)]
    watch: bool,
    /// From one time to the next with --watch, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "2", requires = "watch")]
    interval: Duration,
    #[command(flatten)]
    patience: PatienceArgs,
}

/// The tracker's own form of a summary, and which tracker it is.
#[derive(Serialize)]
struct Document<'a> {
    tracker: String,
    #[serde(flatten)]
    summary: &'a Summary,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let host = arguments.host.as_deref().filter(|host| !host.is_empty());
    let address = match &arguments.tracker {
        Some(address) => address.clone(),
        None => Environment::read().address_or(host, arguments.port)?,
    };
    let tracker = tracker::reach(&address, arguments.patience.connect_timeout)?;
    loop {
        show(&address, &tracker.summary()?, arguments)?;
        if !arguments.watch {
            return Ok(());
        }
        thread::sleep(arguments.interval);
    }
}

fn show(address: &Address, summary: &Summary, arguments: &Arguments) -> Result<()> {
    if arguments.json {
        let document = Document {
            tracker: address.to_string(),
            summary,
        };
        return match arguments.watch {
            true => stdio::print_json_line(&document),
            false => stdio::print_json(&document),
        };
    }
    if arguments.watch {
        stdio::clear()?;
    }
    // As the reference's tool prints it.
    stdio::print(&format!(
        "Tracker address {address}\n\n{}\n",
        summary.text_summary()
    ))
}

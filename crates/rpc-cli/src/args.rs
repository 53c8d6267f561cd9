//! The options that commands share.

use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use rpc_proto::tracker::Priority;
use rpc_transport::{Address, ServerAddress};

use crate::commands::{
    call, decode, demo, download, ls, query, relay, rm, run, server, tracker, upload, worker,
};

/// Borrow a device through Apache TVM's RPC, and run compiled modules on it
#[derive(Debug, Parser)]
#[command(name = "tvm-rpc", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Log what happens to standard error; TVM_RPC_LOG takes a filter like `rpc_session=trace`
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Query(query::Arguments),
    Run(run::Arguments),
    Call(call::Arguments),
    Upload(upload::Arguments),
    Download(download::Arguments),
    Ls(ls::Arguments),
    Rm(rm::Arguments),
    Tracker(tracker::Arguments),
    Server(server::Arguments),
    Relay(relay::Arguments),
    Decode(decode::Arguments),
    #[command(hide = true)]
    Worker(worker::Arguments),
}

impl Command {
    /// What is logged if the user does not say: of services what happens, of the others nothing.
    pub(crate) fn usual_log(&self) -> Option<&'static str> {
        match self {
            Self::Tracker(arguments) => Some(service_log(arguments.silent())),
            Self::Server(arguments) => Some(service_log(arguments.silent())),
            Self::Relay(arguments) => Some(service_log(arguments.silent())),
            _ => None,
        }
    }
}

fn service_log(silent: bool) -> &'static str {
    if silent { "warn" } else { "info" }
}

/// Whose device, and how long to wait for it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Device")]
pub(crate) struct PeerArgs {
    /// The tracker to borrow a device from [env: TVM_TRACKER_HOST, TVM_TRACKER_PORT]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tracker: Option<Address>,
    /// A server to connect to directly, or ws://HOST:PORT/PATH for one that is reached by a WebSocket
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "tracker")]
    pub(crate) server: Option<ServerAddress>,
    /// Kind of device to borrow; with --server, the key that the server expects
    #[arg(
        long,
        value_name = "KEY",
        env = "TVM_TRACKER_KEY",
        hide_env_values = true,
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) key: String,
    /// Who gets a free device first: the highest number [default: 1]
    #[arg(
        long,
        value_name = "N",
        value_parser = priority,
        allow_negative_numbers = true,
        conflicts_with = "server"
    )]
    pub(crate) priority: Option<Priority>,
    /// How long the session may last, in seconds, 0 for ever
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "0")]
    pub(crate) session_timeout: Duration,
    /// How long to wait for a free device, in seconds [default: for ever; with --server 10]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) wait_timeout: Option<Duration>,
    /// How long a single answer may take, in seconds, 0 for ever
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "600")]
    pub(crate) reply_timeout: Duration,
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PatienceArgs {
    /// How long to keep trying while a tracker refuses connections, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "60")]
    pub(crate) connect_timeout: Duration,
}

/// A number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok();
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    duration.ok_or_else(|| "expected a number of seconds, for example 30 or 0.5".to_owned())
}

fn priority(text: &str) -> Result<Priority, String> {
    let priority = text.parse().ok().and_then(Priority::new);
    priority.ok_or_else(|| "expected a finite number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_seconds() {
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["", "-1", "nan", "inf", "1e30", "5s"] {
            assert!(seconds(text).is_err(), "{text:?} was read");
        }
    }
}

//! The command `tvm-rpc-conformance`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use rpc_conformance::{Chunking, Options, Peer, RunError, Selection, Target};

/// Test a tracker, a server or a client against the specification of the protocol.
///
/// Exit status: 0 as required, 1 a failure, 2 wrong usage or nothing selected, 3 the peer cannot be
/// reached, 4 the suite could not do its part.
#[derive(Parser)]
#[command(name = "tvm-rpc-conformance")]
struct Arguments {
    #[command(subcommand)]
    role: RoleArguments,
}

#[derive(Subcommand)]
enum RoleArguments {
    /// A tracker; the suite plays servers and clients.
    Tracker {
        #[command(flatten)]
        peer: PeerArguments,
        #[command(flatten)]
        run: RunArguments,
    },
    /// A server without a tracker; the suite plays clients.
    Server {
        #[command(flatten)]
        peer: PeerArguments,
        /// The key of the server, which its clients name as match key.
        #[arg(long, default_value = "conformance")]
        key: String,
        #[command(flatten)]
        run: RunArguments,
    },
    /// A client; the suite plays the tracker and the server.
    Client {
        /// The command that runs the script of the client, with {tracker} and {key} in it.
        #[arg(long, value_name = "COMMAND")]
        cmd: String,
        #[command(flatten)]
        run: RunArguments,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct PeerArguments {
    /// Where it listens.
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    /// The command that starts it, with {host}, {port} and {key} in it.
    #[arg(long, value_name = "COMMAND")]
    cmd: Option<String>,
}

#[derive(Args)]
struct RunArguments {
    /// Only these cases; * stands for any characters.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Not these cases.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    skip: Vec<String>,
    /// List the cases instead of playing them.
    #[arg(long)]
    list: bool,
    /// Play each case with every way to cut what is sent.
    #[arg(long)]
    exhaustive: bool,
    /// Cases at a time.
    #[arg(long)]
    jobs: Option<usize>,
    /// Multiply every deadline.
    #[arg(long, default_value_t = 1.0)]
    slow: f64,
    /// Play what is random as in the run with this seed.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let (target, arguments) = match Arguments::parse().role {
        RoleArguments::Tracker { peer, run } => (Target::Tracker(peer.into()), run),
        RoleArguments::Server { peer, key, run } => (
            Target::Server {
                peer: peer.into(),
                key,
            },
            run,
        ),
        RoleArguments::Client { cmd, run } => (Target::Client { command: cmd }, run),
    };
    let selection = Selection::all()
        .with_only(arguments.only)
        .with_skip(arguments.skip);
    if arguments.list {
        for case in selection.of(target.role()) {
            println!(
                "{:<16} {:<6} {:<8} {}",
                case.id, case.level, case.clause, case.what
            );
        }
        return ExitCode::SUCCESS;
    }
    let mut options = Options::default()
        .with_selection(selection)
        .with_slow(arguments.slow);
    if arguments.exhaustive {
        options = options.with_chunkings(Chunking::ALL);
    }
    if let Some(jobs) = arguments.jobs {
        options = options.with_jobs(jobs);
    }
    if let Some(seed) = arguments.seed {
        options = options.with_seed(seed);
    }
    match rpc_conformance::run(&target, &options, &|_, _| ()) {
        Ok(run) => {
            print!("{}", rpc_conformance::report::text(&run));
            ExitCode::from(run.exit_status())
        }
        Err(error) => {
            let status = if matches!(error, RunError::Peer { .. }) {
                3
            } else {
                2
            };
            eprintln!("error: {:#}", anyhow::Error::from(error));
            ExitCode::from(status)
        }
    }
}

impl From<PeerArguments> for Peer {
    fn from(arguments: PeerArguments) -> Self {
        match (arguments.addr, arguments.cmd) {
            (Some(addr), _) => Self::Running(addr),
            (None, command) => Self::Command(command.unwrap_or_default()),
        }
    }
}

//! What sessions of our server offer to clients.

use anyhow::{Context, Result};
use clap::Args;
use rpc_server::{SessionContext, WorkerCommand};
use rpc_session::blocking::{ConnectNext, Constructors, LocalSessions, StartProgram};
use rpc_session::{Exception, Functions, LocalOptions, SessionOptions, WorkDir, test_functions};

/// What a server and its workers have to agree on.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServedArgs {
    /// Add the functions that tests of clients call: rpc.test.addone, testing.echo and others
    #[arg(long)]
    pub(crate) test_functions: bool,
    /// Memory that a session may take, in MiB
    #[arg(long, value_name = "MIB", default_value = "8192")]
    pub(crate) memory: u32,
}

impl ServedArgs {
    /// What the demo calls.
    pub(crate) fn demo() -> Self {
        Self {
            test_functions: true,
            memory: 1024,
        }
    }
}

/// How a worker for such sessions is started: as this program, with the same options.
pub(crate) fn worker(served: &ServedArgs) -> Result<WorkerCommand> {
    let program = WorkerCommand::this_program().context("cannot find this program")?;
    let mut command = program
        .arg("worker")
        .arg("--memory")
        .arg(served.memory.to_string());
    if served.test_functions {
        command = command.arg("--test-functions");
    }
    Ok(command)
}

/// The constructors of one session.
pub(crate) fn constructors(
    served: &ServedArgs,
    session: &SessionContext,
) -> Result<Constructors, Exception> {
    let functions = match served.test_functions {
        true => test_functions(),
        false => Functions::new(),
    };
    let files = WorkDir::new(&session.work_dir)?;
    let memory = u64::from(served.memory) << 20;
    let options = LocalOptions::default().with_memory(memory);
    let hop = SessionOptions::default();
    Ok(
        Constructors::new(LocalSessions::new(functions, Some(files), options))
            .with(ConnectNext::NAME, ConnectNext::new(hop.clone()))
            .with(StartProgram::NAME, StartProgram::new(hop)),
    )
}

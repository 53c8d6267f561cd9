//! What sessions of our server offer to clients.

use std::env;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use rpc_runtime::{NotFound, Place, Runtime, TvmBackend, find};
use rpc_server::{SessionContext, WorkerCommand};
use rpc_session::blocking::{ConnectNext, Constructors, LocalSessions, StartProgram};
use rpc_session::{Exception, Functions, LocalOptions, SessionOptions, WorkDir, test_functions};
use tracing::info;

/// What a server and its workers have to agree on.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServedArgs {
    /// Add the functions that tests of clients call: rpc.test.addone, testing.echo and others
    #[arg(long)]
    pub(crate) test_functions: bool,
    /// Memory that a session may take, in MiB
    #[arg(long, value_name = "MIB", default_value = "8192")]
    pub(crate) memory: u32,
    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
    /// Libraries whose functions are offered, loaded into TVM's runtime
    #[arg(long, value_name = "A.so:B.so", value_parser = libraries)]
    pub(crate) load_library: Option<Libraries>,
}

/// Paths in one argument.
#[derive(Debug, Clone)]
pub(crate) struct Libraries(Vec<PathBuf>);

fn libraries(text: &str) -> Result<Libraries, std::io::Error> {
    // Workers have another current folder.
    let paths = env::split_paths(text).map(std::path::absolute);
    paths.collect::<Result<_, _>>().map(Libraries)
}

/// Where TVM's runtime comes from.
#[derive(Debug, Clone, Args)]
pub(crate) struct RuntimeArgs {
    /// TVM's runtime, which runs compiled modules: the folder of its libraries, auto (that in
    /// TVM_RPC_RUNTIME, the library path or the packages of python3) or none
    #[arg(long, value_name = "auto|none|DIR", default_value = "auto")]
    runtime: RuntimeArg,
}

#[derive(Debug, Clone)]
enum RuntimeArg {
    Auto,
    None,
    Folder(PathBuf),
}

impl FromStr for RuntimeArg {
    type Err = std::io::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            folder => Self::Folder(std::path::absolute(folder)?),
        })
    }
}

impl RuntimeArgs {
    /// The folder of the libraries, if there is a runtime.
    ///
    /// # Errors
    /// A folder was named that has none.
    fn find(&self) -> Result<Option<PathBuf>, NotFound> {
        match &self.runtime {
            RuntimeArg::None => Ok(None),
            RuntimeArg::Folder(folder) => {
                find(&Place::Folder(folder.clone())).map(|found| Some(found.folder))
            }
            RuntimeArg::Auto => match find(&Place::Auto) {
                Ok(found) => Ok(Some(found.folder)),
                Err(error) => {
                    info!("no TVM runtime, so no compiled modules: {error}");
                    Ok(None)
                }
            },
        }
    }
}

impl ServedArgs {
    /// What the demo calls.
    pub(crate) fn demo(runtime: RuntimeArgs) -> Self {
        Self {
            test_functions: true,
            memory: 1024,
            runtime,
            load_library: None,
        }
    }
}

/// How a worker for such sessions is started: as this program, with the same options.
pub(crate) fn worker(served: &ServedArgs) -> Result<WorkerCommand> {
    let program = WorkerCommand::this_program().context("cannot find this program")?;
    let mut command = program
        .arg("worker")
        .arg("--memory")
        .arg(served.memory.to_string())
        .arg("--runtime");
    // Workers do not search again.
    let folder = served.runtime.find()?;
    command = match (folder, &served.load_library) {
        (None, Some(_)) => bail!("--load-library needs TVM's runtime, and there is none"),
        (None, None) => command.arg("none"),
        (Some(folder), None) => command.arg(folder),
        (Some(folder), Some(Libraries(paths))) => {
            let paths = env::join_paths(paths).context("--load-library")?;
            command.arg(folder).arg("--load-library").arg(paths)
        }
    };
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
    let backend = backend(served, &functions)?;
    let mut sessions = LocalSessions::new(functions, Some(files), options);
    if let Some(backend) = backend {
        sessions = sessions.with_backend(Arc::new(backend));
    }
    Ok(Constructors::new(sessions)
        .with(ConnectNext::NAME, ConnectNext::new(hop.clone()))
        .with(StartProgram::NAME, StartProgram::new(hop)))
}

/// The runtime, if there is one, with all that is to be in it.
fn backend(served: &ServedArgs, functions: &Functions) -> Result<Option<TvmBackend>, Exception> {
    let Some(folder) = served.runtime.find()? else {
        return Ok(None);
    };
    let runtime = Runtime::load(&Place::Folder(folder))?;
    if let Some(Libraries(paths)) = &served.load_library {
        for path in paths {
            runtime.load_library(path)?;
        }
    }
    let backend = TvmBackend::new(runtime)?;
    backend.register(functions)?;
    Ok(Some(backend))
}

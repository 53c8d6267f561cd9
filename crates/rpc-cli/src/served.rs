//! What sessions of our server offer to clients.

use std::env;
use std::fmt;
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

/// What a server and its workers have to agree on, besides the runtime.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServedArgs {
    /// Add the functions that tests of clients call: rpc.test.addone, testing.echo and others
    #[arg(long)]
    pub(crate) test_functions: bool,
    /// Memory that the tensors of a session may take, in MiB; its process may take 1 GiB more
    #[arg(long, value_name = "MIB", default_value = "8192")]
    pub(crate) memory: u32,
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

/// Where to look for it, unless there is to be none.
#[derive(Debug, Clone)]
struct RuntimeArg(Option<Place>);

impl FromStr for RuntimeArg {
    type Err = std::io::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(match text {
            "auto" => Some(Place::Auto),
            "none" => None,
            folder => Some(Place::Folder(std::path::absolute(folder)?)),
        }))
    }
}

impl RuntimeArgs {
    /// Looks for the runtime.
    ///
    /// # Errors
    /// A folder was named that has none.
    pub(crate) fn resolve(&self) -> Result<FoundRuntime, NotFound> {
        let Some(place) = &self.runtime.0 else {
            return Ok(FoundRuntime(None));
        };
        match find(place) {
            Ok(found) => Ok(FoundRuntime(Some(found.folder))),
            Err(error) if *place == Place::Auto => {
                info!("no TVM runtime, so no compiled modules: {error}");
                Ok(FoundRuntime(None))
            }
            Err(error) => Err(error),
        }
    }

    /// Looks for the runtime, without which something cannot be done.
    pub(crate) fn require(&self, what_for: &str) -> Result<FoundRuntime> {
        let Some(place) = &self.runtime.0 else {
            bail!("{what_for} needs TVM's runtime, and --runtime is none");
        };
        let found = find(place).with_context(|| format!("{what_for} needs TVM's runtime"))?;
        Ok(FoundRuntime(Some(found.folder)))
    }
}

/// What was found: the folder of the libraries, or that there is no runtime. Looking for it may start a
/// program, so it is done once.
#[derive(Debug, Clone)]
pub(crate) struct FoundRuntime(Option<PathBuf>);

impl fmt::Display for FoundRuntime {
    /// What runs the functions of sessions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(folder) => write!(f, "the TVM runtime in {}", folder.display()),
            None => write!(f, "functions in Rust, without a TVM runtime"),
        }
    }
}

impl ServedArgs {
    /// Bytes that the process of a session may take.
    pub(crate) fn process_memory(&self) -> u64 {
        /// For what is not a tensor: the stacks of threads, and what functions need meanwhile.
        const MORE: u64 = 1 << 30;
        self.nbytes() + MORE
    }

    fn nbytes(&self) -> u64 {
        u64::from(self.memory) << 20
    }

    /// What the demo calls.
    pub(crate) fn demo() -> Self {
        Self {
            test_functions: true,
            memory: 1024,
            load_library: None,
        }
    }
}

/// How a worker for such sessions is started: as this program, with the same options.
pub(crate) fn worker(served: &ServedArgs, runtime: &FoundRuntime) -> Result<WorkerCommand> {
    let program = WorkerCommand::this_program().context("cannot find this program")?;
    let mut command = program
        .arg("worker")
        .arg("--memory")
        .arg(served.memory.to_string())
        .arg("--runtime");
    // Workers do not search again.
    command = match (&runtime.0, &served.load_library) {
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

/// What the session of a worker has, made ready before there is a client who waits for it.
pub(crate) struct Offer {
    functions: Functions,
    /// What cannot be made ready is for the client to know.
    backend: Result<Option<Arc<TvmBackend>>, Exception>,
    options: LocalOptions,
}

impl Offer {
    pub(crate) fn new(served: &ServedArgs, runtime: &RuntimeArgs) -> Self {
        let functions = match served.test_functions {
            true => test_functions(),
            false => Functions::new(),
        };
        Self {
            backend: backend(served, runtime, &functions).map(|backend| backend.map(Arc::new)),
            functions,
            options: LocalOptions::default().with_memory(served.nbytes()),
        }
    }

    /// The constructors of the session.
    pub(crate) fn constructors(&self, session: &SessionContext) -> Result<Constructors, Exception> {
        let files = WorkDir::new(&session.work_dir)?;
        let functions = self.functions.clone();
        let mut sessions = LocalSessions::new(functions, Some(files), self.options.clone());
        if let Some(backend) = self.backend.clone()? {
            sessions = sessions.with_backend(backend);
        }
        let hop = SessionOptions::default();
        Ok(Constructors::new(sessions)
            .with(ConnectNext::NAME, ConnectNext::new(hop.clone()))
            .with(StartProgram::NAME, StartProgram::new(hop)))
    }
}

/// The runtime, if there is one, with all that is to be in it.
fn backend(
    served: &ServedArgs,
    runtime: &RuntimeArgs,
    functions: &Functions,
) -> Result<Option<TvmBackend>, Exception> {
    let FoundRuntime(Some(folder)) = runtime.resolve()? else {
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

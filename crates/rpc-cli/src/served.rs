//! What sessions of our server offer to clients.

use std::env;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
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
    /// Memory that the tensors of a session may take, in MiB; its process may take 1 GiB more
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
    /// What runs the functions of sessions, in words.
    pub(crate) fn backend(&self) -> Result<String, NotFound> {
        Ok(match self.find()? {
            Some(folder) => format!("the TVM runtime in {}", folder.display()),
            None => "functions in Rust, without a TVM runtime".to_owned(),
        })
    }

    /// There is a runtime.
    pub(crate) fn require(&self, what_for: &str) -> Result<()> {
        if let RuntimeArg::Auto = self.runtime {
            find(&Place::Auto).with_context(|| format!("{what_for} needs TVM's runtime"))?;
        }
        let is_there = self.find()?.is_some();
        ensure!(
            is_there,
            "{what_for} needs TVM's runtime, and --runtime is none"
        );
        Ok(())
    }

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

/// What the session of a worker has, made ready before there is a client who waits for it.
pub(crate) struct Offer {
    functions: Functions,
    /// What cannot be made ready is for the client to know.
    backend: Result<Option<Arc<TvmBackend>>, Exception>,
    options: LocalOptions,
}

impl Offer {
    pub(crate) fn new(served: &ServedArgs) -> Self {
        let functions = match served.test_functions {
            true => test_functions(),
            false => Functions::new(),
        };
        Self {
            backend: backend(served, &functions).map(|backend| backend.map(Arc::new)),
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

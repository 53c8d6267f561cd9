//! Sessions in processes of their own.
//!
//! A server keeps workers ready: processes that wait for a session. When a client was let in, its
//! connection is handed to one of them, which serves that session and ends. So it costs a client no time
//! that a process is started, and the server none that one fails.
//!
//! The program of a worker calls [`run`] and nothing else before it. It may be the same program as the
//! server's, told apart by an argument:
//!
//! ```no_run
//! use rpc_server::{Isolation, ServerBuilder, WorkerCommand, worker};
//! use rpc_session::blocking::{Constructors, LocalSessions};
//! use rpc_session::{LocalOptions, ServeOptions, WorkDir, test_functions};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! if std::env::args().nth(1).as_deref() == Some("worker") {
//!     let ended = worker::run(&ServeOptions::default(), |session| {
//!         let files = WorkDir::new(&session.work_dir)?;
//!         let local = LocalSessions::new(test_functions(), Some(files), LocalOptions::default());
//!         Ok(Constructors::new(local))
//!     });
//!     return Ok(ended?);
//! }
//! let command = WorkerCommand::this_program()?.arg("worker");
//! let server = ServerBuilder::new("board", Isolation::Process(command)).bind("127.0.0.1", 9090..=9199)?;
//! server.serve().await;
//! # Ok(())
//! # }
//! ```

mod child;
mod handover;
mod workers;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::{env, io};

pub use child::{WorkerError, run};
pub(crate) use workers::Workers;

/// How a worker process is started.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    program: PathBuf,
    args: Vec<OsString>,
}

impl WorkerCommand {
    /// A program that calls [`run`].
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
        }
    }

    /// The program of this process.
    ///
    /// # Errors
    /// The system does not say which that is.
    pub fn this_program() -> io::Result<Self> {
        Ok(Self::new(env::current_exe()?))
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }
}

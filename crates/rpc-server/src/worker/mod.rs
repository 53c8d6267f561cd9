//! Sessions in processes of their own.
//!
//! A server keeps workers ready: processes that wait for a session. When a client was let in, its
//! connection is handed to one of them, which serves that session and ends. So it costs a client no time
//! that a process is started, and the server none that one fails.
//!
//! The program of a worker calls [`run`]. It may be the same program as the server's, told apart by an
//! argument. What it does before that (loading libraries, say) is done ahead of time:
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
//!
//! # How a worker ends
//!
//! | when | who ends it |
//! | --- | --- |
//! | the client goes | itself |
//! | the session's time is up | itself, whatever its functions do; two seconds later, the server |
//! | it crashes | nobody has to; the server tells the client how, unless that would come in the middle of an answer |
//! | it takes more memory than [`limit_memory`] allows | itself, as if it had crashed |
//! | the server ends, also without a farewell | itself, and it removes its work directory |
//!
//! Processes that a session started, and that are still in its process group, end with it.

mod child;
mod command;
mod handover;
mod process;
mod workers;

pub use child::{WorkerError, limit_memory, run};
pub use command::WorkerCommand;
pub(crate) use process::Worker;
pub(crate) use workers::Workers;

//! The server of Apache TVM's RPC: lends its device to one client after the other, by itself or through
//! a tracker.
//!
//! | module or type | what it is for |
//! | --- | --- |
//! | [`ServerBuilder`], [`Server`], [`ServerHandle`] | the service, on tokio |
//! | [`Isolation`] | where a session runs: on a thread, or in a worker process of its own |
//! | [`worker`] | what the program of a worker process calls (Unix) |
//!
//! ```
//! use rpc_server::{Isolation, ServerBuilder};
//! use rpc_session::blocking::{Constructors, LocalSessions, RemoteSession};
//! use rpc_session::{LocalOptions, SessionOptions, WorkDir, args, test_functions};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let isolation = Isolation::in_process(|session| {
//!     let files = WorkDir::new(&session.work_dir)?;
//!     let local = LocalSessions::new(test_functions(), Some(files), LocalOptions::default());
//!     Ok(Constructors::new(local))
//! });
//! // Port 0 lets the system choose; the usual ones are 9090 to 9199.
//! let server = ServerBuilder::new("board", isolation).bind("127.0.0.1", 0..=0)?;
//! let address = server.local_addr().into();
//! tokio::spawn(server.serve());
//!
//! let two = tokio::task::spawn_blocking(move || {
//!     let session = RemoteSession::connect(&address, "board", &SessionOptions::default())?;
//!     session.function("rpc.test.addone")?.call(args![1])?.try_into()
//! });
//! let two: Result<i64, rpc_session::SessionError> = two.await?;
//! assert_eq!(two?, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What a client can do to the others
//!
//! Nothing. Each connection is a task of its own with a time limit for its handshake; each session has a
//! work directory of its own, which is removed after it, and with [`Isolation::Process`] a process of its
//! own, which is ended when its time is up, whatever it is doing.
#![forbid(unsafe_code)]

mod admission;
mod builder;
mod error;
mod in_process;
mod offers;
mod places;
mod registration;
mod server;
mod session;
#[cfg(unix)]
pub mod worker;

pub use builder::ServerBuilder;
pub use error::ServerError;
pub use server::{Server, ServerHandle};
pub use session::{Isolation, SessionContext};
#[cfg(unix)]
pub use worker::WorkerCommand;

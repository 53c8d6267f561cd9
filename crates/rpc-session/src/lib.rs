//! Remote sessions of Apache TVM's RPC: functions, modules, tensors, files and timing on a device that
//! belongs to somebody else's server.
//!
//! There are two twins with the same names: [`blocking`] (feature `sync`, plain `std::net`) and
//! [`asynchronous`] (feature `async`, tokio). What they do is written once, in `src/dual/`; they differ
//! in the connection beneath.
//!
//! | name | what it is |
//! | --- | --- |
//! | `RemoteSession` | a session: connect to a server, or request a device from a tracker |
//! | `Connector` | what a tracker client needs to make sessions, also for `request_and_run` |
//! | `Function`, `Module`, `Object` | what lives on the server and is freed there when dropped here |
//! | `RemoteDevice`, `Tensor`, `Stream` | a device of the server, memory on it, its streams of work |
//! | `Files` | the session's work directory on the server |
//! | `TimeEvaluator` | times a function where it runs |
//! | `Argument`, `Output` | what goes into a call ([`args!`] makes it) and what comes out |
//! | `LocalSession`, [`Functions`], [`LocalTensor`], [`WorkDir`] | the other end: functions in Rust, memory and files, for clients |
//!
//! ```no_run
//! # #[cfg(feature = "sync")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rpc_session::{SessionOptions, TimeEvaluatorOptions, args, blocking::RemoteSession};
//!
//! let options = SessionOptions::default();
//! let session = RemoteSession::connect(&"127.0.0.1:9090".parse()?, "rasp4b", &options)?;
//!
//! // A function of the server: text in, text out.
//! let joined = session.function("rpc.test.strcat")?.call(args!["abc", 11])?;
//! assert_eq!(String::try_from(joined)?, "abc:11");
//!
//! // A module of ours, timed on the server's processor.
//! session.files().upload("vadd.so", &std::fs::read("vadd.so")?)?;
//! let module = session.load_module("vadd.so")?;
//! let cpu = session.cpu(0);
//! let ones = cpu.tensor(&[1024], &[1.0_f32; 1024])?;
//! let sum = cpu.empty(&[1024], ones.dtype())?;
//! let options = TimeEvaluatorOptions::default().with_repeat(3);
//! let timing = module.time_evaluator("vadd", cpu.device(), &options)?.run(args![&ones, &ones, &sum])?;
//! println!("{timing}");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sync"))]
//! # fn main() {}
//! ```
//!
//! The async twin reads the same, with `.await`, and many calls can be under way at once:
//!
//! ```no_run
//! # #[cfg(feature = "async")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use rpc_session::{SessionOptions, args, asynchronous::RemoteSession};
//!
//! let options = SessionOptions::default();
//! let session = RemoteSession::connect(&"127.0.0.1:9090".parse()?, "rasp4b", &options).await?;
//! let addone = session.function("rpc.test.addone").await?;
//! let both = tokio::try_join!(
//!     async { addone.call(args![0]).await?.try_into() },
//!     async { addone.call(args![1]).await?.try_into() },
//! )?;
//! assert_eq!(both, (1_i64, 2_i64));
//! # Ok(())
//! # }
//! ```
//!
//! # When something goes wrong
//!
//! [`SessionError`] tells apart what a caller has to tell apart: the server's own failures
//! ([`SessionError::remote`]; the session goes on), a session that is over
//! ([`SessionError::is_fatal`]), and among those the end of its time
//! ([`SessionError::is_session_timeout`]).
#![forbid(unsafe_code)]
// The files of `dual` belong to both twins.
#![allow(clippy::duplicate_mod)]
// What the twins share has no user without them.
#![cfg_attr(not(any(feature = "sync", feature = "async")), allow(dead_code))]

mod answer;
#[cfg(feature = "async")]
pub mod asynchronous;
#[cfg(feature = "sync")]
pub mod blocking;
mod constructor;
mod element;
mod error;
mod freed;
mod local;
pub mod names;
mod options;
#[cfg(all(unix, any(feature = "sync", feature = "async")))]
mod program;
mod serving;
mod timing;

pub use constructor::SessionConstructor;
pub use element::Element;
pub use error::{RemoteError, SessionError};
pub use local::{
    Arg, Backend, Callable, CompiledModule, DeviceMemory, Exception, FileFunction, FromArg,
    Functions, IntoFunction, IntoReturn, LocalFunction, LocalModule, LocalObject, LocalOptions,
    LocalTensor, LocalValue, NewFile, WorkDir, test_functions,
};
pub use options::SessionOptions;
pub use serving::{ServeError, ServeOptions, session_expired, session_lost};
pub use timing::{TimeEvaluatorOptions, Timing};

/// The arguments of a call: `args![1, "text", &tensor]`.
///
/// Integers, floats, `bool`, `()` (nothing), texts, bytes, data types and devices by value; tensors,
/// functions, modules and objects of the session by reference.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        &[$(::core::convert::Into::into($arg)),*]
    };
}

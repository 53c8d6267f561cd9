//! Remote sessions of Apache TVM's RPC: functions, modules, tensors, files and timing on a device that
//! belongs to somebody else's server.
//!
//! There are two twins with the same names: [`blocking`] (feature `sync`) and [`asynchronous`] (feature
//! `async`). What they do is written once, in `src/dual/`; they differ in the connection beneath.
#![forbid(unsafe_code)]
// The files of `dual` belong to both twins.
#![allow(clippy::duplicate_mod)]

mod answer;
#[cfg(feature = "async")]
pub mod asynchronous;
#[cfg(feature = "sync")]
pub mod blocking;
mod constructor;
mod element;
mod error;
mod freed;
mod names;
mod options;
mod timing;

pub use constructor::SessionConstructor;
pub use element::Element;
pub use error::{RemoteError, SessionError};
pub use options::SessionOptions;
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

//! Apache TVM's RPC protocol, without I/O.
#![forbid(unsafe_code)]

pub mod codes;
mod error;
mod limits;
mod wire;

pub use error::DecodeError;
pub use limits::{Limits, OverLimit};

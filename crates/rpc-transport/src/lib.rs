//! Framing and connecting for Apache TVM's RPC: the state machines of [`rpc_proto`] on real streams.
//!
//! There are two twins with the same names: [`blocking`] (feature `sync`, plain `std::net`) and
//! [`asynchronous`] (feature `async`, tokio). What they do is written once, in `src/dual/`; they differ
//! in how a stream waits.
//!
//! | name | what it is |
//! | --- | --- |
//! | `connect` | a TCP stream to an [`Address`], trying every address of a name |
//! | `spawn` | a stream over the standard input and output of a child process (Unix) |
//! | `Stream` | a connection to one peer, with deadlines |
//! | `handshake` | says who we are to a server |
//! | `TrackerStream` | a conversation with a tracker |
//! | `Incoming` | packets as they come in, payloads straight into the caller's memory |
//!
//! ```no_run
//! # #[cfg(feature = "sync")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rpc_proto::tracker::Request;
//! use rpc_transport::{ConnectOptions, blocking};
//!
//! let options = ConnectOptions::default();
//! let mut tracker = blocking::TrackerStream::connect(&"127.0.0.1:9190".parse()?, &options)?;
//! println!("{:?}", tracker.exchange(&Request::Summary, None)?);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sync"))]
//! # fn main() {}
//! ```
#![forbid(unsafe_code)]
// The files of `dual` belong to both twins.
#![allow(clippy::duplicate_mod)]

mod address;
#[cfg(all(unix, any(feature = "sync", feature = "async")))]
mod child;
mod deadline;
mod error;
mod options;
#[cfg(any(feature = "sync", feature = "async"))]
mod socket;

#[cfg(feature = "async")]
pub mod asynchronous;
#[cfg(feature = "sync")]
pub mod blocking;

pub use address::{Address, ParseAddressError};
pub use deadline::{Deadline, Step};
pub use error::TransportError;
pub use options::ConnectOptions;

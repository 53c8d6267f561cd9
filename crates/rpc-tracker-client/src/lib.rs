//! A client of an Apache TVM RPC tracker: asks for devices, offers devices, says what the tracker has.
//!
//! There are two twins with the same names: [`blocking`] (feature `sync`, plain `std::net`) and
//! [`asynchronous`] (feature `async`, tokio). What they do is written once, in `src/dual/`.
//!
//! | name | what it is |
//! | --- | --- |
//! | `TrackerClient` | requests sessions, with retries; ping, summary, diagnosis |
//! | `Connect` | how an allocation becomes a session; this crate does not know what a session is |
//! | `TrackerConnection` | one connection: the server's side, since the tracker ties what is offered to the connection that offered it |
//!
//! ```no_run
//! # #[cfg(feature = "sync")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::io;
//! use std::net::TcpStream;
//! use std::time::Duration;
//!
//! use rpc_tracker_client::blocking::{Connect, TrackerClient};
//! use rpc_tracker_client::{Allocation, RequestOptions};
//!
//! /// Only opens the connection; a real one shakes hands and starts a session.
//! struct Open;
//!
//! impl Connect for Open {
//!     type Session = TcpStream;
//!     type Error = io::Error;
//!
//!     fn connect(&self, at: &Allocation, _: Option<Duration>) -> io::Result<TcpStream> {
//!         TcpStream::connect((at.host.as_str(), at.port))
//!     }
//! }
//!
//! let client = TrackerClient::new("127.0.0.1:9190".parse()?);
//! print!("{}", client.text_summary()?);
//! let options = RequestOptions::new("rasp4b").with_session_timeout(Duration::from_secs(60));
//! let session = client.request(&options, &Open)?;
//! # drop(session);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sync"))]
//! # fn main() {}
//! ```
//!
//! And the same on tokio:
//!
//! ```no_run
//! # #[cfg(feature = "async")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::{io, time::Duration};
//! use rpc_tracker_client::asynchronous::{Connect, TrackerClient};
//! use rpc_tracker_client::{Allocation, RequestOptions};
//! use tokio::net::TcpStream;
//!
//! struct Open;
//!
//! #[async_trait::async_trait]
//! impl Connect for Open {
//!     type Session = TcpStream;
//!     type Error = io::Error;
//!
//!     async fn connect(&self, at: &Allocation, _: Option<Duration>) -> io::Result<TcpStream> {
//!         TcpStream::connect((at.host.as_str(), at.port)).await
//!     }
//! }
//!
//! let client = TrackerClient::new("127.0.0.1:9190".parse()?);
//! print!("{}", client.text_summary().await?);
//! let options = RequestOptions::new("rasp4b").with_session_timeout(Duration::from_secs(60));
//! let session = client.request(&options, &Open).await?;
//! # Ok(())
//! # }
//! # fn main() {}
//! ```
#![forbid(unsafe_code)]
// The files of `dual` belong to both twins.
#![allow(clippy::duplicate_mod)]

mod diagnosis;
mod error;
#[cfg(any(feature = "sync", feature = "async"))]
mod idle;
mod options;
#[cfg(any(feature = "sync", feature = "async"))]
mod wait;

#[cfg(feature = "async")]
pub mod asynchronous;
#[cfg(feature = "sync")]
pub mod blocking;

pub use diagnosis::Diagnosis;
pub use error::{Exhausted, Retry, TrackerClientError};
pub use options::{ConnectRetry, RequestOptions, TrackerClientOptions};
// What signatures, options and errors of this crate are made of, so that it can be used alone.
pub use rpc_proto::tracker::{
    Allocation, ConnectionError, MessageError, Port, Priority, QueueStatus, ReplyError, ServerAddr,
    ServerInfo, Summary,
};
pub use rpc_proto::{Limits, OverLimit};
pub use rpc_transport::{Address, ConnectOptions, ParseAddressError, Step, TransportError};

//! Framing and connecting for Apache TVM's RPC: the state machines of [`rpc_proto`] on real streams.
//!
//! There are two twins with the same names: `blocking` (feature `sync`, plain `std::net`) and
//! `asynchronous` (feature `async`, tokio). What they do is written once, in `src/dual/`; they differ
//! in how a stream waits.
//!
//! | name | what it is |
//! | --- | --- |
//! | `connect` | a TCP stream to an [`Address`], trying every address of a name |
//! | `connect_server` | a stream to a [`ServerAddress`]: TCP, or a WebSocket (feature `websocket`) |
//! | `spawn` | a stream over the standard input and output of a child process (Unix) |
//! | `Stream` | a connection to one peer, with deadlines; on anything that reads and writes |
//! | `accepted` | a TCP stream on a socket that a listener accepted |
//! | `WebSocket` | the stream of bytes in a WebSocket: of a client, in the async twin of a server too |
//! | `handshake` | says who we are to a server |
//! | `Acceptor` | accepts connections, whatever happens to single ones (async) |
//! | `introduction` | hears who a client is, as its server (async) |
//! | `TrackerStream` | a conversation with a tracker |
//! | `Incoming` | packets as they come in, payloads straight into the caller's memory |
//!
//! And for both: [`listen`], which opens a listener on the first free port of a range, and `configure`,
//! the options of a socket.
//!
//! They differ where blocking and waiting differ:
//!
//! | | `blocking` | `asynchronous` |
//! | --- | --- | --- |
//! | a stream of one's own runs on | one `Carrier`: `Read`, `Write` and time limits | two halves: `AsyncRead` and `AsyncWrite` |
//! | `Reader` | is the whole `Stream` | the half that reads, of `Stream::into_split` |
//! | `Writer` | | the half that writes, also in steps |
//! | `WebSocket` | is a `Carrier`, on TCP | reads and writes, on any connection |
//! | the look-up of a name | has the system's time limit | has that of [`ConnectOptions`] |
//! | `spawn` and all that waits | anywhere | panics outside of a tokio runtime |
//!
//! The blocking twin:
//!
//! ```no_run
//! # #[cfg(feature = "sync")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rpc_proto::tracker::Request;
//! use rpc_transport::blocking::TrackerStream;
//! use rpc_transport::{ConnectOptions, Deadline, Step};
//!
//! let options = ConnectOptions::default();
//! let mut tracker = TrackerStream::connect(&"127.0.0.1:9190".parse()?, &options)?;
//! let deadline = Deadline::total(Step::TrackerAnswer, Some(options.handshake_timeout));
//! println!("{:?}", tracker.exchange(&Request::Summary, deadline)?);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sync"))]
//! # fn main() {}
//! ```
//!
//! The async twin:
//!
//! ```no_run
//! # #[cfg(feature = "async")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rpc_proto::handshake::SessionKey;
//! use rpc_transport::ConnectOptions;
//! use rpc_transport::asynchronous::{connect, handshake};
//!
//! let options = ConnectOptions::default();
//! let mut stream = connect(&"[::1]:9091".parse()?, &options).await?;
//! let key = SessionKey::new("rasp4b:0.25")?.to_string();
//! println!("{}", handshake(&mut stream, &key, &options).await?.key);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "async"))]
//! # fn main() {}
//! ```
#![forbid(unsafe_code)]
// The files of `dual` belong to both twins.
#![allow(clippy::duplicate_mod)]
// What the twins share has no user without them.
#![cfg_attr(
    not(any(feature = "sync", feature = "async")),
    allow(dead_code, unused_imports)
)]

mod address;
#[cfg(all(unix, any(feature = "sync", feature = "async")))]
mod child;
mod deadline;
mod error;
mod listen;
mod options;
mod server_address;
#[cfg(any(feature = "sync", feature = "async"))]
mod socket;
#[cfg(feature = "websocket")]
mod websocket;

#[cfg(feature = "async")]
pub mod asynchronous;
#[cfg(feature = "sync")]
pub mod blocking;

pub use address::{Address, ParseAddressError};
pub use deadline::{Deadline, Step};
pub use error::{Chain, TransportError};
pub use listen::listen;
pub use options::ConnectOptions;
#[cfg(feature = "websocket")]
pub use server_address::WebSocketAddress;
pub use server_address::{ParseServerAddressError, ServerAddress};
#[cfg(any(feature = "sync", feature = "async"))]
pub use socket::configure;
#[cfg(feature = "websocket")]
pub use websocket::UpgradeError;

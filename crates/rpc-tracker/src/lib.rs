//! The tracker of Apache TVM's RPC: servers offer their devices to it, clients wait for one.
//!
//! [`Tracker`] is the service, on tokio:
//!
//! ```
//! use rpc_tracker::{Tracker, TrackerOptions};
//! use rpc_tracker_client::asynchronous::TrackerClient;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Port 0 lets the system choose; the usual ones are 9190 to 9199.
//! let tracker = Tracker::bind("127.0.0.1", 0..=0, TrackerOptions::default()).await?;
//! println!("listening on {}", tracker.local_addr());
//! let client = TrackerClient::new(tracker.local_addr().into());
//! let handle = tracker.handle();
//! let served = tokio::spawn(tracker.serve());
//!
//! client.ping().await?;
//! print!("{}", client.text_summary().await?);
//!
//! handle.stop();
//! served.await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Queues`] is what it knows, without sockets, for services of one's own.
//!
//! # What differs from the reference
//!
//! The conversation is the same, letter for letter. Beyond it:
//!
//! * What a connection offered and asked for is gone with it, at once; also without UPDATE_INFO, and
//!   whatever its match keys look like. A queue is forgotten when nothing is in it and no server of its key has registered.
//! * A greeting and frames may come in pieces of any size, or all in one.
//! * A device that is granted while its client goes away is offered on, as far as the tracker can know:
//!   it looks whether the client is still there before it writes, and a grant that was not written whole
//!   does not count. A client that goes away after that, with the grant unread in its system's buffers,
//!   takes the device along; its server sees that the match key is gone and no client came, and offers
//!   itself again.
//! * What cannot be granted is refused, with `[-1, reason]`; other requests over a limit with `-1`.
//!   See [`TrackerOptions`].
//! * A second PUT of a match key that is still on offer on this connection replaces the first.
//! * An UPDATE_INFO may lack the address; the port is then that of the PUT.
//! * Servers on the tracker's own machine are found by clients on others, see
//!   [`TrackerOptions::public_host`].
//! * There is no stop key unless one is given.
#![forbid(unsafe_code)]

mod options;
mod queues;
mod service;

pub use options::TrackerOptions;
pub use queues::{ConnectionId, Effect, Grant, Peer, Queues};
pub use service::{Tracker, TrackerHandle};

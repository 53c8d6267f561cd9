//! The protocol of a tracker: four bytes of greeting both ways, then frames of JSON.
//!
//! ```text
//! client: 71 f2 02 00            tracker: 71 f2 02 00
//! client: i32 length, JSON       tracker: i32 length, JSON
//! ```
//!
//! [`Request`] and [`Reply`] are what a frame holds, in both directions; [`Connection`] is the client's
//! side of one connection, and [`ServingConnection`] the tracker's.

mod connection;
mod explain;
mod frame;
mod json;
mod message;
mod reply;
mod serving;
mod summary;

pub use connection::{Connection, ConnectionError, Event};
pub use explain::{GREETING_LEN, explain_frame, explain_greeting, frame_extent};
pub use json::MessageError;
pub use message::{Priority, Request};
pub use reply::{Allocation, Reply, ReplyError};
pub use serving::{ServingConnection, ServingError};
pub use summary::{Port, QueueStatus, ServerAddr, ServerInfo, Summary};

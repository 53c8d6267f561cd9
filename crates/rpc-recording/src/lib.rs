//! Recorded conversations of Apache TVM's RPC: their files, their making, and what their bytes mean.
//!
//! | | |
//! | --- | --- |
//! | [`Conversation`] | what peers said to each other, in the JSON format of `tests/vectors` |
//! | [`Recorder`] | makes one of the bytes that pass, in pieces of any size |
//! | [`Explained`] | what a message says, field by field, and where it stops to make sense |
//! | [`Explainer`] | the same of each message of a conversation |
//! | [`guess`] | which protocol and dialect bytes are of |
//! | [`dump`] | bytes from hexadecimal dumps |
//!
//! The bytes of peers are read by `rpc-proto` alone; nothing here knows how a message is laid out. There
//! are no sockets and no clocks: whoever relays bytes says when they passed.
//!
//! ```
//! use std::time::Duration;
//! use rpc_recording::{About, Direction, Kind, Protocol, Recorder, RecorderLimits};
//!
//! let mut recorder = Recorder::new(About::default(), RecorderLimits::default());
//! let connection = recorder.connect("client-tracker", None, None);
//! let said = b"\x71\xf2\x02\x00\x03\x00\x00\x00[1]";
//! for (piece, at) in said.chunks(3).zip(0..) {
//!     recorder.pass(connection, Direction::C2s, piece, Duration::from_millis(at));
//! }
//! recorder.end(connection, Direction::C2s, Duration::from_secs(1));
//!
//! let conversation = recorder.conversation();
//! assert_eq!(conversation.connections[0].proto, Protocol::Tracker);
//! let kinds: Vec<_> = conversation.messages.iter().map(|message| message.kind).collect();
//! assert_eq!(kinds, [Kind::Magic, Kind::Json, Kind::Close]);
//! assert_eq!(conversation.messages[1].note, "PING");
//! ```
#![forbid(unsafe_code)]

mod bounded;
mod conversation;
mod cut;
pub mod dump;
mod explained;
mod file;
pub mod guess;
mod names;
mod recorder;
mod volatile;

pub use conversation::{
    Connection, Conversation, Direction, Kind, Message, Protocol, StepResult, Volatile,
};
pub use cut::{Cut, Cutter, Stage};
pub use explained::{Explained, ExplainedField, Explainer, Stop};
pub use file::{FileError, MAX_FILE_LEN, MAX_MESSAGES};
pub use names::{UnknownDialect, dialect_name, parse_dialect};
pub use recorder::{About, Recorder, RecorderLimits, Snapshot};

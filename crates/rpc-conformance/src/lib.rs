//! Conformance cases for Apache TVM's RPC protocol: for trackers, servers and clients in any language.
//!
//! The suite speaks through raw sockets and the codec, never through this project's own client or
//! server. Each case is a short conversation with named checks, on connections of its own, with a
//! deadline for every step; it cites the clause of the specification that it checks.
//!
//! ```no_run
//! use rpc_conformance::{Options, Peer, Target, run};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tracker = Target::Tracker(Peer::Running("127.0.0.1:9190".to_owned()));
//! let run = run(&tracker, &Options::default(), &|_, _| ())?;
//! for failure in run.failures() {
//!     println!("{} (clause {}): {}", failure.id, failure.clause, failure.what);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod broken;
mod case;
mod cases;
pub mod compare;
mod evidence;
#[cfg(feature = "harness")]
pub mod harness;
pub mod ids;
pub mod lists;
mod observe;
mod peer;
mod replay;
pub mod report;
pub mod results;
mod roles;
mod run;
mod select;
mod sets;
mod stage;
mod transcript;
mod wire;

pub use case::{Case, Level, Role, Tag};
pub use cases::{Untested, all as cases, untested};
pub use observe::{Finding, observe};
pub use peer::{Instead, Peer, PeerError, Used, kill_peers};
pub use replay::{ReplayError, replay, replays};
pub use results::{PeerInfo, Played, Run, Status, Verdict};
pub use run::{Left, Load, Options, RunError, Soaked, Target, not_run, run, soak};
pub use select::Selection;
pub use sets::{FrozenSet, frozen_now};
pub use stage::{Check, Chunking};
pub use transcript::{Direction, End, Event, What};

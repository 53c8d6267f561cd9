//! Peers with one defect each, so that it can be seen that the suite finds it.
//!
//! A broken peer is a healthy one behind a relay that spoils what passes. A broken client is a healthy
//! one that is told the relay's address instead of the tracker's.

mod client;
mod relay;
mod server;
mod tracker;

pub use relay::Relay;

use rpc_proto::codes::PacketCode;

use crate::case::Role;

/// One defect.
#[derive(Debug)]
pub struct Defect {
    /// Its name, as `priority-lost`.
    pub name: &'static str,
    /// The role of the peer that has it.
    pub role: Role,
    /// What the peer does wrong.
    pub what: &'static str,
    /// Cases that have to find it, each alone.
    pub found_by: &'static [&'static str],
    twist: Twist,
}

/// What the relay does.
#[derive(Debug, Clone, Copy)]
enum Twist {
    /// Something to a message on its way.
    Messages(fn(&mut Memory, Way, Vec<u8>) -> Vec<Out>),
    /// The healthy peer never learns that a connection ended.
    EndsAreKept,
    /// A connection is served when the one before it has ended.
    OneAtATime,
    /// A message that comes in pieces ends the connection.
    OnlyWholeMessages,
    /// Of several messages that come in one piece, only the first is seen.
    OneMessageAPiece,
    /// Nothing at all: a relay that is no defect.
    Nothing,
}

/// Towards whom a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Away from who connected: a request.
    Request,
    /// Towards who connected: an answer.
    Answer,
}

/// What becomes of a message.
#[derive(Debug)]
enum Out {
    /// These bytes go on, the way that the message went.
    On(Vec<u8>),
    /// These bytes go back where the message came from.
    Back(Vec<u8>),
    /// The connection ends, both ways.
    End,
}

/// What a relay knows of a connection.
#[derive(Debug, Default)]
struct Memory {
    /// Messages that went each way before this one.
    requests: usize,
    answers: usize,
    /// Whether this is a connection to a server.
    in_session: bool,
    /// A number that all connections of a relay share.
    shared: std::sync::Arc<std::sync::atomic::AtomicU64>,
    /// What a defect keeps back.
    held: Vec<u8>,
    /// Codes of the packets that were sent on and are not answered yet; of sessions only.
    unanswered: std::collections::VecDeque<i32>,
}

impl Memory {
    fn is_first(&self, way: Way) -> bool {
        match way {
            Way::Request => self.requests == 0,
            Way::Answer => self.answers == 0,
        }
    }
}

/// All defects of a role.
pub fn defects(role: Role) -> impl Iterator<Item = &'static Defect> {
    let all = [tracker::DEFECTS, server::DEFECTS, client::DEFECTS];
    all.into_iter()
        .flatten()
        .filter(move |defect| defect.role == role)
}

/// A relay that spoils nothing, for each role: what fails on it, fails by the relay.
#[must_use]
pub fn healthy(role: Role) -> Defect {
    Defect {
        name: "none",
        role,
        what: "nothing is wrong",
        found_by: &[],
        twist: Twist::Nothing,
    }
}

/// The code of a packet that is answered; none for a handshake, an empty packet and a shutdown.
fn answered_code(message: &[u8]) -> Option<i32> {
    let length = message.get(..8)?.try_into().map(u64::from_le_bytes).ok()?;
    let code = message
        .get(8..12)?
        .try_into()
        .map(i32::from_le_bytes)
        .ok()?;
    let is_packet = length.checked_add(8) == Some(message.len() as u64);
    (is_packet && code != PacketCode::SHUTDOWN.0).then_some(code)
}

/// The message as it is.
fn on(message: Vec<u8>) -> Vec<Out> {
    vec![Out::On(message)]
}

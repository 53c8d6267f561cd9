//! A recorded conversation, played again: what the recorded peer of the tested one said is said again,
//! and what the tested one answers has to be what was recorded, but for what differs from run to run.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rpc_proto::codes::{HandshakeCode, PacketCode};
use rpc_recording::{Conversation, Direction, FileError, Kind, Message, Protocol};

use crate::case::{Case, Level, Play, Role};
use crate::roles::server::introduction;
use crate::stage::{Outcome, Stage, Stop};
use crate::wire::{Shortfall, Wire};

/// The case that plays this file. It is kept until the program ends, as all cases are.
///
/// # Errors
/// The file cannot be read as a recorded conversation.
pub fn replay(path: &Path, role: Role) -> Result<&'static Case, FileError> {
    let conversation: &'static Conversation = Box::leak(Box::new(Conversation::read(path)?));
    let id = format!("REPLAY-{}", conversation.scenario);
    Ok(Box::leak(Box::new(Case {
        id: Box::leak(id.into_boxed_str()),
        level: Level::Must,
        clause: "recorded",
        what: &conversation.description,
        why: "The recorded peer did so.",
        tags: &[],
        functions: &[],
        play: Play::Replay(role, conversation),
    })))
}

/// Whom the conversation is played with.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) stage: &'a Arc<Stage>,
    pub(crate) addr: std::net::SocketAddr,
    /// The key that a server under test accepts; none for a tracker.
    pub(crate) key: Option<&'a str>,
}

impl Replay<'_> {
    pub(crate) fn play(&self, conversation: &Conversation) -> Outcome {
        let protocol = match self.key {
            Some(_) => Protocol::Rpc,
            None => Protocol::Tracker,
        };
        let mine: Vec<_> = conversation
            .connections
            .iter()
            .filter(|connection| connection.proto == protocol)
            .map(|connection| connection.id)
            .collect();
        if mine.is_empty() {
            let why = format!("no connection of it is of the protocol {protocol:?}");
            return Err(Stop::Suite(why));
        }
        let mut wires = HashMap::new();
        let mut known = HashMap::new();
        let messages = conversation.messages.iter();
        for message in messages.filter(|message| mine.contains(&message.conn)) {
            if message.omitted > 0 {
                return Err(Stop::Suite(format!("message {} is not whole", message.i)));
            }
            let wire = match wires.entry(message.conn) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(Wire::connect(self.stage, self.addr, "suite")?)
                }
            };
            match (message.dir, message.kind) {
                (Direction::C2s, Kind::Close) => wire.finish(),
                (Direction::C2s, Kind::Handshake) if is_accepted(conversation, message.conn) => {
                    wire.send_whole(&self.own_handshake(message));
                }
                (Direction::C2s, _) => wire.send_whole(&to_send(message, &known)),
                (Direction::S2c, _) => self.expect(wire, message, &mut known)?,
            }
        }
        Ok(())
    }

    /// A handshake with the key of this server in place of the recorded one's, and its options.
    fn own_handshake(&self, message: &Message) -> Vec<u8> {
        let key = self.key.unwrap_or_default().as_bytes();
        let text = message.bytes.get(8..).unwrap_or_default();
        let options = text.iter().position(|&byte| byte == b' ');
        let options = options.map_or(&[][..], |at| &text[at..]);
        introduction(&[b"client:", key, options].concat())
    }

    fn expect(
        &self,
        wire: &mut Wire,
        message: &Message,
        known: &mut HashMap<Vec<u8>, Vec<u8>>,
    ) -> Outcome {
        let check = format!("message-{}", message.i);
        let found = match (message.kind, read(wire, message.kind)) {
            (Kind::Close, Err(Shortfall::Ended(_))) => {
                return self.stage.held(&check);
            }
            (_, Ok(found)) => found,
            (_, Err(short)) => return Err(self.stage.fail(&check, &message.note, short)),
        };
        let same = match message.kind {
            // Each server has a key of its own, and its own words for what went wrong.
            Kind::Handshake => found.get(..4) == message.bytes.get(..4),
            Kind::Packet if is_exception(&message.bytes) => is_exception(&found),
            _ => alike(message, &found),
        };
        if found.len() == message.bytes.len() {
            for range in ranges(message) {
                known.insert(message.bytes[range.clone()].to_vec(), found[range].to_vec());
            }
        }
        match same {
            true => self.stage.held(&check),
            false => Err(self.stage.fail_with(
                &check,
                &message.note,
                "other bytes".to_owned(),
                Some(&message.bytes),
                Some(&found),
            )),
        }
    }
}

/// Whether the handshake of a connection was accepted when it was recorded.
fn is_accepted(conversation: &Conversation, connection: usize) -> bool {
    let success = HandshakeCode::SUCCESS.0.to_le_bytes();
    conversation.messages.iter().any(|message| {
        message.conn == connection
            && message.dir == Direction::S2c
            && message.kind == Kind::Handshake
            && message.bytes.starts_with(&success)
    })
}

/// What was sent, with the handles of this run in place of the recorded ones.
fn to_send(message: &Message, known: &HashMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut bytes = message.bytes.clone();
    for range in ranges(message) {
        if let Some(now) = known.get(&message.bytes[range.clone()]) {
            bytes[range].copy_from_slice(now);
        }
    }
    bytes
}

/// The ranges of a message that differ from run to run.
fn ranges(message: &Message) -> impl Iterator<Item = std::ops::Range<usize>> {
    let len = message.bytes.len();
    message.volatile.iter().filter_map(move |volatile| {
        let start = usize::try_from(volatile.offset).ok()?;
        let end = start.checked_add(usize::try_from(volatile.len).ok()?)?;
        (end <= len).then_some(start..end)
    })
}

fn is_exception(packet: &[u8]) -> bool {
    packet.get(8..12) == Some(&PacketCode::EXCEPTION.0.to_le_bytes())
}

/// Whether what came is what was recorded, but for what differs from run to run. Where that has another
/// length, only the parts before the first and behind the last of it are compared.
fn alike(message: &Message, found: &[u8]) -> bool {
    let recorded = &message.bytes;
    if recorded.len() == found.len() {
        let mut bytes = found.to_vec();
        for range in ranges(message) {
            bytes[range.clone()].copy_from_slice(&recorded[range]);
        }
        return bytes == *recorded;
    }
    let first = ranges(message).map(|range| range.start).min();
    let last = ranges(message).map(|range| range.end).max();
    let (Some(first), Some(last)) = (first, last) else {
        return false;
    };
    found.len() >= first + recorded.len() - last
        && found[..first] == recorded[..first]
        && found.ends_with(&recorded[last..])
}

/// The next message, as it came.
fn read(wire: &mut Wire, kind: Kind) -> Result<Vec<u8>, Shortfall> {
    let word = |bytes: &[u8]| {
        let length = bytes.try_into().map(u32::from_le_bytes).unwrap_or_default();
        usize::try_from(length).unwrap_or(usize::MAX)
    };
    let whole = match kind {
        Kind::Json => 4 + word(wire.peek(4)?),
        Kind::Handshake => match wire.peek(4)? {
            code if code == HandshakeCode::SUCCESS.0.to_le_bytes() => 8 + word(&wire.peek(8)?[4..]),
            _ => 4,
        },
        Kind::Packet => {
            let length = wire.peek(8)?.try_into().map(u64::from_le_bytes);
            let length = usize::try_from(length.unwrap_or_default()).unwrap_or(usize::MAX);
            length.saturating_add(8)
        }
        Kind::Magic => 4,
        _ => 1,
    };
    wire.read(whole.min(LONGEST))
}

/// The longest message that is waited for, in bytes.
const LONGEST: usize = 1 << 30;

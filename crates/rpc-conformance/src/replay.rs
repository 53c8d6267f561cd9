//! A recorded conversation, played again: what the recorded peer of the tested one said is said again,
//! and what the tested one answers has to be what was recorded, but for what differs from run to run.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rpc_proto::codes::{HandshakeCode, PacketCode};
use rpc_recording::{Conversation, Direction, FileError, Kind, Message, Protocol};

use crate::case::{Case, Level, Play, Role};
use crate::roles::server::introduction;
use crate::stage::{Outcome, Stage, Stop};
use crate::wire::{Shortfall, Wire};

/// A recorded conversation that cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read as a recorded conversation.
    #[error(transparent)]
    File(#[from] FileError),
    /// The recorded peer of a client is not what is played.
    #[error("a client cannot be told what to say: recordings are played to a tracker or a server")]
    Client,
    /// Nothing would be compared, so that every peer would pass.
    #[error("in {path} no {role} says anything: there is nothing to play")]
    Nothing {
        /// The file.
        path: PathBuf,
        /// The role of the peer under test.
        role: Role,
    },
}

/// The case that plays this file. It is kept until the program ends, as all cases are.
///
/// # Errors
/// The file cannot be read as a recorded conversation, or there is nothing in it that a peer of this role
/// says.
pub fn replay(path: &Path, role: Role) -> Result<&'static Case, ReplayError> {
    load(path, role, &mut HashSet::new())
}

/// The cases that play these files, in their order, each with an id of its own.
///
/// # Errors
/// Those of [`replay()`].
pub fn replays<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
    role: Role,
) -> Result<Vec<&'static Case>, ReplayError> {
    let mut taken = HashSet::new();
    let paths = paths.into_iter();
    paths.map(|path| load(path, role, &mut taken)).collect()
}

fn load(
    path: &Path,
    role: Role,
    taken: &mut HashSet<String>,
) -> Result<&'static Case, ReplayError> {
    let protocol = protocol(role)?;
    let conversation = Conversation::read(path)?;
    let mine = numbers(&conversation, protocol);
    let answers = |message: &Message| message.dir == Direction::S2c && mine.contains(&message.conn);
    if !conversation.messages.iter().any(answers) {
        let path = path.to_owned();
        return Err(ReplayError::Nothing { path, role });
    }
    let name = match conversation.scenario.as_str() {
        "" => path.file_stem().unwrap_or_default().to_string_lossy(),
        scenario => scenario.into(),
    };
    let id = format!("REPLAY-{}", harmless(&name));
    let numbered = (2..).map(|number| format!("{id}_{number}"));
    let mut ids = std::iter::once(id.clone()).chain(numbered);
    let id = ids.find(|id| taken.insert(id.clone())).unwrap_or(id);
    let conversation: &'static Conversation = Box::leak(Box::new(conversation));
    Ok(Box::leak(Box::new(Case {
        id: Box::leak(id.into_boxed_str()),
        level: Level::Must,
        clause: "recorded",
        what: match conversation.description.as_str() {
            "" => "The answers are the recorded ones.",
            description => description,
        },
        why: "The recorded peer did so.",
        tags: &[],
        functions: &[],
        play: Play::Replay(role, conversation),
    })))
}

/// What of a name may stand in an id, which becomes the name of a file, and in an argument.
fn harmless(name: &str) -> String {
    const LONGEST: usize = 100;
    let harmless = |c: char| match c {
        '-' | '_' => c,
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    };
    name.chars().take(LONGEST).map(harmless).collect()
}

/// What is spoken with a peer of this role.
fn protocol(role: Role) -> Result<Protocol, ReplayError> {
    match role {
        Role::Tracker => Ok(Protocol::Tracker),
        Role::Server => Ok(Protocol::Rpc),
        Role::Client => Err(ReplayError::Client),
    }
}

/// The connections of this protocol.
fn numbers(conversation: &Conversation, protocol: Protocol) -> HashSet<usize> {
    let connections = conversation.connections.iter();
    let mine = connections.filter(|connection| connection.proto == protocol);
    mine.map(|connection| connection.id).collect()
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
        let mine = numbers(conversation, protocol);
        let accepted = accepted(conversation);
        let mut wires = HashMap::new();
        let mut known = HashMap::new();
        let mut refused = HashSet::new();
        let messages = conversation.messages.iter();
        for message in messages.filter(|message| mine.contains(&message.conn)) {
            if refused.contains(&message.conn) {
                continue;
            }
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
                (Direction::C2s, Kind::Handshake) if accepted.contains(&message.conn) => {
                    wire.send_whole(&self.own_handshake(message));
                }
                (Direction::C2s, _) => wire.send_whole(&to_send(message, &known)),
                (Direction::S2c, _) => {
                    if self.expect(wire, message, &mut known)? == Then::RefusedOtherwise {
                        refused.insert(message.conn);
                    }
                }
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
    ) -> Outcome<Then> {
        let check = format!("message-{}", message.i);
        let is_tracker = self.key.is_none();
        // A tracker that refuses may end the connection or say -1 (2.3.1).
        let was_refusal = is_tracker && is_refusal(&message.bytes);
        let kind = match message.kind {
            Kind::Close if is_tracker => Kind::Json,
            kind => kind,
        };
        let found = match (message.kind, read(wire, kind, message.bytes.len())) {
            (Kind::Close, Err(Shortfall::Ended(_))) => {
                self.stage.passes(&check)?;
                return Ok(Then::GoesOn);
            }
            (_, Err(Shortfall::Ended(_))) if was_refusal => {
                self.stage.passes(&check)?;
                return Ok(Then::RefusedOtherwise);
            }
            (Kind::Close, Ok(found)) if is_tracker && is_refusal(&found) => {
                self.stage.passes(&check)?;
                return Ok(Then::RefusedOtherwise);
            }
            (_, Ok(found)) => found,
            (_, Err(short)) => return Err(self.stage.fail(&check, &message.note, short)),
        };
        let same = match message.kind {
            // Each server has a key of its own, and its own words for what went wrong.
            Kind::Handshake => found.get(..4) == message.bytes.get(..4),
            Kind::Packet if is_exception(&message.bytes) => is_exception(&found),
            Kind::Json if was_refusal => is_refusal(&found),
            _ => alike(message, &found),
        };
        if found.len() == message.bytes.len() {
            for range in ranges(message) {
                known.insert(message.bytes[range.clone()].to_vec(), found[range].to_vec());
            }
        }
        match same {
            true => self.stage.passes(&check).map(|()| Then::GoesOn),
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

/// How it goes on behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// As it was recorded.
    GoesOn,
    /// The peer refuses in another way than the recorded one, and what comes behind that cannot be compared.
    RefusedOtherwise,
}

/// Whether a frame of a tracker is a refusal: -1, or -1 and a reason.
fn is_refusal(frame: &[u8]) -> bool {
    let text = frame.get(4..).unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(text)
        .is_ok_and(|value| value == -1 || value[0] == -1)
}

/// The connections whose handshake was accepted when they were recorded.
fn accepted(conversation: &Conversation) -> HashSet<usize> {
    let success = HandshakeCode::SUCCESS.0.to_le_bytes();
    let accepts = |message: &&Message| {
        message.dir == Direction::S2c
            && message.kind == Kind::Handshake
            && message.bytes.starts_with(&success)
    };
    let accepting = conversation.messages.iter().filter(accepts);
    accepting.map(|message| message.conn).collect()
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
fn read(wire: &mut Wire, kind: Kind, recorded: usize) -> Result<Vec<u8>, Shortfall> {
    let word = |bytes: &[u8]| {
        let length = bytes.try_into().map(u32::from_le_bytes).unwrap_or_default();
        usize::try_from(length).unwrap_or(usize::MAX)
    };
    let whole = match kind {
        Kind::Json => word(wire.peek(4)?).saturating_add(4),
        Kind::Handshake => match wire.peek(4)? {
            code if code == HandshakeCode::SUCCESS.0.to_le_bytes() => {
                word(&wire.peek(8)?[4..]).saturating_add(8)
            }
            _ => 4,
        },
        Kind::Packet => {
            let length = wire.peek(8)?.try_into().map(u64::from_le_bytes);
            let length = usize::try_from(length.unwrap_or_default()).unwrap_or(usize::MAX);
            length.saturating_add(8)
        }
        Kind::Magic => 4,
        Kind::Close => 1,
        // Nothing says how long it is but what was recorded.
        _ => recorded,
    };
    wire.read(whole.min(LONGEST))
}

/// The longest message that is waited for, in bytes.
const LONGEST: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(scenario: &str, proto: &str, messages: &str) -> tempfile::NamedTempFile {
        let text = format!(
            r#"{{"scenario": "{scenario}", "connections": [{{"id": 0, "proto": "{proto}"}}],
                "messages": [{messages}]}}"#
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    const SAID: &str = r#"{"i": 0, "conn": 0, "dir": "c2s", "kind": "magic", "hex": "71f20200"}"#;
    const ANSWERED: &str =
        r#"{"i": 0, "conn": 0, "dir": "s2c", "kind": "magic", "hex": "71f20200"}"#;

    #[test]
    fn what_compares_nothing_is_not_played() {
        for (proto, messages) in [("tracker", ""), ("tracker", SAID), ("rpc", ANSWERED)] {
            let file = recorded("x", proto, messages);
            let error = replay(file.path(), Role::Tracker).unwrap_err().to_string();
            assert!(error.ends_with("no tracker says anything: there is nothing to play"));
        }
        let file = recorded("x", "tracker", ANSWERED);
        assert!(replay(file.path(), Role::Tracker).is_ok());
        let client = replay(file.path(), Role::Client).unwrap_err();
        assert!(client.to_string().starts_with("a client cannot be told"));
    }

    #[test]
    fn ids_are_different_and_harmless() {
        let odd = recorded("../../a b.c\\n\\u001b", "tracker", ANSWERED);
        let nameless = recorded("", "tracker", ANSWERED);
        let paths = [odd.path(), odd.path(), nameless.path()];
        let cases = replays(paths, Role::Tracker).unwrap();
        assert_eq!(cases[0].id, "REPLAY-______a_b_c__");
        assert_eq!(cases[1].id, "REPLAY-______a_b_c___2");
        let stem = nameless.path().file_stem().unwrap().to_str().unwrap();
        assert_eq!(cases[2].id, format!("REPLAY-{}", harmless(stem)));
        assert_eq!(harmless(&"x".repeat(1000)).len(), 100);
    }
}

//! The JSON format of `tests/vectors`.

use rpc_proto::Dialect;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use crate::bounded;
use crate::names::{dialect_name, parse_dialect};

/// What peers said to each other. `tests/vectors/README.md` describes the format; members that are not
/// known here are ignored, and those that are missing are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Conversation {
    /// Package and version of the peers.
    #[serde(default)]
    pub peer: String,
    /// Who they are, and where the recorder is.
    #[serde(default)]
    pub role: String,
    /// A name for it.
    #[serde(default)]
    pub scenario: String,
    /// How packed values are laid out: `ffi` or `legacy`, or where the peers differ a sentence.
    #[serde(default)]
    pub dialect: String,
    /// What happens in it.
    #[serde(default)]
    pub description: String,
    /// The connections.
    #[serde(deserialize_with = "bounded::list")]
    pub connections: Vec<Connection>,
    /// What the acting side saw of each step.
    #[serde(default, deserialize_with = "bounded::list")]
    pub results: Vec<StepResult>,
    /// What passed, in the order in which the last byte of each message came to the recorder.
    #[serde(deserialize_with = "bounded::list")]
    pub messages: Vec<Message>,
    /// Messages that the recorder had no room for; they came after all others. A connection for which it
    /// had none counts as one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Connection {
    /// Its number, to which messages refer.
    pub id: usize,
    /// Between whom, for example `client-server`: first who connected, then who listened.
    #[serde(default)]
    pub link: String,
    /// The protocol.
    #[serde(default)]
    pub proto: Protocol,
    /// How packed values are laid out.
    #[serde(
        default,
        serialize_with = "put_dialect",
        deserialize_with = "read_dialect",
        skip_serializing_if = "Option::is_none"
    )]
    pub dialect: Option<Dialect>,
}

impl Connection {
    /// A connection.
    #[must_use]
    pub fn new(
        id: usize,
        link: impl Into<String>,
        proto: Protocol,
        dialect: Option<Dialect>,
    ) -> Self {
        Self {
            id,
            link: link.into(),
            proto,
            dialect,
        }
    }
}

/// A protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// A tracker's.
    Tracker,
    /// A session's: handshake and packets.
    Rpc,
    /// A session's inside a WebSocket.
    Ws,
    /// None of these.
    #[default]
    #[serde(other)]
    Unknown,
}

/// What the acting side saw of a step: one of `ok`, `error` with its type, and `observed`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepResult {
    /// The name of the step, to which messages refer.
    pub step: String,
    /// It went well, with this result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Json>,
    /// It failed with an error of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// It failed so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// This was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Json>,
}

/// What passed on a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Its number in the file.
    pub i: usize,
    /// The connection.
    pub conn: usize,
    /// Who sent it.
    pub dir: Direction,
    /// What it is.
    pub kind: Kind,
    /// The bytes, of a long message the first ones.
    #[serde(rename = "hex", with = "hex")]
    pub bytes: Vec<u8>,
    /// How many more there were, which were not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// The reading in one line.
    #[serde(default)]
    pub note: String,
    /// What differs from run to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volatile: Vec<Volatile>,
    /// The step to which it belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Seconds since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t: Option<f64>,
    /// The reading in full, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<Json>,
}

impl Message {
    /// A message without a reading.
    #[must_use]
    pub fn new(i: usize, conn: usize, dir: Direction, kind: Kind, bytes: Vec<u8>) -> Self {
        Self {
            i,
            conn,
            dir,
            kind,
            bytes,
            omitted: 0,
            note: String::new(),
            volatile: Vec::new(),
            step: None,
            t: None,
            decoded: None,
        }
    }
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The side that connected.
    C2s,
    /// The side that listened.
    S2c,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::C2s => Self::S2c,
            Self::S2c => Self::C2s,
        }
    }
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// A tracker's greeting.
    Magic,
    /// A tracker's frame.
    Json,
    /// Magic or code, and where there is one the key.
    Handshake,
    /// A packet of a session.
    Packet,
    /// The end of the bytes of this direction.
    Close,
    /// Bytes that are no message.
    Raw,
    /// The upgrade to a WebSocket.
    Http,
    /// A frame of a WebSocket.
    Ws,
}

/// Bytes of a message that differ from run to run; in JSON an array of the three.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, String)", into = "(u64, u64, String)")]
pub struct Volatile {
    /// Where they start.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
    /// What they are, for example `handle`.
    pub what: String,
}

impl From<(u64, u64, String)> for Volatile {
    fn from((offset, len, what): (u64, u64, String)) -> Self {
        Self { offset, len, what }
    }
}

impl From<Volatile> for (u64, u64, String) {
    fn from(Volatile { offset, len, what }: Volatile) -> Self {
        (offset, len, what)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::ref_option, reason = "what serde asks for")]
fn put_dialect<S: Serializer>(dialect: &Option<Dialect>, serializer: S) -> Result<S::Ok, S::Error> {
    dialect.map(dialect_name).serialize(serializer)
}

/// A dialect that is not known says nothing.
fn read_dialect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Dialect>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.and_then(|name| parse_dialect(&name).ok()))
}

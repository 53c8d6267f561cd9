//! What a message says, field by field.

mod explainer;
mod items;
mod note;
mod packet;
mod tables;
mod tracker;

use std::fmt;

use rpc_proto::explain::{Explanation, Field, FieldValue};
use rpc_proto::{Dialect, Limits, handshake};
use serde_json::{Value as Json, json};

pub use explainer::Explainer;
pub(crate) use items::Item;

use crate::{Direction, Kind, Message, Volatile};

/// What a message says: in one line, in full, and field by field up to where it cannot be understood.
///
/// Prints as lines of text, hexadecimal digits beside their meaning. Control characters of peers are
/// escaped.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explained {
    /// The reading in one line.
    pub note: String,
    /// The reading in full, as recordings have it; `tests/vectors/README.md` describes it.
    pub decoded: Option<Json>,
    /// The fields.
    pub fields: Vec<ExplainedField>,
    /// What differs from run to run, as far as the message itself tells.
    pub volatile: Vec<Volatile>,
    /// Where it stops to be understood, if it does.
    pub stop: Option<Stop>,
    bytes: Vec<u8>,
    omitted: u64,
}

/// One field of a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExplainedField {
    /// What it is.
    pub name: &'static str,
    /// The value to which it belongs, from 0: `#0`, and what it is there for where the protocol says so.
    pub item: Option<(u32, Option<&'static str>)>,
    /// Where it starts, from the first byte of the message.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// What it holds: a number, a text, or for addresses and bytes a text of hexadecimal digits. Of many
    /// bytes the first ones.
    pub value: Json,
    /// The same, for people.
    pub text: String,
    /// What that means, where it is a code.
    pub meaning: Option<String>,
}

/// Where and why a message cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stop {
    /// Where, from the first byte of the message.
    pub offset: u64,
    /// The field that could not be read or is wrong.
    pub field: String,
    /// Why, in words.
    pub why: String,
}

impl Explained {
    /// Explains a message of that kind that went in that direction. `omitted` bytes followed of which
    /// nothing is known.
    #[must_use]
    pub fn new(
        kind: Kind,
        direction: Direction,
        bytes: &[u8],
        omitted: u64,
        dialect: Dialect,
    ) -> Self {
        let limits = Limits::default();
        let mut explained = match (kind, direction) {
            (Kind::Magic, _) => tracker::greeting(bytes),
            (Kind::Json, _) => tracker::frame(bytes, direction, limits),
            (Kind::Handshake, Direction::C2s) => opening(bytes, limits),
            (Kind::Handshake, Direction::S2c) => answer(bytes, limits),
            (Kind::Packet, _) => packet::packet(bytes, omitted, dialect, limits),
            (Kind::Close, _) => Self::without_fields("end"),
            (Kind::Http, _) => Self::without_fields("upgrade to a WebSocket"),
            (Kind::Ws, _) => Self::without_fields("frame of a WebSocket"),
            (Kind::Raw, _) => {
                let count = bytes.len() as u64 + omitted;
                Self::without_fields(format!("{count} bytes that are no message"))
            }
        };
        explained.note = escaped(&explained.note);
        if let Some(stop) = &mut explained.stop {
            stop.why = escaped(&stop.why);
        }
        explained.bytes = bytes.to_vec();
        explained.omitted = omitted;
        if omitted > 0 {
            // That is why it ends early.
            explained.stop = None;
        }
        explained
    }

    /// Explains bytes that are no message as the kind that was expected there.
    #[must_use]
    pub fn attempt(kind: Kind, message: &Message, dialect: Dialect) -> Self {
        let Message {
            dir,
            bytes,
            omitted,
            ..
        } = message;
        let mut explained = Self::new(kind, *dir, bytes, *omitted, dialect);
        if kind == Kind::Raw {
            return explained;
        }
        let count = bytes.len() as u64 + omitted;
        explained.note = match explained.stop {
            Some(_) => format!("{count} bytes that are no message; {}", explained.note),
            None => format!("{count} bytes; {}", explained.note),
        };
        explained
    }

    /// Explains a recorded message.
    #[must_use]
    pub fn message(message: &Message, dialect: Dialect) -> Self {
        let Message {
            kind,
            dir,
            bytes,
            omitted,
            ..
        } = message;
        Self::new(*kind, *dir, bytes, *omitted, dialect)
    }

    fn without_fields(note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            decoded: None,
            fields: Vec::new(),
            volatile: Vec::new(),
            stop: None,
            bytes: Vec::new(),
            omitted: 0,
        }
    }

    /// With the fields and the stop of `explanation`.
    fn of<T>(explanation: &Explanation<'_, T>, arguments: &[&'static str]) -> Self {
        let fields = explanation.fields.iter();
        let fields = fields.map(|field| ExplainedField::new(field, arguments));
        let error = explanation.result.as_ref().err();
        let stop = explanation.stop().zip(error).map(|(offset, error)| Stop {
            offset,
            field: error.field().to_owned(),
            why: error.to_string(),
        });
        Self {
            fields: fields.collect(),
            stop,
            ..Self::without_fields("")
        }
    }

    /// Where the fields end that were read.
    #[must_use]
    pub fn understood(&self) -> u64 {
        self.fields
            .last()
            .map_or(0, |field| field.offset + field.len)
    }
}

impl ExplainedField {
    fn new(field: &Field<'_>, arguments: &[&'static str]) -> Self {
        let item = field.item.map(|item| {
            let name = usize::try_from(item).ok().and_then(|at| arguments.get(at));
            (item, name.copied())
        });
        Self {
            name: field.name,
            item,
            offset: field.offset,
            len: field.len,
            value: json_of(&field.value),
            text: match (field.name, &field.value) {
                ("magic" | "handshake code", FieldValue::Int(code)) => format!("{code:#x}"),
                (_, value) => value.to_string(),
            },
            meaning: field.meaning.as_deref().map(str::to_owned),
        }
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tables::lines(self, f)
    }
}

/// The text on one line, with nothing in it that steers a terminal.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    escaped
}

/// Bytes of a value that are shown.
const SHOWN: usize = 32;
/// Bytes of a copy that are shown.
const SHOWN_DATA: usize = 64;

fn json_of(value: &FieldValue<'_>) -> Json {
    match value {
        FieldValue::Int(value) => json!(value),
        FieldValue::Unsigned(value) => json!(value),
        FieldValue::Float(value) if value.is_finite() => json!(value),
        FieldValue::Float(value) => json!(value.to_string().to_lowercase()),
        FieldValue::Address(value) => json!(format!("{value:#x}")),
        FieldValue::Text(text) => json!(text),
        FieldValue::Bytes(bytes) => json!(hex_of(bytes, SHOWN)),
        other => json!(other.to_string()),
    }
}

/// All digits of a few bytes; of many the first ones, and how many there are.
fn hex_of(bytes: &[u8], most: usize) -> String {
    let shown = hex::encode(&bytes[..bytes.len().min(most)]);
    match bytes.len() <= most {
        true => shown,
        false => format!("{shown}..({} bytes)", bytes.len()),
    }
}

/// What the connecting side says first.
fn opening(bytes: &[u8], limits: Limits) -> Explained {
    let explanation = handshake::explain_opening(bytes, limits);
    let mut explained = Explained::of(&explanation, &[]);
    explained.decoded = handshake_json(&explanation.fields);
    match &explanation.result {
        Ok(key) => {
            (explained.note, explained.stop) = note::opening(key);
            explained.volatile = crate::volatile::of_key(key);
        }
        Err(error) => explained.note = note::stopped("handshake", error),
    }
    explained
}

/// What the listening side answers.
fn answer(bytes: &[u8], limits: Limits) -> Explained {
    let explanation = handshake::explain_answer(bytes, limits);
    let mut explained = Explained::of(&explanation, &[]);
    explained.decoded = handshake_json(&explanation.fields);
    match &explanation.result {
        Ok(answer) => {
            explained.note = note::answer(answer);
            explained.volatile = answer
                .key
                .as_deref()
                .map(crate::volatile::of_key)
                .unwrap_or_default();
        }
        Err(error) => explained.note = note::stopped("answer to a handshake", error),
    }
    explained
}

fn handshake_json(fields: &[Field<'_>]) -> Option<Json> {
    let mut decoded = serde_json::Map::new();
    for field in fields {
        let name = match field.name {
            "length of the peer's key" => "keylen",
            "key of the peer" => "key",
            _ => "magic",
        };
        decoded.insert(name.to_owned(), json_of(&field.value));
    }
    (!decoded.is_empty()).then_some(Json::Object(decoded))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    const KINDS: [Kind; 8] = [
        Kind::Magic,
        Kind::Json,
        Kind::Handshake,
        Kind::Packet,
        Kind::Close,
        Kind::Raw,
        Kind::Http,
        Kind::Ws,
    ];

    fn explained(kind: Kind, direction: Direction, bytes: &[u8]) -> Explained {
        Explained::new(kind, direction, bytes, 0, Dialect::Ffi)
    }

    #[test]
    fn an_explanation_prints_bytes_beside_meanings() {
        let lookup =
            b"\x1a\0\0\0\0\0\0\0\x09\0\0\0\x01\0\0\0\x08\0\0\0\x09\0\0\0\0\0\0\0abc\x1b[2Jx";
        let expected = "\
get global function(); wrong: text at offset 28 needs 9 bytes, but only 6 are left in the message
     0  1a 00 00 00 00 00 00 00  packet length        26
     8  09 00 00 00              packet code          9: get global function
    12  01 00 00 00              number of values     1
    16  08 00 00 00              #0 name: type index  8: RawStr
    20  09 00 00 00 00 00 00 00  #0 name: length      9
    28  61 62 63 1b 5b 32        not understood
     !  stops at offset 28: text at offset 28 needs 9 bytes, but only 6 are left in the message
";
        let explained = explained(Kind::Packet, Direction::C2s, &lookup[..34]);
        assert_eq!(explained.to_string(), expected);
        assert_eq!(explained.understood(), 28);
    }

    #[test]
    fn a_long_field_is_cut_and_counted() {
        let ack = [&104_u64.to_le_bytes()[..], b"\x08\0\0\0", &[7; 100]].concat();
        let printed = explained(Kind::Packet, Direction::S2c, &ack).to_string();
        assert!(printed.starts_with("copy ack: 100 bytes\n"), "{printed}");
        assert!(
            printed.ends_with("\n        … 68 more bytes\n"),
            "{printed}"
        );
    }

    #[test]
    fn words_of_peers_do_not_steer() {
        let frame = [&14_u32.to_le_bytes()[..], b"[4, \"\x1b[2J\n\", "].concat();
        let explained = explained(Kind::Json, Direction::C2s, &frame);
        let printed = explained.to_string();
        let lines = printed.lines().flat_map(str::chars);
        assert!(!lines.into_iter().any(char::is_control), "{printed:?}");
        assert_eq!(explained.note.lines().count(), 1);
    }

    #[test]
    fn what_was_not_recorded_is_no_error() {
        let ack = [&1004_u64.to_le_bytes()[..], b"\x08\0\0\0", &[7; 100]].concat();
        let explained = Explained::new(Kind::Packet, Direction::S2c, &ack, 900, Dialect::Ffi);
        assert_eq!(explained.stop, None);
        assert_eq!(
            explained.note,
            "copy ack: 1000 bytes; 900 bytes of it were not recorded"
        );
    }

    /// How long it takes to explain a packet of so many values, so many times; the best of three.
    fn time(values: u16, times: u16) -> Duration {
        let values = usize::from(values);
        let head = [
            9_i32.to_le_bytes(),
            i32::try_from(values).unwrap().to_le_bytes(),
        ];
        let body = [&head.concat()[..], &vec![0; 4 * values]].concat();
        let packet = [&(body.len() as u64).to_le_bytes()[..], &body].concat();
        let once = |_| {
            let start = Instant::now();
            for _ in 0..times {
                let explained = explained(Kind::Packet, Direction::C2s, &packet);
                let args = explained.decoded.unwrap()["args"].as_array().unwrap().len();
                assert_eq!(args, values);
            }
            start.elapsed()
        };
        (0..3).map(once).min().unwrap()
    }

    #[test]
    fn many_values_take_no_square_of_their_number() {
        let (few, many) = (time(64, 128), time(4096, 2));
        assert!(
            many < 5 * few,
            "{few:?} for few at a time, {many:?} for many"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_explained(
            bytes: Vec<u8>,
            code in 0..23_u8,
            kind in prop::sample::select(&KINDS[..]),
            legacy: bool,
            omitted in 0..3_u64,
        ) {
            let dialect = if legacy { Dialect::Legacy } else { Dialect::Ffi };
            let length = (bytes.len() as u64 + 4).to_le_bytes();
            let packet = [&length[..], &[code, 0, 0, 0], &bytes].concat();
            for direction in [Direction::C2s, Direction::S2c] {
                for bytes in [&bytes, &packet] {
                    let explained = Explained::new(kind, direction, bytes, omitted, dialect);
                    let printed = explained.to_string();
                    prop_assert!(!printed.chars().any(|c| c.is_control() && c != '\n'));
                    prop_assert!(explained.understood() <= bytes.len() as u64);
                    for range in &explained.volatile {
                        prop_assert!(range.offset + range.len <= bytes.len() as u64);
                    }
                }
            }
        }
    }
}

//! One vector, and a file of them.

use anyhow::{Result, ensure};
use rpc_proto::Dialect;
use rpc_recording::{Direction, Explained, Kind, Volatile, dialect_name};
use serde_json::{Map, Value as Json, json};

use super::meaning;
use super::traces::Traces;

/// What a receiver makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// What a peer writes for this meaning.
    Canonical,
    /// Another form that a receiver has to read.
    Accepted,
    /// What breaks the protocol.
    Invalid,
}

/// A message with what it means, or what is wrong with it.
#[derive(Debug, Clone)]
pub(super) struct Vector {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) status: Status,
    /// None where it is the same in all.
    pub(super) dialect: Option<Dialect>,
    pub(super) direction: Direction,
    pub(super) kind: Kind,
    /// It answers a call, so that it is a result.
    pub(super) answers_call: bool,
    pub(super) bytes: Vec<u8>,
}

impl Vector {
    pub(super) fn new(
        kind: Kind,
        direction: Direction,
        status: Status,
        name: impl Into<String>,
        about: impl Into<String>,
        bytes: Vec<u8>,
    ) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            status,
            dialect: None,
            direction,
            kind,
            answers_call: false,
            bytes,
        }
    }

    pub(super) fn in_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// The dialects to which it belongs.
    pub(super) fn dialects(&self) -> Vec<Dialect> {
        match self.dialect {
            Some(dialect) => vec![dialect],
            None => vec![Dialect::Ffi, Dialect::Legacy],
        }
    }

    /// The vector as its file has it.
    fn json(&self, traces: &Traces) -> Result<Vec<(&'static str, Json)>> {
        let dialect = self.dialect.unwrap_or_default();
        let explained = self.explain(dialect);
        for other in self.dialects() {
            let same = self.explain(other);
            ensure!(
                (&same.decoded, &same.stop) == (&explained.decoded, &explained.stop),
                "is not the same in all dialects"
            );
        }
        let meaning = meaning::of(self, dialect);
        let is_wrong = explained.stop.is_some() || meaning.is_err();
        ensure!(
            is_wrong == (self.status == Status::Invalid),
            "is {:?}, but is read as {explained}{meaning:?}",
            self.status
        );
        let dir = match self.direction {
            Direction::C2s => "c2s",
            Direction::S2c => "s2c",
        };
        let status = match self.status {
            Status::Canonical => "canonical",
            Status::Accepted => "accepted",
            Status::Invalid => "invalid",
        };
        let mut json = vec![
            ("name", json!(self.name)),
            ("about", json!(self.about)),
            ("status", json!(status)),
            ("kind", json!(self.kind)),
            ("dir", json!(dir)),
        ];
        if let Some(dialect) = self.dialect {
            json.push(("dialect", json!(dialect_name(dialect))));
        }
        if self.answers_call {
            json.push(("answers", json!("call")));
        }
        json.push(("hex", json!(hex(&self.bytes))));
        json.push(("note", json!(explained.note)));
        if let Some(decoded) = &explained.decoded {
            json.push(("decoded", decoded.clone()));
        }
        match meaning {
            Ok(Some(meaning)) => json.push(("meaning", meaning)),
            Ok(None) => {}
            Err(error) if explained.stop.is_none() => json.push(("error", error)),
            Err(_) => {}
        }
        if let Some(stop) = &explained.stop {
            let error = json!({"offset": stop.offset, "field": stop.field, "why": stop.why});
            json.push(("error", error));
        }
        json.push(("fields", fields(&explained)));
        if !explained.volatile.is_empty() {
            json.push(("volatile", json!(explained.volatile)));
        }
        if let Some((file, i)) = traces.find(self, &explained.volatile) {
            json.push(("trace", json!({"file": file, "i": i})));
        }
        Ok(json)
    }

    fn explain(&self, dialect: Dialect) -> Explained {
        Explained::new(self.kind, self.direction, &self.bytes, 0, dialect)
    }
}

fn fields(explained: &Explained) -> Json {
    let field = |field: &rpc_recording::ExplainedField| {
        let mut json = Map::new();
        json.insert("name".to_owned(), json!(field.name));
        json.insert("offset".to_owned(), json!(field.offset));
        json.insert("len".to_owned(), json!(field.len));
        json.insert("value".to_owned(), field.value.clone());
        if let Some((item, _)) = field.item {
            json.insert("item".to_owned(), json!(item));
        }
        if let Some(meaning) = &field.meaning {
            json.insert("meaning".to_owned(), json!(meaning));
        }
        Json::Object(json)
    };
    explained.fields.iter().map(field).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes without those that differ from run to run.
pub(super) fn without_volatile(bytes: &[u8], volatile: &[Volatile]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for range in volatile {
        let start = usize::try_from(range.offset).unwrap_or(usize::MAX);
        let len = usize::try_from(range.len).unwrap_or(usize::MAX);
        for byte in bytes.iter_mut().skip(start).take(len) {
            *byte = 0;
        }
    }
    bytes
}

/// A file of vectors.
pub(super) struct Area {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) vectors: Vec<Vector>,
}

impl Area {
    /// The text of the file; an error names all vectors that are wrong.
    pub(super) fn text(&self, traces: &Traces) -> Result<String> {
        let (mut vectors, mut wrong) = (Vec::new(), Vec::new());
        for vector in &self.vectors {
            match vector.json(traces) {
                Ok(members) => vectors.push(text(&members)),
                Err(error) => wrong.push(format!("{}: {}: {error:#}", self.name, vector.name)),
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(format!(
            "{{\n \"$schema\": \"../schema.json\",\n \"area\": {},\n \"description\": {},\n \
             \"vectors\": [{}\n ]\n}}\n",
            line(&json!(self.name)),
            line(&json!(self.description)),
            vectors.join(",")
        ))
    }
}

/// A vector with a line for each member, and for each field.
fn text(members: &[(&'static str, Json)]) -> String {
    let members = members.iter().map(|(name, value)| match (*name, value) {
        ("fields", Json::Array(fields)) => {
            let lines = fields.iter().map(|field| format!("\n     {}", line(field)));
            let lines: Vec<_> = lines.collect();
            format!("\n   \"fields\": [{}]", lines.join(","))
        }
        (name, value) => format!("\n   \"{name}\": {}", line(value)),
    });
    let members: Vec<_> = members.collect();
    format!("\n  {{{}\n  }}", members.join(","))
}

/// JSON on one line, with its members in the order of their names, whatever else is built with the
/// library that keeps them.
fn line(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(line).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => {
            let mut names: Vec<_> = members.keys().collect();
            // What a field is and where stands first.
            let rank = |name: &str| {
                let first = ["name", "offset", "len", "value"];
                first
                    .iter()
                    .position(|other| *other == name)
                    .unwrap_or(first.len())
            };
            names.sort_by_key(|name| (rank(name), (*name).clone()));
            let members: Vec<_> = names
                .iter()
                .map(|name| format!("{}: {}", json!(name), line(&members[*name])))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        value => value.to_string(),
    }
}

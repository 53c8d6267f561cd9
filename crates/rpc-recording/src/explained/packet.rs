//! What a packet says.

use rpc_proto::codes::PacketCode;
use rpc_proto::explain::{Explanation, Field, FieldValue};
use rpc_proto::{DecodeError, Dialect, Limits, Packet, packet};
use serde_json::{Map, Value as Json, json};

use super::items::{Item, items, tensor};
use super::{Explained, SHOWN_DATA, hex_of, json_of, note};
use crate::names::code_name;

pub(super) fn packet(bytes: &[u8], omitted: u64, dialect: Dialect, limits: Limits) -> Explained {
    let explanation = packet::explain(bytes, dialect, limits);
    let code = code(&explanation.fields);
    let mut explained = Explained::of(&explanation, argument_names(code, &explanation));
    let items = items(&explanation.fields);
    let parts = Parts::of(&explanation.fields);
    explained.note = note::packet(code, &parts, &items, &explanation, omitted);
    explained.decoded = Some(decoded(code, &parts, &items, &explanation, omitted));
    explained.volatile = crate::volatile::of_packet(&explanation.fields, &items);
    explained
}

fn code(fields: &[Field<'_>]) -> Option<PacketCode> {
    let field = fields.iter().find(|field| field.name == "packet code")?;
    match field.value {
        FieldValue::Int(code) => i32::try_from(code).ok().map(PacketCode),
        _ => None,
    }
}

fn argument_names(
    code: Option<PacketCode>,
    explanation: &Explanation<'_, Option<Packet<'_>>>,
) -> &'static [&'static str] {
    match (code, &explanation.result) {
        (Some(PacketCode::INIT_SERVER), _) => &["constructor"],
        (Some(PacketCode::RETURN), Ok(Some(Packet::Return(values)))) if values.len() >= 2 => {
            &["type", "value", "handle"]
        }
        (Some(code), _) => code.arguments(),
        (None, _) => &[],
    }
}

/// The parts of a packet outside of its values.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) nbytes: Option<u64>,
    pub(super) version: Option<&'a str>,
    pub(super) function: Option<u64>,
    /// The tensor of a copy, in JSON and for people.
    pub(super) tensor: Option<(Json, String)>,
    pub(super) copied: Option<u64>,
    pub(super) data: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn of(fields: &'a [Field<'a>]) -> Self {
        let outside: Vec<_> = fields.iter().filter(|field| field.item.is_none()).collect();
        let mut parts = Self::default();
        for (at, field) in outside.iter().enumerate() {
            match (field.name, &field.value) {
                ("packet length", FieldValue::Unsigned(nbytes)) => parts.nbytes = Some(*nbytes),
                ("version", FieldValue::Text(text)) => parts.version = Some(text),
                ("function handle", FieldValue::Address(handle)) => parts.function = Some(*handle),
                ("bytes to copy", FieldValue::Unsigned(nbytes)) => parts.copied = Some(*nbytes),
                ("data", FieldValue::Bytes(data)) => parts.data = Some(data),
                ("data pointer", _) => {
                    let end = outside.iter().position(|field| field.name == "byte offset");
                    parts.tensor = end.and_then(|end| tensor(outside.get(at..=end)?));
                }
                _ => {}
            }
        }
        parts
    }
}

/// The reading in full, as recordings have it.
fn decoded(
    code: Option<PacketCode>,
    parts: &Parts<'_>,
    items: &[Item],
    explanation: &Explanation<'_, Option<Packet<'_>>>,
    omitted: u64,
) -> Json {
    let mut decoded = Map::new();
    let mut put = |name: &str, value: Json| {
        decoded.insert(name.to_owned(), value);
    };
    if let Some(nbytes) = parts.nbytes {
        put("nbytes", json!(nbytes));
    }
    if let Some(code) = code {
        put("code", json!(code.0));
        put("code_name", json!(code_name(code)));
    }
    if let Some(version) = parts.version {
        put("version", json!(version));
    }
    if let Some(function) = parts.function {
        put("func", json!(format!("{function:#x}")));
    }
    if let Some((tensor, _)) = &parts.tensor {
        put("tensor", tensor.clone());
    }
    if let Some(nbytes) = parts.copied {
        put("data_bytes", json!(nbytes));
    }
    let counted = explanation.fields.iter();
    let has_values = { counted }.any(|field| field.name == "number of values");
    if has_values {
        put("args", items.iter().map(Item::json).collect());
    }
    if let Some(data) = parts.data {
        put("data", json!(hex_of(data, SHOWN_DATA)));
    } else if code == Some(PacketCode::COPY_ACK) && explanation.result.is_ok() {
        put("data", json!(""));
    }
    match &explanation.result {
        Ok(_) => {}
        Err(DecodeError::Trailing { extra, .. }) => put("trailing", json!(extra)),
        Err(_) if omitted > 0 => {}
        // The packet itself is well formed.
        Err(error @ DecodeError::Argument { .. }) => put("unexpected", json!(error.to_string())),
        Err(error) => put("malformed", json!(error.to_string())),
    }
    let ignored = explanation
        .fields
        .iter()
        .find(|field| field.name == "ignored");
    if let Some(ignored) = ignored {
        put("ignored", json_of(&ignored.value));
    }
    decoded.into()
}

//! The packed values of a packet, from their fields.

use rpc_proto::explain::{Field, FieldValue};
use serde_json::{Map, Value as Json, json};

use super::json_of;

/// A packed value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The number of its type, and its name.
    pub(super) type_code: i64,
    pub(super) type_name: Option<String>,
    /// Where its bytes start and how many they are. They have their type before them in the `ffi`
    /// dialect.
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(crate) value: Json,
    /// The value for people.
    pub(super) text: String,
    is_pointer: bool,
    /// What an integer means that is a code.
    pub(super) meaning: Option<String>,
}

impl Item {
    /// Whether it is an address.
    pub(crate) fn is_pointer(&self) -> bool {
        self.is_pointer
    }

    /// As recordings have it.
    pub(super) fn json(&self) -> Json {
        json!({
            "t": self.type_code,
            "name": self.type_name.clone().unwrap_or_else(|| format!("type{}", self.type_code)),
            "value": self.value,
            "off": self.offset,
            "len": self.len,
        })
    }
}

/// The values of which all fields are there.
pub(super) fn items(fields: &[Field<'_>]) -> Vec<Item> {
    let mut items = Vec::new();
    // Where a value without bytes of its own stands.
    let mut end = fields
        .iter()
        .filter(|field| is_code(field) && field.name != IN_FRONT)
        .map(Field::end)
        .next_back()
        .unwrap_or(0);
    let mut of_items: Vec<_> = fields.iter().filter(|field| field.item.is_some()).collect();
    // The types of all values may stand before the first of them. A search for the fields of each value would
    // take the square of their number.
    of_items.sort_by_key(|field| field.item);
    for (of_item, number) in of_items.chunk_by(|a, b| a.item == b.item).zip(0..) {
        let Some((code, rest)) = of_item.split_first() else {
            break;
        };
        if code.item != Some(number) {
            break;
        }
        let (FieldValue::Int(type_code), true) = (&code.value, is_code(code)) else {
            break;
        };
        let Some((value, text)) = value(*type_code, code, rest) else {
            break;
        };
        let bytes = match code.name {
            IN_FRONT => of_item,
            _ => rest,
        };
        let offset = bytes.first().map_or(end, |field| field.offset);
        end = bytes.last().map_or(end, |field| field.end());
        items.push(Item {
            type_code: *type_code,
            type_name: code.meaning.as_deref().map(str::to_owned),
            offset,
            len: end - offset,
            value,
            text,
            is_pointer: matches!(rest, [single] if single.name == "pointer"),
            meaning: rest
                .first()
                .filter(|field| field.name == "integer")
                .and_then(|field| field.meaning.as_deref().map(str::to_owned)),
        });
    }
    items
}

/// The name of the type's field where it stands in front of its value.
const IN_FRONT: &str = "type index";

fn is_code(field: &Field<'_>) -> bool {
    [IN_FRONT, "type code of a value"].contains(&field.name)
}

/// The value of these fields, if they are complete.
fn value(type_code: i64, code: &Field<'_>, fields: &[&Field<'_>]) -> Option<(Json, String)> {
    let is_none = match code.name {
        IN_FRONT => type_code == 0,
        _ => type_code == 4,
    };
    match fields {
        [] => is_none.then(|| (Json::Null, "nothing".to_owned())),
        [inner, rest @ ..] if inner.name == "inner type index" => {
            let (value, text) = value(type_code, code, rest)?;
            let name = match rest {
                [handle] if handle.name == "object handle" => "handle",
                _ => "value",
            };
            let mut both = Map::new();
            both.insert("inner_type".to_owned(), json_of(&inner.value));
            both.insert(name.to_owned(), value);
            Some((both.into(), text))
        }
        [length, content] if length.name == "length" => {
            Some((json_of(&content.value), content.value.to_string()))
        }
        [single] if single.name != "length" => {
            let text = match single.name {
                "bool" => (json_of(&single.value) != json!(0)).to_string(),
                _ => single.value.to_string(),
            };
            Some((json_of(&single.value), text))
        }
        [kind, id] if kind.name == "device type" => Some(device(kind, id)),
        [_, _, lanes, _padding] if lanes.name == "lanes" => {
            let name = lanes.meaning.as_deref().unwrap_or_default();
            Some((json!(name), name.to_owned()))
        }
        [data, ..] if data.name == "data pointer" => tensor(fields),
        _ => None,
    }
}

fn device(kind: &Field<'_>, id: &Field<'_>) -> (Json, String) {
    let both = json!([json_of(&kind.value), json_of(&id.value)]);
    let name = kind.meaning.as_deref().map(str::to_owned);
    let name = name.unwrap_or_else(|| kind.value.to_string());
    (both, format!("{name}:{}", id.value))
}

/// The tensor of these fields, and what is printed of it, if they are complete.
pub(super) fn tensor(fields: &[&Field<'_>]) -> Option<(Json, String)> {
    let [data, kind, id, ndim, _, _, lanes, rest @ ..] = fields else {
        return None;
    };
    let (offset, shape) = rest.split_last()?;
    if offset.name != "byte offset" {
        return None;
    }
    let (device, device_text) = device(kind, id);
    let dtype = lanes.meaning.as_deref().unwrap_or_default();
    let sizes: Vec<_> = shape.iter().map(|size| size.value.to_string()).collect();
    let mut text = format!("{dtype}[{}] on {device_text}", sizes.join(","));
    if data.value != FieldValue::Address(0) {
        text += &format!(" at {}", data.value);
    }
    if offset.value != FieldValue::Unsigned(0) {
        text += &format!(" + {}", offset.value);
    }
    let json = json!({
        "data": json_of(&data.value),
        "device": device,
        "ndim": json_of(&ndim.value),
        "dtype": dtype,
        "shape": shape.iter().map(|size| json_of(&size.value)).collect::<Json>(),
        "byte_offset": json_of(&offset.value),
    });
    Some((json, text))
}

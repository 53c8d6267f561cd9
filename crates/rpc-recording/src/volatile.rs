//! What of a message differs from run to run.

use std::collections::{HashMap, VecDeque};

use rpc_proto::explain::{Field, FieldValue};
use rpc_proto::handshake::SessionKey;
use serde_json::Value as Json;

use crate::explained::Item;
use crate::{Direction, Volatile};

/// Type indices from here on are given out by each process as it goes.
const FIRST_DYNAMIC: i64 = 128;

fn volatile(offset: u64, len: u64, what: &str) -> Volatile {
    let what = what.to_owned();
    Volatile { offset, len, what }
}

/// Handles and addresses that are not null.
pub(crate) fn of_packet(fields: &[Field<'_>], items: &[Item]) -> Vec<Volatile> {
    let mut found = Vec::new();
    for field in fields {
        let what = match (field.name, field.item) {
            _ if matches!(field.value, FieldValue::Address(0)) => continue,
            ("function handle", None) => "func-handle",
            ("pointer" | "function handle" | "module handle", _) => "handle",
            ("object handle", _) => "object-handle",
            ("data pointer", _) => "tensor-data",
            // The type of an object that a call gave back.
            ("integer", Some(0)) if is_dynamic(items) => "dynamic-type-index",
            ("integer", Some(2)) if is_next_hop(items) => "port",
            _ => continue,
        };
        found.push(volatile(field.offset, field.len, what));
    }
    found
}

fn is_dynamic(items: &[Item]) -> bool {
    match items {
        [first, second] => {
            let index = first.value.as_i64().unwrap_or(0);
            index >= FIRST_DYNAMIC && second.is_pointer()
        }
        _ => false,
    }
}

/// The arguments of the constructor that connects to the next server: its name, host, port and key.
fn is_next_hop(items: &[Item]) -> bool {
    let name = items.first().map(|item| &item.value);
    let name = name.map(|value| value.get("value").unwrap_or(value));
    name.and_then(Json::as_str) == Some("rpc.Connect")
}

/// The match key of a handshake, and with it its length.
pub(crate) fn of_key(key: &str) -> Vec<Volatile> {
    let match_key = match SessionKey::parse(key) {
        Ok(client) if is_random(client.match_key()) => client.match_key().to_owned(),
        _ => return Vec::new(),
    };
    let Some(at) = key.find(&match_key) else {
        return Vec::new();
    };
    vec![
        volatile(4, 4, "len"),
        volatile(8 + at as u64, match_key.len() as u64, "random-key"),
    ]
}

/// Does the key end in a random number, as those do that servers make?
fn is_random(match_key: &str) -> bool {
    let random = match_key.rsplit_once(':').map(|(_, random)| random);
    random.is_some_and(|random| {
        let digits = random.strip_prefix("0.").unwrap_or(random);
        digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Match keys and ports in a tracker's frame.
pub(crate) fn of_frame(text: &[u8], direction: Direction) -> Vec<Volatile> {
    let Ok(json) = serde_json::from_slice::<Json>(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut keys = 0;
    let mut places = places(text);
    let mut put = |value: Option<&Json>, what| {
        let Some(value) = value else { return };
        let wanted = match value {
            Json::String(text) if what == "random-key" && is_random(text) => text.clone(),
            Json::Number(number) if what == "port" => number.to_string(),
            Json::String(text) if what == "port" => text.clone(),
            _ => return,
        };
        let places = places.get_mut(wanted.as_bytes());
        if let Some(at) = places.and_then(VecDeque::pop_front) {
            keys += usize::from(what == "random-key");
            found.push(volatile(4 + at as u64, wanted.len() as u64, what));
        }
    };
    let code = json.get(0).and_then(Json::as_i64);
    match (direction, code) {
        // STOP, PUT, UPDATE_INFO.
        (Direction::C2s, Some(2)) => put(json.get(1), "random-key"),
        (Direction::C2s, Some(3)) => {
            put(json.pointer("/2/0"), "port");
            put(json.pointer("/2/1"), "random-key");
        }
        (Direction::C2s, Some(5)) => put(json.pointer("/1/addr/1"), "port"),
        (Direction::C2s, _) => {}
        (Direction::S2c, Some(0)) => {
            put(json.pointer("/1/1"), "port");
            put(json.pointer("/1/2"), "random-key");
            let servers = json.pointer("/1/server_info").and_then(Json::as_array);
            for server in servers.into_iter().flatten() {
                put(server.pointer("/addr/1"), "port");
            }
        }
        (Direction::S2c, _) => {
            let pending = json.as_array();
            for key in pending.into_iter().flatten() {
                put(Some(key), "random-key");
            }
        }
    }
    if keys > 0 {
        found.insert(0, volatile(0, 4, "len"));
    }
    found
}

/// Where the texts and numbers of a JSON text stand, each by what is written there, in their order. A text
/// is what stands between its quotes.
///
/// All at once, as a reply has as many of them as fit: a search for each would take the square of that.
fn places(json: &[u8]) -> HashMap<&[u8], VecDeque<usize>> {
    let mut places: HashMap<_, VecDeque<_>> = HashMap::new();
    let mut at = 0;
    while let Some(first) = json.get(at) {
        let start = at + usize::from(*first == b'"');
        let len = match first {
            b'"' => len_of_text(&json[start..]),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                json[start..].iter().take_while(|b| is_part(b)).count()
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let end = start + len;
        places
            .entry(&json[start..end])
            .or_default()
            .push_back(start);
        at = end + usize::from(*first == b'"');
    }
    places
}

/// How many bytes there are before the quote that ends a text.
fn len_of_text(text: &[u8]) -> usize {
    let mut escaped = false;
    let is_inside = |byte: &&u8| {
        let ends = **byte == b'"' && !escaped;
        escaped = **byte == b'\\' && !escaped;
        !ends
    };
    text.iter().take_while(is_inside).count()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn texts_and_numbers_of_json_are_found_in_their_order() {
        let json = br#"[0, "a", {"b\"": [-1.5e3, "a", ""]}, "0", tru"#;
        let found = places(json);
        let at = |what: &str| found.get(what.as_bytes()).cloned().unwrap_or_default();
        assert_eq!(at("a"), [5, 27]);
        assert_eq!(at("0"), [1, 38]);
        assert_eq!(at(r#"b\""#), [11]);
        assert_eq!((at("-1.5e3"), at("")), ([18].into(), [32].into()));
        assert_eq!(found.len(), 5);
        assert_eq!(places(br#"["\"#).len(), 1);
    }

    #[test]
    fn a_long_reply_takes_no_square_of_its_length() {
        const KEYS: usize = 100_000;
        let keys: Vec<_> = (0..KEYS).map(|key| format!("k:0.{key:08}")).collect();
        let text = serde_json::to_vec(&keys).unwrap();
        let start = Instant::now();
        let found = of_frame(&text, Direction::S2c);
        // A search for each key would take half an hour.
        assert!(start.elapsed() < Duration::from_secs(60));
        assert_eq!(found.len(), 1 + KEYS);
        assert_eq!(found[1].offset, 4 + 2);
        assert_eq!(found[KEYS].offset, 4 + text.len() as u64 - 2 - 12);
    }
}

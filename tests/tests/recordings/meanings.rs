//! What a message means, and what of it differs from run to run, is what the recorder says.

use rpc_recording::{Explained, Kind, Volatile};
use serde_json::Value as Json;

use crate::traces;

/// Messages that the recorder reads in another way: peer, scenario, number, and in what they differ.
const OTHERWISE: &[(&str, &str, usize, &str)] = &[
    (FFI, "fake_server_replies", 379, BEHIND_TEXT),
    (FFI, "handshake_bad", 32, NOT_UTF8),
    (FFI, "malformed_packets", 63, UNKNOWN_CODE),
    (FFI, "malformed_packets", 71, UNKNOWN_CODE),
    (FFI, "malformed_packets", 128, SHORT),
    (FFI, "session_call_args", 68, NO_NAME),
    (FFI, "session_func_arg_hand", 40, PADDING),
    (LEGACY, "fake_server_replies", 315, BEHIND_TEXT),
    (LEGACY, "handshake_bad", 32, NOT_UTF8),
    (LEGACY, "malformed_packets", 63, UNKNOWN_CODE),
    (LEGACY, "malformed_packets", 71, UNKNOWN_CODE),
    (LEGACY, "malformed_packets", 128, SHORT),
    (LEGACY, "session_func_arg_hand", 30, PADDING),
];
const FFI: &str = "apache-tvm-0.27.0.post1";
const LEGACY: &str = "hhb-tvm-3.2.3";
const BEHIND_TEXT: &str = "it reads what stands behind the text of an exception";
const NOT_UTF8: &str = "it writes a key that is not UTF-8 as Python does";
const UNKNOWN_CODE: &str = "it takes what an unknown packet holds for values";
const SHORT: &str = "it does not say which length was too short";
const NO_NAME: &str = "it has no name for this type of number";
const PADDING: &str = "it shows padding that is not zero";

#[test]
fn meanings_are_those_of_the_recorder() {
    let mut same = [(Kind::Handshake, 0), (Kind::Json, 0), (Kind::Packet, 0)];
    let mut otherwise = Vec::new();
    let mut unlisted = Vec::new();
    for (name, conversation) in traces() {
        for message in &conversation.messages {
            let counted = same.iter_mut().find(|(kind, _)| *kind == message.kind);
            let (Some(recorded), Some((_, count))) = (&message.decoded, counted) else {
                continue;
            };
            let dialect = conversation.connections[message.conn].dialect;
            let explained = Explained::message(message, dialect.unwrap());
            let ours = explained.decoded.unwrap_or_default();
            if as_the_recorder_says(&ours) == without_reasons(recorded) {
                *count += 1;
                continue;
            }
            let (peer, scenario) = name.split_once('/').unwrap();
            let is_it = |listed: &&(&str, &str, usize, &str)| {
                (listed.0, listed.1, listed.2) == (peer, scenario, message.i)
            };
            match OTHERWISE.iter().find(is_it) {
                Some(listed) => otherwise.push(listed),
                None => unlisted.push(format!("{name} {}:\n{recorded}\n{ours}", message.i)),
            }
        }
    }
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
    otherwise.sort();
    assert!(
        otherwise.into_iter().eq(OTHERWISE),
        "all that are listed are needed"
    );
    let counts = [
        (Kind::Handshake, 620),
        (Kind::Json, 334),
        (Kind::Packet, 4023),
    ];
    assert_eq!(same, counts);
}

/// Why a packet is malformed each says in its own words.
fn without_reasons(decoded: &Json) -> Json {
    let mut decoded = decoded.clone();
    if let Some(malformed) = decoded.get_mut("malformed") {
        *malformed = true.into();
    }
    decoded
}

/// Without what the recorder does not say, and with its name of a type.
fn as_the_recorder_says(ours: &Json) -> Json {
    let text = ours.to_string();
    let text = text.replace(r#""dtype":"bool""#, r#""dtype":"bool8""#);
    let text = text.replace(r#""t":5,"value":"bool""#, r#""t":5,"value":"bool8""#);
    let mut said = without_reasons(&text.parse().unwrap());
    if let Some(object) = said.as_object_mut() {
        object.remove("unexpected");
        if object.contains_key("malformed") {
            object.remove("args");
        }
    }
    said
}

/// Things that a message alone shows.
const SHOWN: [&str; 6] = [
    "handle",
    "func-handle",
    "object-handle",
    "tensor-data",
    "dynamic-type-index",
    "port",
];

#[test]
fn handles_addresses_and_ports_are_volatile() {
    let mut found = 0;
    for (name, conversation) in traces() {
        for message in &conversation.messages {
            let shown = |volatile: &[Volatile]| -> Vec<Volatile> {
                let shown = volatile
                    .iter()
                    .filter(|range| SHOWN.contains(&&*range.what));
                shown.cloned().collect()
            };
            let dialect = conversation.connections[message.conn].dialect;
            let ours = shown(&Explained::message(message, dialect.unwrap()).volatile);
            // Peers that were made by hand say some that are always the same.
            for recorded in shown(&message.volatile) {
                assert!(
                    ours.contains(&recorded),
                    "{name} {}: {recorded:?}",
                    message.i
                );
                found += 1;
            }
        }
    }
    assert_eq!(found, 1504);
}

//! The committed files, against what would be generated, the schema, the recorded conversations, our
//! encoder, and bytes that were written by hand.

use std::collections::BTreeMap;

use rpc_proto::codes::HandshakeCode;
use rpc_proto::handshake::{Handshake, explain_answer, explain_opening, put_accept, put_refuse};
use rpc_proto::packet::{encode_returned, explain};
use rpc_proto::tracker::{Reply, Request};
use rpc_proto::{Dialect, Limits, Packet};
use rpc_recording::{About, Direction, Kind, Recorder, RecorderLimits, Volatile, parse_dialect};
use serde_json::{Value as Json, json};

use super::traces::Traces;
use super::vector::{Status, Vector, without_volatile};
use super::{areas, differences, directory, generate};

fn json(path: &std::path::Path) -> Json {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// All committed vectors, under `AREA/NAME`.
fn committed() -> BTreeMap<String, Json> {
    let mut vectors = BTreeMap::new();
    for area in areas() {
        let file = json(&directory().join(format!("messages/{}.json", area.name)));
        for vector in file["vectors"].as_array().unwrap() {
            let name = format!("{}/{}", area.name, vector["name"].as_str().unwrap());
            vectors.insert(name, vector.clone());
        }
    }
    vectors
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn the_files_are_what_would_be_written() {
    let files = generate().unwrap();
    let different = differences(&directory().join("messages"), &files).unwrap();
    assert_eq!(different, [""; 0], "run `cargo xtask vectors`");
}

#[test]
fn there_are_vectors_of_every_message() {
    let committed = committed();
    assert!(committed.len() > 400, "{}", committed.len());
    let cited = committed
        .values()
        .filter(|vector| !vector["trace"].is_null());
    assert!(cited.count() > 250);
    let codes = |dialect: &str| {
        let mut codes: Vec<_> = committed
            .values()
            .filter(|vector| vector["status"] == "canonical")
            .filter(|vector| vector["dialect"].is_null() || vector["dialect"] == dialect)
            .filter_map(|vector| vector["decoded"]["code"].as_i64())
            .collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    };
    for dialect in ["ffi", "legacy"] {
        assert!(codes(dialect).into_iter().eq(1..=21), "{dialect}");
    }
}

#[test]
fn the_files_follow_the_schema() {
    let validator = jsonschema::validator_for(&json(&directory().join("schema.json"))).unwrap();
    let follows = |name: &str, file: &Json| {
        let errors: Vec<_> = validator
            .iter_errors(file)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {}", errors.join("\n"));
    };
    for area in areas() {
        let path = directory().join(format!("messages/{}.json", area.name));
        follows(area.name, &json(&path));
    }
    let mut recorded = 0;
    for peer in std::fs::read_dir(directory().join("traces")).unwrap() {
        for file in std::fs::read_dir(peer.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            follows(&path.display().to_string(), &json(&path));
            recorded += 1;
        }
    }
    assert!(recorded >= 100, "{recorded}");

    let mut recorder = Recorder::new(About::default(), RecorderLimits::default());
    let connection = recorder.connect("", None, None);
    for vector in areas().into_iter().flat_map(|area| area.vectors) {
        let at = std::time::Duration::from_millis(1);
        recorder.pass(connection, vector.direction, &vector.bytes, at);
    }
    let mut text = Vec::new();
    recorder.conversation().write_to(&mut text).unwrap();
    follows("a recording", &serde_json::from_slice(&text).unwrap());
    // And it says no to something.
    assert!(!validator.is_valid(&json!({"vectors": []})));
}

#[test]
fn cited_messages_have_the_same_bytes() {
    let traces = Traces::read(&directory().join("traces")).unwrap();
    for (name, vector) in committed() {
        let Some(cited) = vector.get("trace") else {
            continue;
        };
        let i = usize::try_from(cited["i"].as_u64().unwrap()).unwrap();
        let (message, dialect) = traces.message(cited["file"].as_str().unwrap(), i).unwrap();
        if let Some(expected) = vector["dialect"].as_str() {
            assert_eq!(parse_dialect(expected), Ok(dialect), "{name}");
        }
        assert_eq!(json!(message.kind), vector["kind"], "{name}");
        let volatile = vector.get("volatile").cloned().unwrap_or(json!([]));
        let volatile: Vec<Volatile> = serde_json::from_value(volatile).unwrap();
        let same =
            |bytes: &[u8]| without_volatile(&without_volatile(bytes, &volatile), &message.volatile);
        let ours = bytes(vector["hex"].as_str().unwrap());
        assert_eq!(same(&ours), same(&message.bytes), "{name}");
    }
}

/// What our encoder writes for the meaning of a vector.
fn encoded(vector: &Vector, dialect: Dialect) -> Vec<u8> {
    let limits = Limits::default();
    let mut out = Vec::new();
    match (vector.kind, vector.direction) {
        (Kind::Json, Direction::C2s) => {
            let request = Request::decode(&vector.bytes[4..]).unwrap();
            request.encode(limits, &mut out).unwrap();
        }
        (Kind::Json, Direction::S2c) => {
            let reply = Reply::decode(&vector.bytes[4..]).unwrap();
            reply.encode(limits, &mut out).unwrap();
        }
        (Kind::Handshake, Direction::C2s) => {
            let key = explain_opening(&vector.bytes, limits).result.unwrap();
            Handshake::new(key, limits, &mut out).unwrap();
        }
        (Kind::Handshake, Direction::S2c) => {
            let answer = explain_answer(&vector.bytes, limits).result.unwrap();
            match (answer.code, answer.key) {
                (HandshakeCode::SUCCESS, Some(key)) => put_accept(&key, limits, &mut out).unwrap(),
                (code, _) => put_refuse(code, &mut out),
            }
        }
        (Kind::Packet, _) => {
            let packet = explain(&vector.bytes, dialect, limits)
                .result
                .unwrap()
                .unwrap();
            match packet {
                Packet::Return(values) if vector.answers_call => {
                    let returned = Packet::returned(values, dialect).unwrap();
                    encode_returned(dialect, &returned, limits, &mut out).unwrap();
                }
                packet => {
                    packet.encode(dialect, limits, &mut out).unwrap();
                    let payload = usize::try_from(packet.payload()).unwrap();
                    let data = &vector.bytes[vector.bytes.len() - payload..];
                    out.extend_from_slice(data);
                }
            }
        }
        // Four bytes without a meaning of their own.
        _ => return vector.bytes.clone(),
    }
    out
}

#[test]
fn our_encoder_writes_the_canonical_ones() {
    let mut written = 0;
    for area in areas() {
        for vector in area.vectors {
            if vector.status != Status::Canonical {
                continue;
            }
            for dialect in vector.dialects() {
                let ours = encoded(&vector, dialect);
                let name = format!("{}/{}", area.name, vector.name);
                assert_eq!(
                    ours.escape_ascii().to_string(),
                    vector.bytes.escape_ascii().to_string(),
                    "{name}"
                );
                written += 1;
            }
        }
    }
    assert!(written > 200, "{written}");
}

#[test]
fn what_is_invalid_stops_within_its_bytes() {
    for (name, vector) in committed() {
        let error = &vector["error"];
        if error.is_null() {
            continue;
        }
        let offset = error["offset"].as_u64().unwrap();
        let len = vector["hex"].as_str().unwrap().len() as u64 / 2;
        assert!(offset <= len, "{name}: {offset} of {len}");
        for field in vector["fields"].as_array().unwrap() {
            let end = field["offset"].as_u64().unwrap() + field["len"].as_u64().unwrap();
            assert!(end <= len, "{name}: {field}");
        }
    }
}

/// Vectors as they are in notes that were made of real peers' bytes, without any program: name, bytes, and
/// some of what they mean.
fn by_hand() -> Vec<(&'static str, &'static str, &'static str, Json)> {
    vec![
        ("tracker/greeting", "71f20200", "", json!(null)),
        (
            "tracker/ping",
            "03000000 5b315d",
            "/meaning/request",
            json!("PING"),
        ),
        (
            "tracker/reply-done",
            "01000000 30",
            "/meaning/reply",
            json!("done"),
        ),
        (
            "tracker/reply-refused",
            "02000000 2d31",
            "/decoded",
            json!(-1),
        ),
        (
            "tracker/request",
            "11000000 5b342c2022646576222c2022222c20315d",
            "/meaning",
            json!({"request": "REQUEST", "key": "dev", "user": "", "priority": 1.0}),
        ),
        (
            "handshake/client",
            "71f20f00 09000000 636c69656e743a7831",
            "/meaning/match_key",
            json!("x1"),
        ),
        (
            "handshake/client-timeout",
            "71f20f00 15000000 636c69656e743a7831202d74696d656f75743d3630",
            "/meaning/session_timeout",
            json!(60.0),
        ),
        (
            "handshake/mismatch",
            "73f20f00",
            "/meaning/answer",
            json!("key mismatch"),
        ),
        (
            "packets/shutdown",
            "0400000000000000 01000000",
            "/decoded/code",
            json!(1),
        ),
        (
            "packets/init",
            "1500000000000000 02000000 0500000000000000 302e382e30 00000000",
            "/decoded/version",
            json!("0.8.0"),
        ),
        (
            "packets/copy-from",
            "3c00000000000000 06000000 0020000000000000 01000000 00000000 02000000 02200100 \
             0200000000000000 0300000000000000 0000000000000000 1800000000000000",
            "/decoded/tensor/shape",
            json!([2, 3]),
        ),
        (
            "packets/code-99",
            "0800000000000000 63000000 00000000",
            "/error/offset",
            json!(8),
        ),
        (
            "syscalls-ffi/get-global-func",
            "2300000000000000 09000000 01000000 08000000 0f00000000000000 \
             7270632e746573742e6164646f6e65",
            "/decoded/args/0/value",
            json!("rpc.test.addone"),
        ),
        (
            "syscalls-legacy/get-global-func",
            "2300000000000000 09000000 01000000 0b000000 0f00000000000000 \
             7270632e746573742e6164646f6e65",
            "/decoded/args/0/value",
            json!("rpc.test.addone"),
        ),
        (
            "values-ffi/bytes-empty",
            "2000000000000000 03000000 0010000000000000 01000000 0c000000 42000000 0000000000000000",
            "/decoded/args/0/value",
            json!({"inner_type": 66, "value": ""}),
        ),
        (
            "values-ffi/dtype-float32",
            "1c00000000000000 03000000 0010000000000000 01000000 05000000 02 20 0100 00000000",
            "/decoded/args/0/value",
            json!("float32"),
        ),
        (
            "values-legacy/two-ints",
            "2800000000000000 03000000 0010000000000000 02000000 00000000 00000000 \
             0200000000000000 0300000000000000",
            "/decoded/args/1/value",
            json!(3),
        ),
        (
            "values-ffi/two-ints",
            "2800000000000000 03000000 0010000000000000 02000000 01000000 0200000000000000 \
             01000000 0300000000000000",
            "/decoded/args/1/value",
            json!(3),
        ),
        (
            "returns-ffi/void",
            "0c00000000000000 04000000 01000000 00000000",
            "/decoded/code",
            json!(4),
        ),
        (
            "returns-legacy/void",
            "0c00000000000000 04000000 01000000 04000000",
            "/decoded/code",
            json!(4),
        ),
        (
            "returns-ffi/call-none",
            "1800000000000000 04000000 02000000 01000000 0000000000000000 00000000",
            "/meaning/result/kind",
            json!("none"),
        ),
        (
            "returns-legacy/call-none",
            "1800000000000000 04000000 02000000 00000000 04000000 0400000000000000",
            "/meaning/result/kind",
            json!("none"),
        ),
        (
            "returns-ffi/call-text-7",
            "2700000000000000 04000000 02000000 01000000 0b00000000000000 08000000 \
             0700000000000000 61626364656667",
            "/meaning/result",
            json!({"kind": "text", "value": "abcdefg"}),
        ),
        (
            "returns-legacy/call-text-7",
            "2700000000000000 04000000 02000000 00000000 0b000000 0b00000000000000 \
             0700000000000000 61626364656667",
            "/meaning/result",
            json!({"kind": "text", "value": "abcdefg"}),
        ),
        (
            "returns-ffi/call-tensor",
            "5400000000000000 04000000 03000000 01000000 4600000000000000 07000000 \
             0020000000000000 01000000 00000000 02000000 02200100 0200000000000000 \
             0300000000000000 0000000000000000 04000000 0030000000000000",
            "/meaning/result/handle",
            json!("0x3000"),
        ),
        (
            "returns-ffi/call-object",
            "2000000000000000 04000000 02000000 01000000 4500000000000000 04000000 0030000000000000",
            "/meaning/result",
            json!({"kind": "object", "type": 69, "value": "0x3000"}),
        ),
    ]
}

#[test]
fn bytes_and_meanings_are_those_written_by_hand() {
    let committed = committed();
    for (name, hex, pointer, meaning) in by_hand() {
        let vector = &committed[name];
        assert_eq!(
            vector["hex"],
            hex.replace(char::is_whitespace, ""),
            "{name}"
        );
        if !pointer.is_empty() {
            assert_eq!(vector.pointer(pointer), Some(&meaning), "{name}");
        }
    }
}

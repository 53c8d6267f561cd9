//! Broken trackers.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{Defect, Memory, Out, Twist, Way, on};
use crate::case::Role;
use crate::roles::tracker::{frame, spaced};

const fn defect(
    name: &'static str,
    what: &'static str,
    found_by: &'static [&'static str],
    twist: Twist,
) -> Defect {
    Defect {
        name,
        role: Role::Tracker,
        what,
        found_by,
        twist,
    }
}

pub(super) const DEFECTS: &[Defect] = &[
    defect(
        "magic-reversed",
        "answers the magic with its bytes the other way round",
        &["TRK-HELLO-001"],
        Twist::Messages(magic_reversed),
    ),
    defect(
        "no-greeting",
        "never answers the magic",
        &["TRK-HELLO-001", "TRK-HELLO-008"],
        Twist::Messages(no_greeting),
    ),
    defect(
        "any-magic",
        "takes any four bytes for the magic",
        &["TRK-HELLO-002"],
        Twist::Messages(any_magic),
    ),
    defect(
        "early-close",
        "closes after the greeting",
        &["TRK-FRAME-001", "TRK-PUT-001"],
        Twist::Messages(early_close),
    ),
    defect(
        "missing-flush",
        "keeps each answer back until the next one",
        &["TRK-FRAME-001", "TRK-PUT-001"],
        Twist::Messages(missing_flush),
    ),
    defect(
        "wrong-status",
        "answers 1 where 0 is meant",
        &["TRK-PUT-001", "TRK-INFO-001"],
        Twist::Messages(wrong_status),
    ),
    defect(
        "blank-behind-status",
        "writes a blank behind 0",
        &["TRK-FRAME-016"],
        Twist::Messages(blank_behind_status),
    ),
    defect(
        "big-endian-length",
        "writes lengths with their greatest byte first",
        &["TRK-FRAME-001"],
        Twist::Messages(big_endian_length),
    ),
    defect(
        "length-with-itself",
        "counts the length field in the length",
        &["TRK-FRAME-001"],
        Twist::Messages(length_with_itself),
    ),
    defect(
        "only-whole-frames",
        "takes what one read gives for a frame",
        &["TRK-FRAME-002", "TRK-FRAME-003"],
        Twist::OnlyWholeMessages,
    ),
    defect(
        "one-frame-a-read",
        "forgets what came behind the first frame of a read",
        &["TRK-FRAME-004", "TRK-FRAME-005"],
        Twist::OneMessageAPiece,
    ),
    defect(
        "blanks-refused",
        "ends on blanks that Python does not write",
        &["TRK-FRAME-012"],
        Twist::Messages(blanks_refused),
    ),
    defect(
        "escapes-kept",
        "does not read escapes in keys",
        &["TRK-FRAME-014"],
        Twist::Messages(escapes_kept),
    ),
    defect(
        "match-key-escaped",
        "writes match keys as escapes",
        &["TRK-FRAME-017"],
        Twist::Messages(match_key_escaped),
    ),
    defect(
        "unknown-codes-are-fine",
        "answers unknown codes by 0",
        &["TRK-BAD-001"],
        Twist::Messages(unknown_codes_are_fine),
    ),
    defect(
        "silent-on-nonsense",
        "says nothing to what is not JSON",
        &["TRK-BAD-007"],
        Twist::Messages(silent_on_nonsense),
    ),
    defect(
        "address-lost",
        "hands out the address of the connection instead of the given one",
        &["TRK-PUT-005"],
        Twist::Messages(address_lost),
    ),
    defect(
        "swapped-fields",
        "grants [port, host, match key]",
        &["TRK-PUT-002", "TRK-PUT-003"],
        Twist::Messages(swapped_fields),
    ),
    defect(
        "port-of-16-signed-bits",
        "keeps ports in 16 signed bits",
        &["TRK-PUT-016"],
        Twist::Messages(port_of_16_signed_bits),
    ),
    defect(
        "keys-without-case",
        "takes keys in capitals for the same",
        &["TRK-QUEUE-012"],
        Twist::Messages(keys_without_case),
    ),
    defect(
        "priority-lost",
        "takes all priorities for 1",
        &["TRK-QUEUE-003", "TRK-QUEUE-004"],
        Twist::Messages(priority_lost),
    ),
    defect(
        "priority-turned",
        "serves the least priority first",
        &["TRK-QUEUE-003", "TRK-QUEUE-005"],
        Twist::Messages(priority_turned),
    ),
    defect(
        "order-lost",
        "serves who came last first",
        &["TRK-QUEUE-002", "TRK-QUEUE-014"],
        Twist::Messages(order_lost),
    ),
    defect(
        "grant-without-device",
        "grants a device that nobody put",
        &["TRK-QUEUE-001"],
        Twist::Messages(grant_without_device),
    ),
    defect(
        "ends-unnoticed",
        "does not notice that connections end",
        &["TRK-LIFE-001", "TRK-LIFE-006", "TRK-INFO-010"],
        Twist::EndsAreKept,
    ),
    defect(
        "one-at-a-time",
        "serves one connection at a time",
        &["TRK-HELLO-005"],
        Twist::OneAtATime,
    ),
    defect(
        "status-before-left",
        "puts a status before the match keys that are left",
        &["TRK-LEFT-001", "TRK-LEFT-002"],
        Twist::Messages(status_before_left),
    ),
    defect(
        "left-forgotten",
        "says that no match keys are left",
        &["TRK-LEFT-002"],
        Twist::Messages(left_forgotten),
    ),
    defect(
        "counts-swapped",
        "swaps the free and the pending",
        &["TRK-SUM-002"],
        Twist::Messages(counts_swapped),
    ),
    defect(
        "null-kept",
        "leaves null in the addresses of servers",
        &["TRK-INFO-003"],
        Twist::Messages(null_kept),
    ),
    defect(
        "servers-unlisted",
        "lists no servers",
        &["TRK-INFO-002", "TRK-SUM-006"],
        Twist::Messages(servers_unlisted),
    ),
    defect(
        "any-stop-key",
        "ends on any stop key",
        &["TRK-STOP-001"],
        Twist::Messages(any_stop_key),
    ),
];

pub(super) fn parsed(message: &[u8]) -> Option<Value> {
    serde_json::from_slice(message.get(4..)?).ok()
}

pub(super) fn written(value: &Value) -> Vec<u8> {
    frame(spaced(value).as_bytes())
}

/// Changes a request with this code.
fn request(way: Way, message: Vec<u8>, code: u64, change: impl FnOnce(&mut Value)) -> Vec<Out> {
    match parsed(&message) {
        Some(mut value) if way == Way::Request && value[0] == json!(code) => {
            change(&mut value);
            on(written(&value))
        }
        _ => on(message),
    }
}

/// Changes an answer that is one.
fn answer(way: Way, message: Vec<u8>, change: impl FnOnce(&mut Value)) -> Vec<Out> {
    match parsed(&message) {
        Some(mut value) if way == Way::Answer => {
            change(&mut value);
            on(written(&value))
        }
        _ => on(message),
    }
}

/// Replaces an element, if there is one.
pub(super) fn set(array: &mut Value, at: usize, change: impl FnOnce(&Value) -> Value) {
    if let Some(element) = array.get_mut(at) {
        *element = change(element);
    }
}

/// Host, port and match key, if the answer is a grant.
fn grant(answer: &mut Value) -> Option<&mut Vec<Value>> {
    let grant = answer.get_mut(1)?.as_array_mut()?;
    (grant.len() == 3).then_some(grant)
}

fn is_status(message: &[u8]) -> bool {
    message == frame(b"0")
}

fn magic_reversed(memory: &mut Memory, way: Way, mut message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && memory.is_first(way) {
        message.reverse();
    }
    on(message)
}

fn no_greeting(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && memory.is_first(way) {
        return Vec::new();
    }
    on(message)
}

fn any_magic(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request && memory.is_first(way) {
        return on(rpc_proto::codes::TRACKER_MAGIC.to_le_bytes().to_vec());
    }
    on(message)
}

fn early_close(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request && !memory.is_first(way) {
        return vec![Out::End];
    }
    on(message)
}

fn missing_flush(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && !memory.is_first(way) {
        return on(std::mem::replace(&mut memory.held, message));
    }
    on(message)
}

fn wrong_status(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && is_status(&message) {
        return on(frame(b"1"));
    }
    on(message)
}

fn blank_behind_status(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && is_status(&message) {
        return on(frame(b"0 "));
    }
    on(message)
}

fn big_endian_length(memory: &mut Memory, way: Way, mut message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && !memory.is_first(way) {
        message[..4].reverse();
    }
    on(message)
}

fn length_with_itself(memory: &mut Memory, way: Way, mut message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && !memory.is_first(way) {
        message[0] = message[0].wrapping_add(4);
    }
    on(message)
}

fn blanks_refused(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let odd =
        |text: &[u8]| text.first().is_some_and(u8::is_ascii_whitespace) || text.contains(&b'\n');
    if way == Way::Request && message.get(4..).is_some_and(odd) {
        return vec![Out::End];
    }
    on(message)
}

fn escapes_kept(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer || memory.is_first(way) {
        return on(message);
    }
    let text = String::from_utf8_lossy(&message[4..]).replace(r"\u", r"\\u");
    on(frame(text.as_bytes()))
}

fn match_key_escaped(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request {
        return on(message);
    }
    let text = String::from_utf8_lossy(message.get(4..).unwrap_or_default()).into_owned();
    if text.contains("rasp4b") {
        return on(frame(text.replace('r', r"\u0072").as_bytes()));
    }
    on(message)
}

fn unknown_codes_are_fine(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let code = parsed(&message).and_then(|request| request[0].as_i64());
    if way == Way::Request && code.is_some_and(|code| !(1..=7).contains(&code)) {
        return vec![Out::Back(frame(b"0"))];
    }
    on(message)
}

fn silent_on_nonsense(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request && !memory.is_first(way) && parsed(&message).is_none() {
        return Vec::new();
    }
    on(message)
}

fn address_lost(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    request(way, message, 3, |put| set(put, 3, |_| Value::Null))
}

fn swapped_fields(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    answer(way, message, |answer| {
        if let Some(grant) = grant(answer) {
            grant.swap(0, 1);
        }
    })
}

fn port_of_16_signed_bits(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    answer(way, message, |answer| {
        if let Some(port) = grant(answer).map(|grant| &mut grant[1]) {
            let bits = port.as_u64().and_then(|port| u16::try_from(port).ok());
            *port = json!(bits.map(u16::cast_signed));
        }
    })
}

fn keys_without_case(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let lower = |key: &Value| json!(key.as_str().map(str::to_lowercase));
    match parsed(&message) {
        Some(mut value) if way == Way::Request && [json!(3), json!(4)].contains(&value[0]) => {
            set(&mut value, 1, lower);
            on(written(&value))
        }
        _ => on(message),
    }
}

fn priority_lost(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    request(way, message, 4, |request| set(request, 3, |_| json!(1)))
}

fn priority_turned(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    request(way, message, 4, |request| {
        set(request, 3, |priority| {
            json!(priority.as_i64().map(|priority| -priority))
        });
    })
}

fn order_lost(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let later = memory.shared.fetch_add(1, Ordering::Relaxed);
    request(way, message, 4, |request| set(request, 3, |_| json!(later)))
}

fn grant_without_device(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let asks = parsed(&message).is_some_and(|request| request[0] == json!(4));
    if way == Way::Request && asks {
        return vec![
            Out::Back(written(&json!([0, ["127.0.0.1", 9090, "made-up"]]))),
            Out::On(message),
        ];
    }
    on(message)
}

/// What a request of the code 7 is answered by is an array of texts, which no other answer is.
fn left(way: Way, message: Vec<u8>, change: impl FnOnce(Value) -> Value) -> Vec<Out> {
    answer(way, message, |answer| {
        let texts = answer
            .as_array()
            .is_some_and(|keys| keys.iter().all(Value::is_string));
        if texts {
            *answer = change(answer.take());
        }
    })
}

fn status_before_left(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    left(way, message, |keys| json!([0, keys]))
}

fn left_forgotten(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    left(way, message, |_| json!([]))
}

fn counts_swapped(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    answer(way, message, |answer| {
        let queues = answer
            .get_mut(1)
            .and_then(|summary| summary.get_mut("queue_info"));
        for (_, counts) in queues.and_then(Value::as_object_mut).into_iter().flatten() {
            *counts = json!({"free": counts["pending"], "pending": counts["free"]});
        }
    })
}

fn servers(answer: &mut Value) -> Option<&mut Vec<Value>> {
    answer.get_mut(1)?.get_mut("server_info")?.as_array_mut()
}

fn null_kept(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    answer(way, message, |answer| {
        for server in servers(answer).into_iter().flatten() {
            server["addr"] = json!([null, server["addr"][1]]);
        }
    })
}

fn servers_unlisted(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    answer(way, message, |answer| {
        if let Some(servers) = servers(answer) {
            servers.clear();
        }
    })
}

fn any_stop_key(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let stops = parsed(&message).is_some_and(|request| request[0] == json!(2));
    if way == Way::Request && stops {
        return vec![Out::Back(frame(b"0")), Out::End];
    }
    on(message)
}

//! Broken clients. A relay stands between the client and the tracker, and others between it and the
//! servers that it is granted.

use std::sync::atomic::Ordering;

use rpc_proto::codes::{PacketCode, TRACKER_MAGIC};
use rpc_proto::{Packet, Syscall, Value};
use serde_json::{Value as Json, json};

use super::server::{bytes, packet, timeout_lost};
use super::tracker::{parsed, set, written};
use super::{Defect, Memory, Out, Twist, Way, on};
use crate::case::Role;
use crate::roles::server::introduction;

const fn defect(
    name: &'static str,
    what: &'static str,
    found_by: &'static [&'static str],
    twist: Twist,
) -> Defect {
    Defect {
        name,
        role: Role::Client,
        what,
        found_by,
        twist,
    }
}

pub(super) const DEFECTS: &[Defect] = &[
    defect(
        "greeting-not-awaited",
        "sends its request with the tracker's magic",
        &["CLI-ASK-001"],
        Twist::Messages(greeting_not_awaited),
    ),
    defect(
        "swapped-fields",
        "asks for the user's name, in the name of the key",
        &["CLI-ASK-003"],
        Twist::Messages(swapped_fields),
    ),
    defect(
        "priority-lost",
        "sends 1 as priority, whatever it was told",
        &["CLI-ASK-005"],
        Twist::Messages(priority_lost),
    ),
    defect(
        "asks-twice",
        "sends its request twice",
        &["CLI-ASK-007"],
        Twist::Messages(asks_twice),
    ),
    defect(
        "gives-up",
        "does not ask a second time",
        &["CLI-RETRY-001", "CLI-BORROW-006"],
        Twist::Messages(gives_up),
    ),
    defect(
        "wrong-match-key",
        "names another match key than it was granted",
        &["CLI-ASK-012", "CLI-SHAKE-001"],
        Twist::Messages(wrong_match_key),
    ),
    defect(
        "wrong-magic",
        "begins its handshake with the tracker's magic",
        &["CLI-SHAKE-001"],
        Twist::Messages(wrong_magic),
    ),
    defect(
        "handshake-not-awaited",
        "sends the init packet with the handshake",
        &["CLI-SHAKE-002"],
        Twist::Messages(handshake_not_awaited),
    ),
    defect(
        "timeout-lost",
        "does not say how long its session may last",
        &["CLI-SHAKE-003"],
        Twist::Messages(timeout_unsaid),
    ),
    defect(
        "timeout-with-point",
        "writes whole seconds with a point",
        &["CLI-SHAKE-004"],
        Twist::Messages(timeout_with_point),
    ),
    defect(
        "wrong-version",
        "names another version of the protocol",
        &["CLI-INIT-001"],
        Twist::Messages(wrong_version),
    ),
    defect(
        "constructor-lost",
        "does not send the constructor",
        &["CLI-INIT-003"],
        Twist::Messages(constructor_lost),
    ),
    defect(
        "constructor-reversed",
        "sends the constructor's arguments in the wrong order",
        &["CLI-INIT-003"],
        Twist::Messages(constructor_reversed),
    ),
    defect(
        "arguments-reversed",
        "sends arguments in the wrong order",
        &["CLI-CALL-002"],
        Twist::Messages(arguments_reversed),
    ),
    defect(
        "integers-as-floats",
        "sends integers as floats",
        &["CLI-CALL-002"],
        Twist::Messages(integers_as_floats),
    ),
    defect(
        "null-freed",
        "frees the null handle",
        &["CLI-CALL-003"],
        Twist::Messages(null_freed),
    ),
    defect(
        "free-lost",
        "does not free handles",
        &["CLI-FREE-002"],
        Twist::Messages(free_lost),
    ),
    defect(
        "free-twice",
        "frees each handle twice",
        &["CLI-FREE-001"],
        Twist::Messages(free_twice),
    ),
    defect(
        "memory-kept",
        "does not free the memory of tensors",
        &["CLI-MEM-003"],
        Twist::Messages(memory_kept),
    ),
    defect(
        "bytes-swapped",
        "sends the bytes of tensors the other way round",
        &["CLI-MEM-001"],
        Twist::Messages(bytes_swapped),
    ),
    defect(
        "shutdown-lost",
        "closes without a shutdown",
        &["CLI-END-002"],
        Twist::Messages(shutdown_lost),
    ),
    defect(
        "stays",
        "does not close its connection",
        &["CLI-END-001"],
        Twist::EndsAreKept,
    ),
];

/// Changes the client's request to the tracker.
fn request(
    memory: &Memory,
    way: Way,
    message: Vec<u8>,
    change: impl FnOnce(&mut Json),
) -> Vec<Out> {
    match parsed(&message) {
        Some(mut value) if !memory.in_session && way == Way::Request && value[0] == json!(4) => {
            change(&mut value);
            on(written(&value))
        }
        _ => on(message),
    }
}

/// Changes a packet of the client.
fn packets(
    memory: &Memory,
    way: Way,
    message: Vec<u8>,
    change: impl FnOnce(&mut Packet<'_>),
) -> Vec<Out> {
    if memory.in_session
        && way == Way::Request
        && let Some(mut packet) = packet(&message)
    {
        change(&mut packet);
        return on(bytes(&packet));
    }
    on(message)
}

/// The key of the handshake, if the message is one.
fn handshake_key(memory: &Memory, way: Way, message: &[u8]) -> Option<Vec<u8>> {
    let is_one = memory.in_session && way == Way::Request && memory.is_first(way);
    is_one.then(|| message.get(8..).unwrap_or_default().to_vec())
}

/// Answers the first message of a connection itself, and sends it on with the second.
fn not_awaited(memory: &mut Memory, way: Way, message: Vec<u8>, answer: Vec<u8>) -> Vec<Out> {
    match (way, memory.requests, memory.answers) {
        (Way::Request, 0, _) => {
            memory.held = message;
            vec![Out::Back(answer)]
        }
        (Way::Request, 1, _) => {
            let held = std::mem::take(&mut memory.held);
            on([held, message].concat())
        }
        (Way::Answer, _, 0) => Vec::new(),
        _ => on(message),
    }
}

fn greeting_not_awaited(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if memory.in_session {
        return on(message);
    }
    not_awaited(memory, way, message, TRACKER_MAGIC.to_le_bytes().to_vec())
}

fn handshake_not_awaited(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if !memory.in_session {
        return on(message);
    }
    // The answer looks like a handshake, but that the key is the server's.
    not_awaited(memory, way, message, introduction(b"server:key"))
}

fn swapped_fields(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    request(memory, way, message, |request| {
        if let Some(fields) = request.as_array_mut().filter(|fields| fields.len() > 2) {
            fields.swap(1, 2);
        }
    })
}

fn priority_lost(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    request(memory, way, message, |request| {
        set(request, 3, |_| json!(1));
    })
}

fn asks_twice(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let asks = parsed(&message).is_some_and(|request| request[0] == json!(4));
    if !memory.in_session && way == Way::Request && asks {
        return vec![Out::On(message.clone()), Out::On(message)];
    }
    on(message)
}

fn gives_up(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let asks = parsed(&message).is_some_and(|request| request[0] == json!(4));
    if memory.in_session || way == Way::Answer {
        return on(message);
    }
    let before = memory.shared.fetch_add(asks.into(), Ordering::Relaxed);
    if before > 0 {
        vec![Out::End]
    } else {
        on(message)
    }
}

fn wrong_match_key(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    match handshake_key(memory, way, &message) {
        Some(_) => on(introduction(b"client:made-up")),
        None => on(message),
    }
}

fn wrong_magic(memory: &mut Memory, way: Way, mut message: Vec<u8>) -> Vec<Out> {
    if handshake_key(memory, way, &message).is_some() {
        message[..4].copy_from_slice(&TRACKER_MAGIC.to_le_bytes());
    }
    on(message)
}

fn timeout_unsaid(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if memory.in_session {
        timeout_lost(memory, way, message)
    } else {
        on(message)
    }
}

fn timeout_with_point(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    match handshake_key(memory, way, &message) {
        Some(key) if key.windows(10).any(|window| window == b" -timeout=") => {
            on(introduction(&[&key[..], b".0"].concat()))
        }
        _ => on(message),
    }
}

fn wrong_version(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    packets(memory, way, message, |packet| {
        if let Packet::Init { version, .. } = packet {
            *version = "0.7.0".into();
        }
    })
}

fn constructor_lost(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    packets(memory, way, message, |packet| {
        if let Packet::Init { constructor, .. } = packet {
            *constructor = std::iter::empty().collect();
        }
    })
}

fn constructor_reversed(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    packets(memory, way, message, |packet| {
        if let Packet::Init { constructor, .. } = packet {
            *constructor = constructor.iter().rev().cloned().collect();
        }
    })
}

fn arguments(
    memory: &Memory,
    way: Way,
    message: Vec<u8>,
    change: impl FnOnce(Vec<Value<'_>>) -> Vec<Value<'_>>,
) -> Vec<Out> {
    packets(memory, way, message, |packet| {
        if let Packet::Call { args, .. } = packet {
            *args = change(args.iter().cloned().collect()).into_iter().collect();
        }
    })
}

fn arguments_reversed(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    arguments(memory, way, message, |args| {
        args.into_iter().rev().collect()
    })
}

fn integers_as_floats(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    arguments(memory, way, message, |args| {
        let changed = args.into_iter().map(|arg| match arg {
            Value::Int(value) => Value::Float(i32::try_from(value).map_or(0.5, f64::from)),
            arg => arg,
        });
        changed.collect()
    })
}

fn is(memory: &Memory, way: Way, message: &[u8], code: PacketCode) -> bool {
    memory.in_session && way == Way::Request && super::answered_code(message) == Some(code.0)
}

/// Answers a request itself, by nothing, and does not send it on.
fn kept_back(memory: &mut Memory, way: Way, message: Vec<u8>, code: PacketCode) -> Vec<Out> {
    if is(memory, way, &message, code) {
        memory.unanswered.pop_back();
        return vec![Out::Back(bytes(&Packet::void()))];
    }
    on(message)
}

fn free_lost(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    kept_back(memory, way, message, PacketCode::FREE_HANDLE)
}

fn memory_kept(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    kept_back(memory, way, message, PacketCode::DEV_FREE_DATA)
}

/// A code that no packet has: the mark of an answer that is for the relay alone.
const OWN: i32 = -1;

fn free_twice(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if is(memory, way, &message, PacketCode::FREE_HANDLE) {
        memory.unanswered.push_back(OWN);
        return vec![Out::On(message.clone()), Out::On(message)];
    }
    not_own(memory, way, message)
}

fn not_own(memory: &Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let own = memory.unanswered.front() == Some(&OWN);
    if memory.in_session && way == Way::Answer && own {
        return Vec::new();
    }
    on(message)
}

fn null_freed(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let looked_up = memory.unanswered.front() == Some(&PacketCode::GET_GLOBAL_FUNC.0);
    if memory.in_session
        && way == Way::Answer
        && looked_up
        && let Some(Packet::Return(values)) = packet(&message)
        && values[..] == [Value::Pointer(0)]
    {
        memory.unanswered.push_back(OWN);
        let (handle, kind) = (0, None);
        let free = bytes(&Packet::Syscall(Syscall::FreeHandle { handle, kind }));
        return vec![Out::On(message), Out::Back(free)];
    }
    not_own(memory, way, message)
}

fn bytes_swapped(memory: &mut Memory, way: Way, mut message: Vec<u8>) -> Vec<Out> {
    if is(memory, way, &message, PacketCode::COPY_TO_REMOTE)
        && let Some(offset) = super::server::offset_of_copy(&message)
    {
        // Behind the byte offset and the number of bytes.
        message[offset.end + 8..].reverse();
    }
    on(message)
}

fn shutdown_lost(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let shutdown = message.get(8..12) == Some(&PacketCode::SHUTDOWN.0.to_le_bytes());
    if memory.in_session && way == Way::Request && shutdown && !memory.is_first(way) {
        return Vec::new();
    }
    on(message)
}

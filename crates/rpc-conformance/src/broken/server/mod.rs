//! Broken servers.

mod handshake;
mod memory;

use rpc_proto::codes::PacketCode;
use rpc_proto::{Dialect, Limits, Packet, Value};

pub(super) use handshake::timeout_lost;
pub(super) use memory::offset_of_copy;

use super::{Defect, Memory, Out, Twist, Way, on};
use crate::case::Role;

const fn defect(
    name: &'static str,
    what: &'static str,
    found_by: &'static [&'static str],
    twist: Twist,
) -> Defect {
    Defect {
        name,
        role: Role::Server,
        what,
        found_by,
        twist,
    }
}

pub(super) const DEFECTS: &[Defect] = &[
    defect(
        "missing-flush",
        "keeps each reply back until the next one",
        &["SRV-INIT-001", "SRV-CALL-001"],
        Twist::Messages(missing_flush),
    ),
    defect(
        "early-close",
        "closes behind the handshake",
        &["SRV-INIT-001"],
        Twist::Messages(early_close),
    ),
    defect(
        "order-lost",
        "swaps replies of requests that came together",
        &["SRV-FRAME-007"],
        Twist::Messages(order_lost),
    ),
    defect(
        "reply-twice",
        "sends the reply of a call twice",
        &["SRV-CALL-010"],
        Twist::Messages(reply_twice),
    ),
    defect(
        "init-unanswered",
        "does not answer the init packet",
        &["SRV-INIT-001"],
        Twist::Messages(init_unanswered),
    ),
    defect(
        "version-unchecked",
        "takes any version",
        &["SRV-INIT-003"],
        Twist::Messages(version_unchecked),
    ),
    defect(
        "constructor-lost",
        "opens a local session whatever the constructor is",
        &["SRV-INIT-008", "SRV-INIT-011"],
        Twist::Messages(constructor_lost),
    ),
    defect(
        "everything-is-found",
        "gives a handle for names that it does not know",
        &["SRV-CALL-002"],
        Twist::Messages(everything_is_found),
    ),
    defect(
        "exception-as-nothing",
        "answers by nothing where a function failed",
        &["SRV-EXC-001", "SRV-EXC-010"],
        Twist::Messages(exception_as_nothing),
    ),
    defect(
        "exception-ends",
        "ends the session behind an exception",
        &["SRV-EXC-003"],
        Twist::Messages(exception_ends),
    ),
    defect(
        "exception-without-text",
        "says nothing in its exceptions",
        &["SRV-EXC-001", "SRV-EXC-005"],
        Twist::Messages(exception_without_text),
    ),
    defect(
        "exception-with-trace",
        "writes a class before the message of an exception",
        &["SRV-EXC-002"],
        Twist::Messages(exception_with_trace),
    ),
    defect(
        "integers-of-32-bits",
        "keeps integers in 32 bits",
        &["SRV-CALL-001"],
        Twist::Messages(integers_of_32_bits),
    ),
    defect(
        "truth-as-integer",
        "gives truth values back as integers",
        &["SRV-VAL-003"],
        Twist::Messages(truth_as_integer),
    ),
    defect(
        "floats-of-32-bits",
        "keeps floats in 32 bits",
        &["SRV-VAL-005"],
        Twist::Messages(floats_of_32_bits),
    ),
    defect(
        "nothing-as-one-value",
        "answers a call that gives nothing by one value",
        &["SRV-VAL-051"],
        Twist::Messages(nothing_as_one_value),
    ),
    defect(
        "wrong-type-index",
        "writes the type index of long texts before short ones' bytes",
        &["SRV-VAL-053"],
        Twist::Messages(wrong_type_index),
    ),
    defect(
        "unknown-codes-are-fine",
        "answers unknown packets by nothing",
        &["SRV-BAD-001", "SRV-BAD-002"],
        Twist::Messages(unknown_codes_are_fine),
    ),
    defect(
        "frees-nothing",
        "does not give up handles",
        &["SRV-CALL-012", "SRV-HANDLE-008"],
        Twist::Messages(frees_nothing),
    ),
    defect(
        "shutdown-ignored",
        "keeps the connection open behind a shutdown",
        &["SRV-END-001"],
        Twist::Messages(shutdown_ignored),
    ),
    defect(
        "empty-packets-end",
        "ends on a packet of no bytes",
        &["SRV-FRAME-001"],
        Twist::Messages(empty_packets_end),
    ),
    defect(
        "only-whole-packets",
        "takes what one read gives for a packet",
        &["SRV-FRAME-002", "SRV-FRAME-012", "SRV-COPY-008"],
        Twist::OnlyWholeMessages,
    ),
    defect(
        "one-packet-a-read",
        "forgets what came behind the first packet of a read",
        &["SRV-FRAME-005"],
        Twist::OneMessageAPiece,
    ),
    defect(
        "any-match-key",
        "takes clients with any match key",
        &["SRV-HELLO-012", "SRV-HELLO-013"],
        Twist::Messages(handshake::any_match_key),
    ),
    defect(
        "mismatch-as-duplicate",
        "says duplicate where it means mismatch",
        &["SRV-HELLO-012"],
        Twist::Messages(handshake::mismatch_as_duplicate),
    ),
    defect(
        "key-missing",
        "does not send its key behind the code",
        &["SRV-HELLO-001"],
        Twist::Messages(handshake::key_missing),
    ),
    defect(
        "handshake-unanswered",
        "does not answer the handshake",
        &["SRV-HELLO-001"],
        Twist::Messages(handshake::handshake_unanswered),
    ),
    defect(
        "timeout-lost",
        "does not read the options behind the match key",
        &["SRV-TIME-001"],
        Twist::Messages(handshake::timeout_lost),
    ),
    defect(
        "offset-lost-up",
        "writes to the start of a tensor whatever its byte offset is",
        &["SRV-COPY-004"],
        Twist::Messages(memory::offset_lost_up),
    ),
    defect(
        "offset-lost-down",
        "reads from the start of a tensor whatever its byte offset is",
        &["SRV-COPY-005"],
        Twist::Messages(memory::offset_lost_down),
    ),
    defect(
        "copy-one-byte-short",
        "sends one byte less than it was asked for",
        &["SRV-COPY-001"],
        Twist::Messages(memory::copy_one_byte_short),
    ),
    defect(
        "copy-with-length",
        "writes the length again before the bytes of a copy",
        &["SRV-COPY-007"],
        Twist::Messages(memory::copy_with_length),
    ),
    defect(
        "null-memory",
        "gives null for memory",
        &["SRV-MEM-001"],
        Twist::Messages(memory::null_memory),
    ),
    defect(
        "no-processor",
        "says that there is no processor",
        &["SRV-DEV-001"],
        Twist::Messages(memory::no_processor),
    ),
    defect(
        "scope-lost",
        "takes any memory scope",
        &["SRV-MEM-004"],
        Twist::Messages(memory::scope_lost),
    ),
    defect(
        "evaluator-in-text",
        "gives times as text",
        &["SRV-EVAL-001"],
        Twist::Messages(evaluator_in_text),
    ),
];

/// The packet that a message is, if it is a whole one in this dialect.
pub(super) fn packet(message: &[u8]) -> Option<Packet<'_>> {
    super::answered_code(message)?;
    Packet::decode(
        message,
        0,
        Dialect::Ffi,
        Limits::default().with_packet(u64::MAX),
    )
    .ok()
}

pub(super) fn bytes(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read can be written, so that nothing is lost here.
    let _ = packet.encode(Dialect::Ffi, Limits::default(), &mut bytes);
    bytes
}

fn code(message: &[u8]) -> Option<PacketCode> {
    super::answered_code(message).map(PacketCode)
}

/// What a reply is the answer to.
fn answers(memory: &Memory, code: PacketCode) -> bool {
    memory.unanswered.front() == Some(&code.0)
}

/// Changes the values of a reply.
fn values(
    way: Way,
    message: Vec<u8>,
    change: impl FnOnce(Vec<Value<'_>>) -> Vec<Value<'_>>,
) -> Vec<Out> {
    if way == Way::Answer
        && let Some(Packet::Return(values)) = packet(&message)
    {
        let changed = change(values.into_iter().collect());
        return on(bytes(&Packet::Return(changed.into_iter().collect())));
    }
    on(message)
}

fn void() -> Vec<u8> {
    bytes(&Packet::void())
}

fn missing_flush(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && !memory.is_first(way) {
        return on(std::mem::replace(&mut memory.held, message));
    }
    on(message)
}

fn early_close(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request && !memory.is_first(way) {
        return vec![Out::End];
    }
    on(message)
}

fn order_lost(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request || memory.is_first(way) {
        return on(message);
    }
    if memory.held.is_empty() && memory.unanswered.len() > 1 {
        memory.held = message;
        return Vec::new();
    }
    vec![Out::On(message), Out::On(std::mem::take(&mut memory.held))]
}

fn reply_twice(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && answers(memory, PacketCode::CALL_FUNC) {
        return vec![Out::On(message.clone()), Out::On(message)];
    }
    on(message)
}

fn init_unanswered(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && answers(memory, PacketCode::INIT_SERVER) {
        return Vec::new();
    }
    on(message)
}

/// Changes an init packet.
fn init(way: Way, message: Vec<u8>, change: impl FnOnce(&mut Packet<'_>)) -> Vec<Out> {
    if way == Way::Request
        && let Some(mut packet @ Packet::Init { .. }) = packet(&message)
    {
        change(&mut packet);
        return on(bytes(&packet));
    }
    on(message)
}

fn version_unchecked(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    init(way, message, |packet| {
        if let Packet::Init { version, .. } = packet {
            *version = rpc_proto::codes::PROTOCOL_VERSION.into();
        }
    })
}

fn constructor_lost(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    init(way, message, |packet| {
        if let Packet::Init { constructor, .. } = packet {
            *constructor = std::iter::empty().collect();
        }
    })
}

fn everything_is_found(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let looked_up = way == Way::Answer && answers(memory, PacketCode::GET_GLOBAL_FUNC);
    values(way, message, |values| match values[..] {
        [Value::Pointer(0)] if looked_up => vec![Value::Pointer(0x7770)],
        _ => values,
    })
}

fn exception_as_nothing(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let called = answers(memory, PacketCode::CALL_FUNC);
    if way == Way::Answer && called && code(&message) == Some(PacketCode::EXCEPTION) {
        let nothing = [Value::Int(0), Value::None];
        return on(bytes(&Packet::Return(nothing.into_iter().collect())));
    }
    on(message)
}

fn exception_ends(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && code(&message) == Some(PacketCode::EXCEPTION) {
        return vec![Out::On(message), Out::End];
    }
    on(message)
}

fn exception_text(way: Way, message: Vec<u8>, change: impl FnOnce(&str) -> String) -> Vec<Out> {
    if way == Way::Answer
        && let Some(Packet::Exception { text }) = packet(&message)
    {
        let text = change(&text).into();
        return on(bytes(&Packet::Exception { text }));
    }
    on(message)
}

fn exception_without_text(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    exception_text(way, message, |_| String::new())
}

fn exception_with_trace(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    exception_text(way, message, |text| format!("Traceback: Error: {text}"))
}

fn each(values: Vec<Value<'_>>, change: impl Fn(Value<'_>) -> Value<'_>) -> Vec<Value<'_>> {
    values.into_iter().map(change).collect()
}

fn integers_of_32_bits(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    values(way, message, |values| {
        each(values, |value| match value {
            Value::Int(value) => {
                let [a, b, c, d, ..] = value.to_le_bytes();
                Value::Int(i32::from_le_bytes([a, b, c, d]).into())
            }
            value => value,
        })
    })
}

fn truth_as_integer(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    values(way, message, |values| match values[..] {
        [Value::Int(_), Value::Bool(value)] => vec![Value::Int(1), Value::Int(value.into())],
        _ => values,
    })
}

fn floats_of_32_bits(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    values(way, message, |values| {
        each(values, |value| match value {
            #[expect(clippy::cast_possible_truncation, reason = "that is the defect")]
            Value::Float(value) => Value::Float(f64::from(value as f32)),
            value => value,
        })
    })
}

fn nothing_as_one_value(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let called = answers(memory, PacketCode::CALL_FUNC);
    values(way, message, |values| match values[..] {
        [Value::Int(0), Value::None] if called => vec![Value::None],
        _ => values,
    })
}

fn wrong_type_index(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let called = answers(memory, PacketCode::CALL_FUNC);
    values(way, message, |values| match &values[..] {
        [Value::Int(12), bytes] if called => vec![Value::Int(65), bytes.clone()],
        _ => values,
    })
}

fn unknown_codes_are_fine(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let unknown = code(&message).is_some_and(|code| code.name().is_none());
    if way == Way::Request && unknown && !memory.is_first(way) {
        memory.unanswered.pop_back();
        return vec![Out::Back(void())];
    }
    on(message)
}

fn frees_nothing(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request && code(&message) == Some(PacketCode::FREE_HANDLE) {
        memory.unanswered.pop_back();
        return vec![Out::Back(void())];
    }
    on(message)
}

fn shutdown_ignored(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let shutdown = message.get(8..12) == Some(&PacketCode::SHUTDOWN.0.to_le_bytes());
    if way == Way::Request && shutdown && !memory.is_first(way) {
        return Vec::new();
    }
    on(message)
}

fn empty_packets_end(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request && !memory.is_first(way) && message == [0; 8] {
        return vec![Out::End];
    }
    on(message)
}

fn evaluator_in_text(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    values(way, message, |values| match &values[..] {
        [Value::Int(12 | 66), Value::Bytes(bytes)] if bytes.len() % 8 == 0 => {
            vec![Value::Int(65), Value::from("0.001")]
        }
        _ => values,
    })
}

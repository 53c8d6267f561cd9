//! What a server answers: results of functions and of calls, and exceptions.

use rpc_proto::Dialect;
use rpc_recording::{Direction, Kind};

use super::assemble::{
    FLOAT32, Packed, Value, all, ffi_text_object, i32, packed, packet, sized, tensor, values,
};
use super::vector::{Area, Status, Vector};

pub(super) fn area(dialect: Dialect) -> Area {
    let legacy = dialect == Dialect::Legacy;
    let mut vectors = of_syscalls(dialect);
    vectors.extend(of_calls(dialect));
    vectors.extend(exceptions(dialect));
    vectors.extend(no_results(dialect));
    vectors.extend(no_exceptions(dialect));
    Area {
        name: if legacy {
            "returns-legacy"
        } else {
            "returns-ffi"
        },
        description: "Answers of a server. What answers a call is the type of the result and the result, \
                      with a third value for tensors; what answers something else is one value.",
        vectors,
    }
}

fn answer(
    dialect: Dialect,
    status: Status,
    code: i32,
    name: &str,
    about: &str,
    given: &[Packed],
) -> Vector {
    let bytes = packet(code, &[values(dialect, given)]);
    Vector::new(Kind::Packet, Direction::S2c, status, name, about, bytes).in_dialect(dialect)
}

fn of_syscalls(dialect: Dialect) -> Vec<Vector> {
    let of = |status, name: &str, about: &str, value: Value<'_>| {
        answer(dialect, status, 4, name, about, &[packed(dialect, &value)])
    };
    use Status::{Accepted, Canonical};
    vec![
        of(
            Canonical,
            "void",
            "Done, to init, copies and most syscalls.",
            Value::None,
        ),
        of(
            Canonical,
            "pointer",
            "A handle or an address.",
            Value::Pointer(0x1000),
        ),
        of(
            Canonical,
            "pointer-null",
            "There is no such function.",
            Value::Pointer(0),
        ),
        of(
            Canonical,
            "attr-int",
            "An attribute of a device.",
            Value::Int(1),
        ),
        of(
            Accepted,
            "attr-text",
            "An attribute that is a text.",
            Value::Str("8.0"),
        ),
    ]
}

/// The number of a type where it stands as the first value of a result.
fn type_of(dialect: Dialect, value: &Value<'_>) -> i64 {
    let is_ffi = dialect == Dialect::Ffi;
    let index = match value {
        Value::Str(text) if is_ffi => {
            if text.len() <= 7 {
                11
            } else {
                65
            }
        }
        Value::Bytes(bytes) if is_ffi => {
            if bytes.len() <= 7 {
                12
            } else {
                66
            }
        }
        value => packed(dialect, value).0,
    };
    index.into()
}

fn result(dialect: Dialect, status: Status, name: &str, about: &str, given: &[Packed]) -> Vector {
    let mut vector = answer(dialect, status, 4, name, about, given);
    vector.answers_call = true;
    vector
}

fn of_calls(dialect: Dialect) -> Vec<Vector> {
    let int = |value: i64| packed(dialect, &Value::Int(value));
    let of = |name: &str, about: &str, value: Value<'_>| {
        let kind = int(type_of(dialect, &value));
        let given = [kind, packed(dialect, &value)];
        result(dialect, Status::Canonical, name, about, &given)
    };
    let handle = |name: &str, about: &str, kind: i64| {
        let given = [int(kind), packed(dialect, &Value::Pointer(0x3000))];
        result(dialect, Status::Canonical, name, about, &given)
    };
    let is_ffi = dialect == Dialect::Ffi;
    let thirty: Vec<u8> = (0..30).collect();
    let view = || packed(dialect, &Value::Tensor(tensor(0x2000, FLOAT32, &[2, 3], 0)));
    let tensor_type = if is_ffi { 70 } else { 13 };
    let tensor = |name: &str, about: &str, status, kind: i64, handle: Value<'_>| {
        let given = [int(kind), view(), packed(dialect, &handle)];
        result(dialect, status, name, about, &given)
    };
    use Status::{Accepted, Canonical};
    let mut vectors = vec![
        of("call-none", "A call that gives nothing back.", Value::None),
        of("call-int", "An integer.", Value::Int(42)),
        of("call-int-negative", "A negative integer.", Value::Int(-42)),
        of("call-float", "A float.", Value::Float(1.5)),
        of(
            "call-float-infinite",
            "A float may be infinite.",
            Value::Float(f64::INFINITY),
        ),
        of("call-pointer", "An address.", Value::Pointer(0x1234)),
        of("call-device", "A device.", Value::Device(1, 0)),
        of("call-text-empty", "A text may be empty.", Value::Str("")),
        of(
            "call-text-7",
            "A text of seven bytes.",
            Value::Str("abcdefg"),
        ),
        of("call-text-8", "A text of eight.", Value::Str("abcdefgh")),
        of(
            "call-bytes-3",
            "A few bytes.",
            Value::Bytes(b"\x00\x01\x02"),
        ),
        of("call-bytes-30", "More bytes.", Value::Bytes(&thirty)),
        handle(
            "call-function",
            "A function, by its handle.",
            if is_ffi { 68 } else { 10 },
        ),
        handle(
            "call-module",
            "A module, by its handle.",
            if is_ffi { 73 } else { 9 },
        ),
        handle(
            "call-object",
            "Another object, by its handle.",
            if is_ffi { 69 } else { 8 },
        ),
        tensor(
            "call-tensor",
            "A tensor: its elements, and the handle of what owns them.",
            Canonical,
            tensor_type,
            Value::Pointer(0x3000),
        ),
        tensor(
            "call-tensor-unowned",
            "A tensor that nobody has to free.",
            Accepted,
            7,
            Value::Pointer(0),
        ),
        tensor(
            "call-tensor-none",
            "The same, with no handle at all.",
            Accepted,
            tensor_type,
            Value::None,
        ),
        result(
            dialect,
            Accepted,
            "call-none-short",
            "The type of nothing says it all.",
            &[int(type_of(dialect, &Value::None))],
        ),
    ];
    vectors.push(of("call-dtype", "A data type.", Value::Dtype(FLOAT32)));
    if is_ffi {
        vectors.push(of("call-bool", "A truth value.", Value::Bool(true)));
        let text = [int(65), ffi_text_object("abcdefgh")];
        vectors.push(result(
            dialect,
            Accepted,
            "call-text-object",
            "A text in the form of an argument.",
            &text,
        ));
        vectors.push(handle(
            "call-object-dynamic",
            "An object whose type only this process knows.",
            224,
        ));
    }
    vectors
}

fn exceptions(dialect: Dialect) -> Vec<Vector> {
    let of = |status, name: &str, about: &str, text: &str| {
        let text = packed(dialect, &Value::Str(text));
        answer(dialect, status, 5, name, about, &[text])
    };
    use Status::{Accepted, Canonical};
    let timeout = "RPCSessionTimeoutError: Your 1.0s session has expired, try to increase the \
                   \"session_timeout\" value.";
    let text = packed(dialect, &Value::Str("x"));
    let more = [text, packed(dialect, &Value::Int(1))];
    let mut vectors = vec![
        of(Canonical, "exception", "A function failed.", "no way"),
        of(Canonical, "exception-empty", "It may say nothing.", ""),
        of(
            Canonical,
            "exception-timeout",
            "The session is over; nobody asked for this answer.",
            timeout,
        ),
        answer(
            dialect,
            Accepted,
            5,
            "exception-more",
            "What stands behind the text is ignored.",
            &more,
        ),
    ];
    if dialect == Dialect::Ffi {
        let object = [ffi_text_object("no way to do this")];
        vectors.push(answer(
            dialect,
            Accepted,
            5,
            "exception-object",
            "A text in the form of an argument.",
            &object,
        ));
    }
    vectors
}

fn no_results(dialect: Dialect) -> Vec<Vector> {
    let int = |value: i64| packed(dialect, &Value::Int(value));
    let wrong = |name: &str, about: &str, given: &[Packed]| {
        result(dialect, Status::Invalid, name, about, given)
    };
    let none = || packed(dialect, &Value::None);
    let view = || packed(dialect, &Value::Tensor(tensor(0x2000, FLOAT32, &[2, 3], 0)));
    let tensor_type = if dialect == Dialect::Ffi { 70 } else { 13 };
    let of_int = type_of(dialect, &Value::Int(0));
    vec![
        wrong(
            "result-void",
            "The answer to a syscall, not to a call.",
            &[none()],
        ),
        wrong("result-nothing", "No value at all.", &[]),
        wrong(
            "result-no-type",
            "The type of the result is missing.",
            &[none(), int(1)],
        ),
        wrong(
            "result-three",
            "Only a tensor has a third value.",
            &[int(of_int), int(5), int(6)],
        ),
        wrong(
            "result-tensor-two",
            "The handle of a tensor is missing.",
            &[int(tensor_type), view()],
        ),
        wrong(
            "result-other-type",
            "Another type than it says.",
            &[int(of_int), packed(dialect, &Value::Str("abc"))],
        ),
        wrong(
            "result-type-large",
            "A type has 32 bits.",
            &[int(1 << 40), int(1)],
        ),
    ]
}

fn no_exceptions(dialect: Dialect) -> Vec<Vector> {
    let wrong = |name: &str, about: &str, given: &[Packed]| {
        answer(dialect, Status::Invalid, 5, name, about, given)
    };
    let text = if dialect == Dialect::Ffi { 8 } else { 11 };
    let longer = (text, all(&[super::assemble::u64(100), b"boom".to_vec()]));
    let mut cut = wrong("exception-count-cut", "Half of the number of values.", &[]);
    cut.bytes = packet(5, &[i32(1)[..2].to_vec()]);
    let mut behind = wrong("exception-cut", "The text ends before the packet.", &[]);
    behind.bytes = packet(5, &[i32(1), i32(text), sized(b"boom")])[..30].to_vec();
    vec![
        wrong(
            "exception-int",
            "An exception is a text.",
            &[packed(dialect, &Value::Int(1))],
        ),
        wrong("exception-no-text", "An exception has a text.", &[]),
        wrong(
            "exception-longer",
            "The text is longer than the packet.",
            &[longer],
        ),
        cut,
        behind,
    ]
}

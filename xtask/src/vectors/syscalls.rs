//! The thirteen fixed functions of a server.

use rpc_proto::Dialect;
use rpc_recording::{Direction, Kind};

use super::assemble::{FLOAT32, Packed, Value, packed, packet, sized, tensor, values};
use super::vector::{Area, Status, Vector};

pub(super) fn area(dialect: Dialect) -> Area {
    let legacy = dialect == Dialect::Legacy;
    let mut vectors = requests(dialect);
    vectors.extend(other_forms(dialect));
    vectors.extend(refused(dialect));
    Area {
        name: if legacy {
            "syscalls-legacy"
        } else {
            "syscalls-ffi"
        },
        description: "The fixed functions of a server. Those that are invalid are whole packets with a wrong \
                      argument: a server answers them with an exception, and the session goes on.",
        vectors,
    }
}

fn syscall(
    dialect: Dialect,
    status: Status,
    code: i32,
    name: &str,
    about: &str,
    arguments: &[Value<'_>],
) -> Vector {
    let arguments: Vec<_> = arguments
        .iter()
        .map(|value| packed(dialect, value))
        .collect();
    packed_syscall(dialect, status, code, name, about, &arguments)
}

fn packed_syscall(
    dialect: Dialect,
    status: Status,
    code: i32,
    name: &str,
    about: &str,
    arguments: &[Packed],
) -> Vector {
    let bytes = packet(code, &[values(dialect, arguments)]);
    Vector::new(Kind::Packet, Direction::C2s, status, name, about, bytes).in_dialect(dialect)
}

const CPU: Value<'static> = Value::Device(1, 0);

fn four(data: u64) -> Value<'static> {
    Value::Tensor(tensor(data, FLOAT32, &[4], 0))
}

fn matrix(data: u64) -> Value<'static> {
    Value::Tensor(tensor(data, FLOAT32, &[2, 3], 0))
}

fn requests(dialect: Dialect) -> Vec<Vector> {
    let of = |code, name: &str, about: &str, arguments: &[Value<'_>]| {
        syscall(dialect, Status::Canonical, code, name, about, arguments)
    };
    let stream = || Value::Pointer(0);
    let mut vectors = vec![
        of(
            9,
            "get-global-func",
            "Looks a function up by its name.",
            &[Value::Str("rpc.test.addone")],
        ),
        of(11, "set-device", "Makes a device current.", &[CPU]),
        of(
            12,
            "get-attr-exist",
            "Is the device there?",
            &[CPU, Value::Int(0)],
        ),
        of(
            12,
            "get-attr-name",
            "What is its name?",
            &[CPU, Value::Int(5)],
        ),
        of(
            13,
            "alloc-data",
            "Memory of 64 bytes, for floats, on a boundary of 64.",
            &[CPU, Value::Int(64), Value::Int(64), Value::Dtype(FLOAT32)],
        ),
        of(14, "free-data", "Frees it.", &[CPU, Value::Pointer(0x2000)]),
        of(
            15,
            "stream-sync",
            "Waits for the default stream.",
            &[CPU, stream()],
        ),
        of(
            16,
            "copy-among",
            "Copies a tensor into another.",
            &[four(0x2000), four(0x3000), stream()],
        ),
        of(
            17,
            "alloc-with-scope",
            "Memory for a tensor.",
            &[matrix(0), Value::None],
        ),
        of(
            17,
            "alloc-with-scope-named",
            "The same in a named scope.",
            &[four(0), Value::Str("global")],
        ),
        of(18, "create-stream", "Makes a stream.", &[CPU]),
        of(
            19,
            "free-stream",
            "Frees it.",
            &[CPU, Value::Pointer(0x4000)],
        ),
        of(
            20,
            "set-stream",
            "Makes it current.",
            &[CPU, Value::Pointer(0x4000)],
        ),
        of(21, "get-current-stream", "Which one is current?", &[CPU]),
    ];
    let free = |name: &str, about: &str, kind: i64| match dialect {
        Dialect::Legacy => of(10, name, about, &[Value::Pointer(0x3000), Value::Int(kind)]),
        _ => of(10, name, about, &[Value::Pointer(0x3000)]),
    };
    vectors.push(free("free-handle", "Gives a handle up.", 10));
    if dialect == Dialect::Legacy {
        vectors.extend([
            free("free-handle-module", "The same of a module.", 9),
            free(
                "free-handle-tensor",
                "The same of a tensor that a call gave back.",
                13,
            ),
            free("free-handle-object", "The same of another object.", 8),
        ]);
    }
    vectors
}

fn other_forms(dialect: Dialect) -> Vec<Vector> {
    let of = |code, name: &str, about: &str, arguments: &[Value<'_>]| {
        syscall(dialect, Status::Accepted, code, name, about, arguments)
    };
    vec![
        of(
            9,
            "get-global-func-bytes",
            "A name may come as bytes.",
            &[Value::Bytes(b"rpc.test.addone")],
        ),
        of(
            9,
            "get-global-func-more",
            "More arguments than it takes are ignored.",
            &[Value::Str("rpc.test.addone"), Value::Int(1)],
        ),
        of(
            13,
            "alloc-data-text",
            "A data type may come as its name.",
            &[CPU, Value::Int(24), Value::Int(64), Value::Str("float32")],
        ),
        of(
            15,
            "stream-sync-none",
            "No stream is the default one.",
            &[CPU, Value::None],
        ),
    ]
}

fn refused(dialect: Dialect) -> Vec<Vector> {
    let of = |code, name: &str, about: &str, arguments: &[Value<'_>]| {
        syscall(dialect, Status::Invalid, code, name, about, arguments)
    };
    let mut vectors = vec![
        of(
            9,
            "get-global-func-int",
            "A name is a text.",
            &[Value::Int(5)],
        ),
        of(9, "get-global-func-none", "A name is missing.", &[]),
        of(
            9,
            "get-global-func-not-utf8",
            "A name of bytes is UTF-8 as well.",
            &[Value::Bytes(b"\xff")],
        ),
        of(
            10,
            "free-handle-int",
            "A handle is a pointer.",
            &[Value::Int(0), Value::Int(10)],
        ),
        of(
            11,
            "set-device-int",
            "A device is a device.",
            &[Value::Int(1)],
        ),
        of(
            12,
            "get-attr-short",
            "The number of the attribute is missing.",
            &[CPU],
        ),
        of(
            12,
            "get-attr-text",
            "An attribute is a number.",
            &[CPU, Value::Str("exist")],
        ),
        of(
            13,
            "alloc-data-negative",
            "A size is not negative.",
            &[CPU, Value::Int(-1), Value::Int(64), Value::Dtype(FLOAT32)],
        ),
        of(
            13,
            "alloc-data-no-type",
            "No data type has this name.",
            &[CPU, Value::Int(24), Value::Int(64), Value::Str("matrix")],
        ),
        of(14, "free-data-short", "The address is missing.", &[CPU]),
        of(
            15,
            "stream-sync-int",
            "A stream is a pointer.",
            &[CPU, Value::Int(0)],
        ),
        of(
            16,
            "copy-among-short",
            "The second tensor is missing.",
            &[matrix(0x2000)],
        ),
        of(
            17,
            "alloc-with-scope-int",
            "A scope is a text or nothing.",
            &[matrix(0), Value::Int(0)],
        ),
        of(
            17,
            "alloc-with-scope-device",
            "A tensor is a tensor.",
            &[CPU, Value::None],
        ),
    ];
    // Not a wrong argument: the packet is longer than its values.
    let mut bytes = vec![packed(dialect, &Value::Str("rpc.test.addone"))];
    bytes[0].1.extend(sized(b""));
    vectors.push(packed_syscall(
        dialect,
        Status::Invalid,
        9,
        "get-global-func-behind",
        "More bytes than the values need: the packet itself is wrong.",
        &bytes,
    ));
    vectors
}

//! Packed values, as the arguments of calls and of constructors.

use rpc_proto::Dialect;
use rpc_recording::{Direction, Kind};

use super::assemble::{
    FLOAT32, Packed, Value, all, ffi_bytes_object, ffi_text_object, i32, i64, packed, packet,
    sized, tensor, u64, values,
};
use super::vector::{Area, Status, Vector};

/// The function that is called.
const FUNCTION: u64 = 0x1000;

pub(super) fn area(dialect: Dialect) -> Area {
    let legacy = dialect == Dialect::Legacy;
    let mut vectors = arguments(dialect);
    vectors.extend(sequences(dialect));
    vectors.extend(match legacy {
        true => legacy_forms(),
        false => ffi_forms(),
    });
    vectors.extend(broken(dialect));
    Area {
        name: if legacy {
            "values-legacy"
        } else {
            "values-ffi"
        },
        description: match legacy {
            true => {
                "Packed values of the legacy dialect (TVM up to 0.20), as arguments of calls and \
                 constructors: a count, the type codes of all values, then their bytes."
            }
            false => {
                "Packed values of the ffi dialect (TVM since 0.22), as arguments of calls and \
                 constructors: a count, then for each value its type index and its bytes."
            }
        },
        vectors,
    }
}

fn call(dialect: Dialect, status: Status, name: &str, about: &str, arguments: &[Packed]) -> Vector {
    let bytes = packet(3, &[u64(FUNCTION), values(dialect, arguments)]);
    Vector::new(Kind::Packet, Direction::C2s, status, name, about, bytes).in_dialect(dialect)
}

const LONG: &str = "The quick brown fox jumps over the lazy dog";

/// A call with one argument of each kind.
fn arguments(dialect: Dialect) -> Vec<Vector> {
    let of = |name: &str, about: &str, value: Value<'_>| {
        // What a client of the ffi dialect has as bytes is an object.
        let argument = match (&value, dialect) {
            (Value::Bytes(bytes), Dialect::Ffi) => ffi_bytes_object(bytes),
            _ => packed(dialect, &value),
        };
        call(dialect, Status::Canonical, name, about, &[argument])
    };
    let twenty: Vec<u8> = (0..20).collect();
    let bool_of = |about: &str| match dialect {
        Dialect::Legacy => format!("{about}; it is sent as an integer, and read as one."),
        _ => format!("{about}."),
    };
    let mut vectors = vec![
        of("none", "Nothing has no bytes of its own.", Value::None),
        of("int-one", "An integer has 64 bits.", Value::Int(1)),
        of("int-minus-one", "An integer has a sign.", Value::Int(-1)),
        of(
            "int-large",
            "More than a float could hold.",
            Value::Int(1 << 62),
        ),
        of(
            "int-smallest",
            "The smallest integer.",
            Value::Int(i64::MIN),
        ),
        of("float", "A float has 64 bits.", Value::Float(2.5)),
        of(
            "float-infinite",
            "A float may be infinite.",
            Value::Float(f64::INFINITY),
        ),
        of("pointer", "An address.", Value::Pointer(0x1234)),
        of("pointer-null", "No address.", Value::Pointer(0)),
        of(
            "dtype-float32",
            "A data type fills eight bytes.",
            Value::Dtype(FLOAT32),
        ),
        of("dtype-int8x4", "A vector of four.", Value::Dtype((0, 8, 4))),
        of(
            "dtype-bool",
            "A truth value of eight bits.",
            Value::Dtype((6, 8, 1)),
        ),
        of(
            "dtype-bfloat16",
            "The upper half of a float.",
            Value::Dtype((4, 16, 1)),
        ),
        of(
            "dtype-float8",
            "A float of eight bits.",
            Value::Dtype((10, 8, 1)),
        ),
        of("device-cpu", "The first processor.", Value::Device(1, 0)),
        of("device-cuda-2", "The third GPU.", Value::Device(2, 2)),
        of(
            "tensor",
            "A matrix of the peer's.",
            Value::Tensor(tensor(0x2000, FLOAT32, &[2, 3], 0)),
        ),
        of(
            "tensor-offset",
            "A tensor that starts 8 bytes behind its address.",
            Value::Tensor(tensor(0x2000, FLOAT32, &[2], 8)),
        ),
        of(
            "tensor-scalar",
            "A tensor of no dimensions.",
            Value::Tensor(tensor(0x2000, FLOAT32, &[], 0)),
        ),
        of("text-empty", "A text may be empty.", Value::Str("")),
        of("text-3", "A short text.", Value::Str("abc")),
        of(
            "text-7",
            "As long as what tvm-ffi keeps inside a value.",
            Value::Str("abcdefg"),
        ),
        of("text-8", "One longer.", Value::Str("abcdefgh")),
        of("text-43", "A longer text.", Value::Str(LONG)),
        of(
            "text-utf8",
            "The length counts bytes.",
            Value::Str("héllo 世界"),
        ),
        of("bytes-empty", "Bytes may be none.", Value::Bytes(b"")),
        of("bytes-3", "A few bytes.", Value::Bytes(b"123")),
        of("bytes-20", "More bytes.", Value::Bytes(&twenty)),
        of(
            "function",
            "A function of the peer's.",
            Value::Function(0x3000),
        ),
        of("module", "A module of the peer's.", Value::Module(0x3000)),
        of(
            "object",
            "Another object of the peer's.",
            Value::Object(0x3000),
        ),
    ];
    for (name, about, value) in [("true", "True", true), ("false", "False", false)] {
        let mut vector = of(&format!("bool-{name}"), &bool_of(about), Value::Bool(value));
        if dialect == Dialect::Legacy {
            // The meaning of these bytes is the integer.
            vector.status = Status::Accepted;
        }
        vectors.push(vector);
    }
    vectors
}

fn sequences(dialect: Dialect) -> Vec<Vector> {
    let is_ffi = dialect == Dialect::Ffi;
    let each = |values: &[Value<'_>]| -> Vec<Packed> {
        values.iter().map(|value| packed(dialect, value)).collect()
    };
    // The texts of a constructor are objects in the ffi dialect.
    let constructor = |name: &str, about: &str, arguments: &[Packed]| {
        let bytes = packet(2, &[sized(b"0.8.0"), values(dialect, arguments)]);
        let (kind, status) = (Kind::Packet, Status::Canonical);
        Vector::new(kind, Direction::C2s, status, name, about, bytes).in_dialect(dialect)
    };
    let text = |text: &str| match is_ffi {
        true => ffi_text_object(text),
        false => packed(dialect, &Value::Str(text)),
    };
    let bytes = |bytes: &[u8]| match is_ffi {
        true => ffi_bytes_object(bytes),
        false => packed(dialect, &Value::Bytes(bytes)),
    };
    let truth = |value: bool| match is_ffi {
        true => Value::Bool(value),
        false => Value::Int(value.into()),
    };
    let mut seven = each(&[
        Value::Int(1),
        Value::Str("two"),
        Value::Float(3.0),
        Value::None,
        truth(true),
    ]);
    seven.push(bytes(b"\x04"));
    seven.push(packed(dialect, &Value::Str("seven777")));
    let next_hop = [
        text("rpc.Connect"),
        text("127.0.0.1"),
        packed(dialect, &Value::Int(42877)),
        text("x2"),
        packed(dialect, &truth(false)),
    ];
    vec![
        call(
            dialect,
            Status::Canonical,
            "seven",
            "Seven arguments.",
            &seven,
        ),
        call(
            dialect,
            Status::Canonical,
            "two-ints",
            "Two integers.",
            &each(&[Value::Int(2), Value::Int(3)]),
        ),
        constructor(
            "init-local",
            "A session whose constructor is named.",
            &[text("rpc.LocalSession")],
        ),
        constructor(
            "init-next-hop",
            "A session on the next server: host, port, key and whether to log.",
            &next_hop,
        ),
    ]
}

/// Other forms of values, which a receiver of the `ffi` dialect has to read.
fn ffi_forms() -> Vec<Vector> {
    let accepted = |name, about, argument: Packed| {
        call(Dialect::Ffi, Status::Accepted, name, about, &[argument])
    };
    let object = |index: i32| (index, all(&[i32(115), u64(0x3000)]));
    let mut with_nul = call(
        Dialect::Ffi,
        Status::Canonical,
        "text-nul",
        "A text with a NUL is an object, since a raw one ends there for some receivers.",
        &[ffi_text_object("ab\0cd")],
    );
    with_nul.dialect = Some(Dialect::Ffi);
    vec![
        with_nul,
        accepted(
            "text-small-object",
            "A small text as an object.",
            ffi_text_object("abc"),
        ),
        accepted(
            "text-object",
            "A text as an object.",
            ffi_text_object("object str"),
        ),
        accepted(
            "text-raw-nul",
            "Some receivers end this text at its NUL.",
            (8, sized(b"ab\0cd")),
        ),
        accepted(
            "bytes-view",
            "Bytes that are no object.",
            (9, sized(b"\x01\x02")),
        ),
        accepted(
            "bytes-large-object",
            "Few bytes in the form of many.",
            (66, all(&[i32(66), sized(b"\x01\x02\x03")])),
        ),
        accepted(
            "object-shape",
            "An object under the index of its own type.",
            object(69),
        ),
        accepted(
            "object-unknown",
            "An object under an index that only the peer knows.",
            object(224),
        ),
        accepted("bool-five", "Everything but 0 is true.", (2, i64(5))),
        accepted(
            "dtype-padding",
            "Padding is ignored.",
            (5, all(&[vec![2, 32, 1, 0], i32(-1)])),
        ),
    ]
}

/// Other forms of values, which a receiver of the `legacy` dialect has to read.
fn legacy_forms() -> Vec<Vector> {
    let accepted = |name, about, argument: Packed| {
        call(Dialect::Legacy, Status::Accepted, name, about, &[argument])
    };
    vec![
        accepted(
            "uint",
            "An integer without a sign, with the bytes of one that has it.",
            (1, i64(5)),
        ),
        accepted(
            "bool-of-0.18",
            "A truth value of TVM 0.18 to 0.20.",
            (15, i64(1)),
        ),
        accepted(
            "dtype-padding",
            "Padding is ignored.",
            (5, all(&[vec![2, 32, 1, 0], i32(-1)])),
        ),
        accepted(
            "text-nul",
            "Some receivers end this text at its NUL.",
            (11, sized(b"ab\0cd")),
        ),
    ]
}

/// A sequence in a packet that looks a function up, so that it has one value.
fn broken(dialect: Dialect) -> Vec<Vector> {
    let is_ffi = dialect == Dialect::Ffi;
    let raw = |name: &str, about: &str, sequence: Vec<u8>| {
        let bytes = packet(9, &[sequence]);
        let (kind, status) = (Kind::Packet, Status::Invalid);
        Vector::new(kind, Direction::C2s, status, name, about, bytes).in_dialect(dialect)
    };
    let wrong =
        |name: &str, about: &str, value: Packed| raw(name, about, values(dialect, &[value]));
    let text = if is_ffi { 8 } else { 11 };
    let bytes = if is_ffi {
        (66, i32(66))
    } else {
        (12, Vec::new())
    };
    let (object, tensor_object) = if is_ffi { (69, 70) } else { (8, 13) };
    let name = || sized(b"rpc.test.addone");
    let mut vectors = vec![
        raw(
            "count-negative",
            "A number of values is not negative.",
            all(&[i32(-1), i32(text), name()]),
        ),
        raw(
            "count-missing",
            "The number of values is missing.",
            Vec::new(),
        ),
        raw(
            "count-too-large",
            "A thousand values, of which one is there.",
            all(&[i32(1000), i32(text), name()]),
        ),
        raw(
            "type-missing",
            "One value is announced and none is there.",
            i32(1),
        ),
        raw(
            "more",
            "More bytes than the value needs.",
            all(&[values(dialect, &[(text, name())]), i32(0)]),
        ),
        wrong("type-negative", "No such type.", (-1, u64(0))),
        wrong("type-unknown", "No such type.", (50, u64(0))),
        wrong(
            "type-tensor-object",
            "A tensor never travels as an object.",
            (tensor_object, u64(0)),
        ),
        wrong(
            "type-moved-object",
            "An object that is given away never travels.",
            (if is_ffi { 10 } else { 14 }, u64(0)),
        ),
        wrong(
            "object-inner-type",
            "Another type than that of a remote object inside.",
            (object, all(&[i32(999), u64(0x3000)])),
        ),
        wrong(
            "int-cut",
            "Half of an integer.",
            (if is_ffi { 1 } else { 0 }, i32(0)),
        ),
        wrong(
            "text-no-length",
            "The length is missing.",
            (text, Vec::new()),
        ),
        wrong(
            "text-longer",
            "The text is longer than the packet.",
            (text, all(&[u64(1000), b"abc".to_vec()])),
        ),
        wrong(
            "text-longest",
            "The length does not fit the memory of any machine.",
            (text, all(&[u64(1 << 63), b"abc".to_vec()])),
        ),
        wrong("text-not-utf8", "A text is UTF-8.", (text, sized(b"a\xff"))),
        wrong(
            "bytes-longer",
            "The bytes are longer than the packet.",
            (bytes.0, all(&[bytes.1, u64(1000), b"abc".to_vec()])),
        ),
        wrong(
            "tensor-cut",
            "The shape is missing.",
            (7, tensor(0, FLOAT32, &[2], 0)[..32].to_vec()),
        ),
        wrong(
            "device-cut",
            "The number of the device is missing.",
            (6, i32(1)),
        ),
    ];
    if is_ffi {
        vectors.extend([
            wrong(
                "text-inner-type",
                "Another type than that of a text inside.",
                (65, all(&[i32(66), name()])),
            ),
            wrong(
                "bytes-inner-type",
                "Another type than that of bytes inside.",
                (66, all(&[i32(65), name()])),
            ),
        ]);
    }
    vectors
}

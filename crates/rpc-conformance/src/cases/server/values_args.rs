//! Plain values as arguments: `SRV-VAL-0`.

use rpc_proto::{DataType, Device, DeviceType, TypeCode, Value};

use super::by_hand::{self as hand, DATA_TYPE};
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::stage::Outcome;

const ECHO: &[&str] = &["testing.echo"];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-VAL-001", Level::Must, "5.2.1", nothing)
        .about(
            "None as an argument arrives as none.",
            "It stands for arguments that are left out, as a module or a memory scope.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-002", Level::Must, "5.2.2", integers)
        .about(
            "Integers arrive whole, from the smallest of 64 bits to the greatest.",
            "Sizes and addresses are beyond 32 bits, and beyond what a float holds exactly.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-003", Level::Must, "5.2.3", bools)
        .about(
            "Truth values arrive as truth values, not as integers.",
            "Functions tell the two apart.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-004", Level::Must, "5.2.3", odd_bools)
        .about(
            "Any number but 0 under the index of truth values is true, also where its low bits are 0.",
            "A receiver that looks at one byte only calls a true value false.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-005", Level::Must, "5.2.4", float_values)
        .about(
            "Floats arrive bit for bit: zeros with their sign, subnormal numbers, infinities.",
            "What was computed must not be rounded on its way.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-006", Level::Must, "5.2.4", not_a_number)
        .about(
            "NaN arrives as NaN.",
            "It is how numeric code says that there is no result.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-007", Level::Must, "5.2.5", pointers)
        .about(
            "Pointers arrive whole, also null and those with the highest bit set.",
            "They are addresses of the server; a client cannot know which are possible.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-008", Level::Must, "5.2.6", data_types)
        .about(
            "Data types arrive with code, bits and lanes as they are, also those of no known code.",
            "New types come with every version of the compiler.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-009", Level::Must, "5.2.6", padding)
        .about(
            "The four bytes behind a data type mean nothing, whatever is in them.",
            "Some senders leave there what was in memory.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-010", Level::Must, "5.2.7", devices)
        .about(
            "Devices arrive as kind and number, also those that the server does not have.",
            "A device as an argument is a value; whether it is there is the function's business.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-011", Level::Must, "5.1.2", no_arguments)
        .about(
            "A function can be called without arguments.",
            "Many functions need none.",
        )
        .functions(&["ffi.Shape", "rpc.testing.GetShapeSize"]),
    Case::server("SRV-VAL-012", Level::Must, "5.1.3", sixty_four_arguments)
        .about(
            "A call may have 64 arguments, which arrive in their order.",
            "Compiled models take one argument for each tensor.",
        )
        .functions(&["ffi.Shape", "rpc.testing.GetShapeSize", "rpc.testing.GetShapeElem"]),
    Case::server("SRV-VAL-013", Level::Should, "5.1.4", thousand_arguments)
        .about(
            "A call may have a thousand arguments.",
            "The reference has no limit, and large models have hundreds of parameters.",
        )
        .functions(&["ffi.Shape", "rpc.testing.GetShapeSize", "rpc.testing.GetShapeElem"]),
    Case::server("SRV-VAL-014", Level::Must, "5.1.1", mixed_arguments)
        .about(
            "Arguments of all types can stand in any order in one call.",
            "A receiver that takes one byte too much or too few of one type misreads all behind it.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-015", Level::Must, "5.1.1", each_before_another)
        .about(
            "Behind an argument of each type, what follows is read at the right place.",
            "A receiver that takes one byte too much or too few of one type misreads all behind it.",
        )
        .functions(&["rpc.test.strcat"]),
];

fn nothing(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    session.expect_call("none", echo, vec![Value::None], &Value::None)
}

fn integers(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let edges = [
        i64::MIN,
        i64::MIN + 1,
        -(1 << 53) - 1,
        i64::from(i32::MIN) - 1,
        -256,
        -1,
        0,
        1,
    ];
    let more = [
        127,
        128,
        255,
        256,
        65535,
        1 << 31,
        1 << 32,
        (1 << 53) + 1,
        i64::MAX - 1,
        i64::MAX,
    ];
    for number in edges.into_iter().chain(more) {
        let check = format!("integer-{number}");
        session.expect_call(&check, echo, vec![number.into()], &Value::Int(number))?;
    }
    Ok(())
}

fn bools(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for (check, truth) in [("false", false), ("true", true)] {
        session.expect_call(check, echo, vec![truth.into()], &Value::Bool(truth))?;
    }
    Ok(())
}

fn odd_bools(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for number in [2, 255, 256, 1 << 32, i64::MIN, -1] {
        let check = format!("true-as-{number}");
        let args = [hand::boolean(number)];
        session.expect_by_hand(&check, echo, &args, &Value::Bool(true))?;
    }
    Ok(())
}

fn float_values(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let numbers = [
        0.0,
        -0.0,
        1.5,
        -2.5,
        0.1,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for number in numbers {
        let check = format!("float-{number:e}");
        session.call_by_hand(echo, &[hand::float(number)]);
        let exact = [hand::result(hand::FLOAT, hand::float(number))];
        session.expect_bytes(&check, "the same float", &exact)?;
    }
    Ok(())
}

fn not_a_number(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let found = session.call("nan", echo, vec![f64::NAN.into()])?;
    let holds =
        matches!(found, rpc_proto::Returned::Value(Value::Float(number)) if number.is_nan());
    let stage = session.stage();
    stage.check("is-nan", holds, "NaN", format_args!("{found:?}"))
}

fn pointers(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for address in [0, 1, 0x1234, 0x7fff_ffff_ffff, 1 << 63, u64::MAX] {
        let check = format!("pointer-{address:#x}");
        let pointer = Value::Pointer(address);
        session.expect_call(&check, echo, vec![pointer.clone()], &pointer)?;
    }
    Ok(())
}

/// float32, int8x4, bool, bfloat16, an 8-bit float, the widest vector, one bit, and a code of nobody's.
const DATA_TYPES: [(u8, u8, u16); 9] = [
    (2, 32, 1),
    (0, 8, 4),
    (6, 8, 1),
    (4, 16, 1),
    (10, 8, 1),
    (1, 64, 1024),
    (1, 1, 1),
    (3, 64, 1),
    (0, 128, 65535),
];

fn data_type((code, bits, lanes): (u8, u8, u16)) -> DataType {
    DataType {
        code: TypeCode(code),
        bits,
        lanes,
    }
}

fn data_types(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for numbers in DATA_TYPES {
        let dtype = Value::DataType(data_type(numbers));
        let check = format!("code-{}-bits-{}-lanes-{}", numbers.0, numbers.1, numbers.2);
        session.expect_call(&check, echo, vec![dtype.clone()], &dtype)?;
    }
    Ok(())
}

fn padding(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let float32 = [2, 32, 1, 0];
    for (check, padding) in [("ones", [0xff; 4]), ("some", [1, 2, 3, 4])] {
        let args = [hand::value(DATA_TYPE, &[float32, padding].concat())];
        session.expect_by_hand(check, echo, &args, &Value::DataType(DataType::FLOAT32))?;
    }
    Ok(())
}

fn devices(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for (kind, id) in [(1, 0), (1, 5), (2, 2), (4, 0), (16, 1), (99, 7)] {
        let device = Value::Device(Device::new(DeviceType(kind), id));
        let check = format!("device-{kind}-{id}");
        session.expect_call(&check, echo, vec![device.clone()], &device)?;
    }
    Ok(())
}

fn no_arguments(server: &Server) -> Outcome {
    expect_order(server, 0)
}

fn sixty_four_arguments(server: &Server) -> Outcome {
    expect_order(server, 64)
}

fn thousand_arguments(server: &Server) -> Outcome {
    expect_order(server, 1000)
}

/// Makes a shape of so many sizes, and looks at its length, and at some of it.
fn expect_order(server: &Server, count: i64) -> Outcome {
    let mut session = server.session()?;
    let shape = session.function("ffi.Shape")?;
    let size = session.function("rpc.testing.GetShapeSize")?;
    let sizes = (0..count).map(|i| Value::Int(i * 3 + 1)).collect();
    let handle = session.object_of("shape", shape, sizes)?;
    let object = || Value::Object(handle);
    session.expect_call("all-arrive", size, vec![object()], &Value::Int(count))?;
    if count > 0 {
        let element = session.function("rpc.testing.GetShapeElem")?;
        for i in [0, 1, count / 2, count - 1] {
            let check = format!("argument-{i}");
            let args = vec![object(), i.into()];
            session.expect_call(&check, element, args, &Value::Int(i * 3 + 1))?;
        }
    }
    session.free("freed", handle)
}

/// One value of each type that needs no handle.
fn one_of_each() -> Vec<(&'static str, Vec<u8>, Value<'static>)> {
    let float32 = [2, 32, 1, 0, 0, 0, 0, 0];
    vec![
        ("none", hand::none(), Value::None),
        ("int", hand::int(-7), Value::Int(-7)),
        ("bool", hand::boolean(1), Value::Bool(true)),
        ("float", hand::float(0.5), Value::Float(0.5)),
        ("pointer", hand::pointer(16), Value::Pointer(16)),
        (
            "dtype",
            hand::value(DATA_TYPE, &float32),
            Value::DataType(DataType::FLOAT32),
        ),
        (
            "device",
            hand::device(2, 3),
            Value::Device(Device::new(DeviceType(2), 3)),
        ),
        ("text-8", hand::raw(hand::RAW_STR, b"hi"), Value::from("hi")),
        (
            "text-11",
            hand::boxed(hand::SMALL_STR, hand::STR, b"abc"),
            Value::from("abc"),
        ),
        (
            "text-65",
            hand::boxed(hand::STR, hand::STR, b"longer than seven"),
            Value::from("longer than seven"),
        ),
        (
            "bytes-9",
            hand::raw(hand::RAW_BYTES, b"\0\xff"),
            Value::from(vec![0, 255]),
        ),
        (
            "bytes-12",
            hand::boxed(hand::SMALL_BYTES, hand::BYTES, b"\x01"),
            Value::from(vec![1]),
        ),
        (
            "bytes-66",
            hand::boxed(hand::BYTES, hand::BYTES, &[9; 20]),
            Value::from(vec![9; 20]),
        ),
    ]
}

fn mixed_arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let all = one_of_each();
    for first in 0..all.len() {
        // Each has been the first, and the one before it the last.
        let turned = all[first..].iter().chain(&all[..first]);
        let args: Vec<_> = turned.map(|(_, bytes, _)| bytes.clone()).collect();
        let (name, _, expected) = &all[first];
        session.expect_by_hand(&format!("first-{name}"), echo, &args, expected)?;
    }
    Ok(())
}

fn each_before_another(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let strcat = session.function("rpc.test.strcat")?;
    for (name, bytes, expected) in one_of_each() {
        let Value::Str(text) = expected else {
            continue;
        };
        let args = [bytes, hand::int(1234)];
        let expected = Value::from(format!("{text}:1234"));
        session.expect_by_hand(&format!("behind-{name}"), strcat, &args, &expected)?;
    }
    Ok(())
}

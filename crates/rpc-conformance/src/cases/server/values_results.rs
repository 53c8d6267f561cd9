//! What results look like, byte for byte: `SRV-VAL-05` to `SRV-VAL-06`.

use rpc_proto::{DataType, Device, DeviceType, Value};

use super::by_hand as hand;
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const ECHO: &[&str] = &["testing.echo"];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-VAL-050", Level::Must, "5.6.1", plain_results)
        .about(
            "A result is its type index as an integer, and the value under that index.",
            "Clients read two values, and the first says what the second is.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-051", Level::Must, "5.6.2", none_is_two_values)
        .about(
            "A function that returns nothing is answered by two values: 0, and none.",
            "The reference's client takes one value, as syscalls are answered, for an error.",
        )
        .functions(&["testing.echo", "rpc.test.remote_tensor_func"]),
    Case::server("SRV-VAL-052", Level::Must, "5.6.3", text_results)
        .about(
            "A text comes back as 65 (or 11 up to seven bytes), and the text under index 8.",
            "It is the one way that clients of all versions read.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-053", Level::Must, "5.6.4", bytes_results)
        .about(
            "Bytes come back as 66 (or 12 up to seven bytes), and the bytes under index 9.",
            "It is the one way that clients of all versions read.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-054", Level::Must, "5.6.5", tensor_result)
        .about(
            "A tensor comes back as 70, the tensor, and a handle.",
            "Where the elements are and what is to be freed are two numbers.",
        )
        .functions(&["rpc.test.remote_return_nd"]),
    Case::server("SRV-VAL-055", Level::Must, "5.6.6", function_result)
        .about(
            "A function comes back as 68 and a handle, as a pointer.",
            "Its index alone tells a client that it can call it.",
        )
        .functions(&["rpc.test.add_to_lhs"]),
    Case::server("SRV-VAL-056", Level::Must, "5.6.6", module_result)
        .about(
            "A module comes back as 73 and a handle, as a pointer.",
            "Its index alone tells a client that it can ask it for functions.",
        )
        .functions(&["ffi.SystemLib"]),
    Case::server("SRV-VAL-057", Level::Must, "5.6.7", object_result)
        .about(
            "Another object comes back as an index from 64 on and a handle, as a pointer.",
            "Clients keep the handle of whatever they do not know, and free it.",
        )
        .functions(&["ffi.Shape"]),
    Case::server("SRV-VAL-058", Level::Should, "5.6.8", shape_index)
        .about(
            "A shape comes back under its own index, 69.",
            "Clients may look at the index to see what they hold.",
        )
        .functions(&["ffi.Shape"]),
    Case::server("SRV-VAL-059", Level::Should, "5.6.9", text_with_zeros)
        .about(
            "A text with a NUL comes back whole.",
            "Text that ends in the middle is wrong without anyone noticing.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-060", Level::Must, "5.7.1", answers_to_syscalls)
        .about(
            "A syscall is answered by one value: a handle as a pointer, or none.",
            "Clients tell the answers to calls and to syscalls apart by nothing but their request.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-061", Level::Must, "5.7.2", exception_packet)
        .about(
            "An exception is one text under index 8.",
            "It is the one way that clients of all versions and both dialects read.",
        )
        .functions(&["rpc.test.except"]),
];

fn plain_results(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let int8x4 = hand::value(hand::DATA_TYPE, &[0, 8, 4, 0, 0, 0, 0, 0]);
    let cuda = Value::Device(Device::new(DeviceType(2), 3));
    let int8x4_value = Value::DataType(DataType {
        code: rpc_proto::TypeCode::INT,
        bits: 8,
        lanes: 4,
    });
    let samples = [
        ("int", Value::Int(-42), hand::INT, hand::int(-42)),
        ("true", Value::Bool(true), hand::BOOL, hand::boolean(1)),
        ("false", Value::Bool(false), hand::BOOL, hand::boolean(0)),
        ("float", Value::Float(1.5), hand::FLOAT, hand::float(1.5)),
        (
            "pointer",
            Value::Pointer(0x1234),
            hand::POINTER,
            hand::pointer(0x1234),
        ),
        ("null", Value::Pointer(0), hand::POINTER, hand::pointer(0)),
        ("dtype", int8x4_value, hand::DATA_TYPE, int8x4),
        ("device", cuda, hand::DEVICE, hand::device(2, 3)),
    ];
    for (check, value, index, expected) in samples {
        session.send_call(echo, vec![value])?;
        let exact = [hand::result(index, expected)];
        session.expect_bytes(check, "its type index and the value", &exact)?;
    }
    Ok(())
}

fn none_is_two_values(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let exact = [hand::result(hand::NONE, hand::none())];
    let echo = session.function("testing.echo")?;
    session.send_call(echo, vec![Value::None])?;
    session.expect_bytes("returned-none", "0, and none", &exact)?;
    let wants_ones = session.function("rpc.test.remote_tensor_func")?;
    let bytes = super::exchange::floats(&[1.0; 12]);
    let ones = session.filled(&[3, 4], DataType::FLOAT32, &bytes)?;
    session.send_call(wants_ones, vec![Value::Tensor(ones)])?;
    session.expect_bytes("returned-nothing", "0, and none", &exact)
}

fn text_results(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let words = "a type index of a text, and the text under 8";
    for text in [
        "",
        "a",
        "abcdefg",
        "abcdefgh",
        "The quick brown fox",
        "héllo",
        "世界世",
    ] {
        for (spelling, arg) in hand::texts(text) {
            session.call_by_hand(echo, &[arg]);
            let check = format!("{}-bytes-{spelling}", text.len());
            session.expect_bytes(&check, words, &hand::text_results(text))?;
        }
    }
    Ok(())
}

fn bytes_results(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let words = "a type index of bytes, and the bytes under 9";
    for bytes in [&b""[..], b"\0\x01\x02", &[0xff; 7], &[0xfe; 8], &[0; 300]] {
        for (spelling, arg) in hand::byte_strings(bytes) {
            session.call_by_hand(echo, &[arg]);
            let check = format!("{}-bytes-{spelling}", bytes.len());
            session.expect_bytes(&check, words, &hand::bytes_results(bytes))?;
        }
    }
    Ok(())
}

fn tensor_result(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function("rpc.test.remote_return_nd")?;
    let get = session.function_of("get-tensor", maker, vec!["get_arr".into()])?;
    session.send_call(get, vec![])?;
    let came = session.packets.packet("tensor")?;
    // Where the address and the handle are, the server's own numbers stand.
    let number = |at: usize| came.bytes.get(at..at + 8).map_or(0, le);
    let (data, handle) = (number(32), number(76));
    let view = hand::tensor(data, Device::cpu(0), (2, 32, 1), &[10], number(64));
    let exact = hand::returned(&[
        hand::int(hand::TENSOR.into()),
        hand::value(hand::TENSOR_VIEW, &view),
        hand::pointer(handle),
    ]);
    let words = "70, a tensor of 10 float32 on cpu, and a pointer";
    session
        .packets
        .came_check("layout", came.bytes == exact, words, Some(&exact), &came)?;
    let stage = session.stage();
    stage.check("has-an-address", data != 0, "an address", data)?;
    stage.check("has-a-handle", handle != 0, "a handle", handle)?;
    session.free("freed", handle)
}

fn le(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Takes the result of a call that is a handle, and checks all but the handle.
fn handle_result(session: &mut Session, index: i32) -> Outcome {
    let came = session.packets.packet("result")?;
    let handle = came.bytes.get(32..40).map_or(0, le);
    let exact = hand::result(index, hand::pointer(handle));
    let words = format!("{index}, and a pointer");
    session
        .packets
        .came_check("layout", came.bytes == exact, &words, Some(&exact), &came)?;
    session
        .stage()
        .check("has-a-handle", handle != 0, "a handle", handle)?;
    session.free("freed", handle)
}

fn function_result(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function("rpc.test.add_to_lhs")?;
    session.send_call(maker, vec![10.into()])?;
    handle_result(&mut session, hand::FUNCTION)
}

fn module_result(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let system_lib = session.function("ffi.SystemLib")?;
    session.send_call(system_lib, vec![])?;
    handle_result(&mut session, hand::MODULE)
}

fn object_result(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let shape = session.function("ffi.Shape")?;
    session.send_call(shape, vec![2.into(), 3.into()])?;
    let came = session.packets.packet("result")?;
    let index = came.bytes.get(20..28).map_or(0, le);
    let handle = came.bytes.get(32..40).map_or(0, le);
    let exact = hand::returned(&[hand::int(index.cast_signed()), hand::pointer(handle)]);
    let words = "the index of an object, and a pointer";
    session
        .packets
        .came_check("layout", came.bytes == exact, words, Some(&exact), &came)?;
    let stage = session.stage();
    let known = [
        hand::STR,
        hand::BYTES,
        hand::FUNCTION,
        hand::TENSOR,
        hand::MODULE,
    ];
    let is_object = i32::try_from(index).is_ok_and(|index| index >= 64 && !known.contains(&index));
    stage.check("index", is_object, "the index of another object", index)?;
    stage.check("has-a-handle", handle != 0, "a handle", handle)?;
    session.free("freed", handle)
}

fn shape_index(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let shape = session.function("ffi.Shape")?;
    session.send_call(shape, vec![2.into(), 3.into()])?;
    handle_result(&mut session, hand::SHAPE)
}

fn text_with_zeros(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for text in ["ab\0cd, and more", "\0", "a\0"] {
        let args = [hand::boxed(hand::STR, hand::STR, text.as_bytes())];
        let check = format!("whole-{}", text.len());
        session.expect_by_hand(&check, echo, &args, &Value::from(text))?;
    }
    Ok(())
}

fn answers_to_syscalls(server: &Server) -> Outcome {
    use rpc_proto::codes::PacketCode;
    let mut session = server.session()?;
    let name = hand::raw(hand::RAW_STR, b"testing.echo");
    let look_up = hand::syscall(PacketCode::GET_GLOBAL_FUNC, &[name]);
    session.packets.wire.send(&look_up);
    let came = session.packets.packet("look-up")?;
    let handle = came.bytes.get(20..28).map_or(0, le);
    let exact = hand::returned(&[hand::pointer(handle)]);
    let words = "one value, a pointer";
    session
        .packets
        .came_check("pointer", came.bytes == exact, words, Some(&exact), &came)?;
    let free = hand::syscall(PacketCode::FREE_HANDLE, &[hand::pointer(handle)]);
    session.packets.wire.send(&free);
    let nothing = [hand::returned(&[hand::none()])];
    session.expect_bytes("nothing", "one value, none", &nothing)?;
    let exist = [hand::device(1, 0), hand::int(0)];
    session
        .packets
        .wire
        .send(&hand::syscall(PacketCode::DEV_GET_ATTR, &exist));
    let one = [hand::returned(&[hand::int(1)])];
    session.expect_bytes("integer", "one value, 1", &one)
}

fn exception_packet(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    session.send_call(except, vec!["abc".into()])?;
    let came = session.packets.packet("exception")?;
    let text = came.bytes.get(28..).unwrap_or_default();
    let text = String::from_utf8_lossy(text).into_owned();
    let exact = hand::exception(&text);
    let words = "one text under index 8";
    session
        .packets
        .came_check("layout", came.bytes == exact, words, Some(&exact), &came)
}

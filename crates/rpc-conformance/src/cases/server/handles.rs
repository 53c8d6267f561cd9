//! How long handles live: `SRV-HANDLE-`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{DataType, Packet, Returned, Syscall, Value};

use super::by_hand as hand;
use super::exchange::pattern;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const ADD: &[&str] = &["rpc.test.add_to_lhs"];
const TENSORS: &[&str] = &["rpc.test.remote_return_nd"];
const LOST: &str =
    "A client with a mistake must learn of it, and the device must not be lost to others.";

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-HANDLE-001", Level::Must, "7.5.1", given_up)
        .about(
            "A handle that is given up is answered by nothing.",
            "Clients wait for that before they go on.",
        )
        .functions(&["testing.echo", "rpc.test.add_to_lhs"]),
    Case::server("SRV-HANDLE-002", Level::Must, "7.5.2", looked_up_twice)
        .about(
            "A function that was looked up twice is to be given up twice, and works until then.",
            "Two parts of a program that use one function do not know of each other.",
        )
        .functions(&["testing.echo"]),
    Case::server("SRV-HANDLE-003", Level::Must, "7.5.3", outlives_its_maker)
        .about(
            "A function that a call returned works after the function that made it was given up.",
            "Clients give up what they do not need any more.",
        )
        .functions(ADD),
    Case::server("SRV-HANDLE-004", Level::Must, "7.5.2", tensor_twice)
        .about(
            "A tensor that came back twice is to be given up twice, and is there until then.",
            "Two results that are the same tensor look like two tensors to a client.",
        )
        .functions(TENSORS),
    Case::server("SRV-HANDLE-005", Level::Must, "7.5.3", tensor_outlives_function)
        .about(
            "A tensor that a call returned is there after the function was given up.",
            "The outputs of a model are used after the model was let go of.",
        )
        .functions(TENSORS),
    Case::server("SRV-HANDLE-006", Level::Must, "7.5.3", function_outlives_tensor)
        .about(
            "A function works on after a tensor that it returned was given up.",
            "It gives back what is its own.",
        )
        .functions(TENSORS),
    Case::server("SRV-HANDLE-007", Level::Must, "7.5.4", null_is_given_up).about(
        "Giving up the null handle is answered, by nothing or by an exception, and the session goes on.",
        "Clients give up what they have, and may have nothing.",
    ),
    Case::server("SRV-HANDLE-008", Level::Should, "7.5.5", given_up_twice)
        .about("Giving up a handle a second time is answered by an exception, and the session goes on.", LOST)
        .functions(ADD)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-009", Level::Should, "7.5.5", made_up)
        .about("Giving up a number that is no handle is answered by an exception, and the session goes on.", LOST)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-010", Level::Should, "7.5.5", an_address)
        .about("Giving up an address of memory as if it was a handle is answered by an exception.", LOST)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-011", Level::Should, "7.5.6", freed_argument)
        .about("A handle that was given up is refused as an argument by an exception, and the session goes on.", LOST)
        .functions(&["ffi.Shape", "rpc.testing.GetShapeSize"])
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-012", Level::Should, "7.5.6", null_arguments)
        .about("Null handles of functions, modules and objects are refused as arguments by an exception, and the session goes on.", LOST)
        .functions(&["testing.echo", "rpc.testing.GetShapeSize"])
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-013", Level::Should, "7.5.6", wrong_kind)
        .about("The handle of an object under the index of a function is refused by an exception, and the session goes on.", LOST)
        .functions(&["ffi.Shape", "testing.echo"])
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-014", Level::Should, "7.5.7", of_another_session)
        .about(
            "The handle of a function that an earlier session made is no handle in the next one.",
            "What one user left must not be in reach of another.",
        )
        .functions(ADD)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-015", Level::Should, "7.5.7", memory_of_another_session)
        .about(
            "Memory of an earlier session is not in reach of the next one.",
            "What one user left must not be in reach of another.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-HANDLE-016", Level::Must, "7.5.8", thousand)
        .about(
            "A session may hold a thousand handles at a time.",
            "A model keeps one for each of its functions and tensors.",
        )
        .functions(ADD),
    Case::server("SRV-HANDLE-017", Level::Must, "7.5.9", ends_with_them)
        .about(
            "A session may end with handles and memory that were not given up, and the next one begins.",
            "Clients crash.",
        )
        .functions(&["rpc.test.add_to_lhs", "rpc.test.remote_return_nd"]),
];

fn given_up(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let nothing = [hand::returned(&[hand::none()])];
    let echo = session.function("testing.echo")?;
    let maker = session.function("rpc.test.add_to_lhs")?;
    let add_ten = session.function_of("made", maker, vec![10.into()])?;
    for (check, handle) in [("looked-up", echo), ("returned", add_ten), ("maker", maker)] {
        session.packets.send(&free(handle))?;
        session.expect_bytes(check, "one value, none", &nothing)?;
    }
    session.expect_goes_on("afterwards")
}

fn free(handle: u64) -> Packet<'static> {
    Packet::Syscall(Syscall::FreeHandle { handle, kind: None })
}

fn looked_up_twice(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let first = session.function("testing.echo")?;
    let second = session.function("testing.echo")?;
    session.free("first-freed", first)?;
    session.expect_call("second-works", second, vec![5.into()], &Value::Int(5))?;
    session.free("second-freed", second)?;
    let third = session.function("testing.echo")?;
    session.expect_call("third-works", third, vec![6.into()], &Value::Int(6))?;
    session.free("third-freed", third)
}

fn outlives_its_maker(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function(ADD[0])?;
    let add_ten = session.function_of("made", maker, vec![10.into()])?;
    session.free("maker-freed", maker)?;
    session.expect_call("works", add_ten, vec![5.into()], &Value::Int(15))?;
    session.free("freed", add_ten)
}

fn get_tensor(session: &mut Session) -> Outcome<u64> {
    let maker = session.function(TENSORS[0])?;
    session.function_of("get-tensor", maker, vec!["get_arr".into()])
}

fn tensor_twice(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let get = get_tensor(&mut session)?;
    let (first, first_handle) = session.tensor_of("first", get, vec![])?;
    let (second, second_handle) = session.tensor_of("second", get, vec![])?;
    let bytes = pattern(40, 1);
    session.upload("written", &first, &bytes)?;
    session.free("first-freed", first_handle)?;
    session.expect_content("second-is-there", &second, &bytes)?;
    session.free("second-freed", second_handle)
}

fn tensor_outlives_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let get = get_tensor(&mut session)?;
    let (tensor, handle) = session.tensor_of("tensor", get, vec![])?;
    session.free("function-freed", get)?;
    let bytes = pattern(40, 2);
    session.upload("written", &tensor, &bytes)?;
    session.expect_content("is-there", &tensor, &bytes)?;
    session.free("freed", handle)
}

fn function_outlives_tensor(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let get = get_tensor(&mut session)?;
    let (tensor, handle) = session.tensor_of("tensor", get, vec![])?;
    let bytes = pattern(40, 3);
    session.upload("written", &tensor, &bytes)?;
    session.free("freed", handle)?;
    let (again, handle) = session.tensor_of("tensor-again", get, vec![])?;
    session.expect_content("is-there", &again, &bytes)?;
    session.free("freed-again", handle)
}

fn null_is_given_up(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.packets.send(&free(0))?;
    let came = session.packets.packet("answered")?;
    let holds = came.packet == Packet::void() || matches!(came.packet, Packet::Exception { .. });
    session
        .packets
        .came_check("answer", holds, "nothing, or an exception", None, &came)?;
    session.expect_goes_on("afterwards")
}

fn expect_no_handle(session: &mut Session, check: &str, handle: u64) -> Outcome {
    session.packets.send(&free(handle))?;
    session.expect_exception_only(check).map(drop)
}

fn given_up_twice(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function(ADD[0])?;
    let add_ten = session.function_of("made", maker, vec![10.into()])?;
    session.free("freed", add_ten)?;
    expect_no_handle(&mut session, "freed-again", add_ten)
}

fn made_up(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for handle in [0x10, u64::MAX, 1 << 63] {
        expect_no_handle(&mut session, &format!("handle-{handle:#x}"), handle)?;
    }
    Ok(())
}

fn an_address(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.filled(&[64], DataType::UINT8, &[0xff; 64])?;
    expect_no_handle(&mut session, "an-address", tensor.data)?;
    session.expect_content("memory-stays", &tensor, &[0xff; 64])
}

fn freed_argument(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let shape = session.function("ffi.Shape")?;
    let size = session.function("rpc.testing.GetShapeSize")?;
    let object = session.object_of("object", shape, vec![1.into(), 2.into()])?;
    session.free("freed", object)?;
    session.send_call(size, vec![Value::Object(object)])?;
    session.expect_exception_only("freed-object").map(drop)
}

fn null_arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let size = session.function("rpc.testing.GetShapeSize")?;
    session.send_call(size, vec![Value::Object(0)])?;
    session.expect_exception_only("null-object")?;
    let echo = session.function("testing.echo")?;
    for (check, value) in [
        ("null-function", Value::Function(0)),
        ("null-module", Value::Module(0)),
    ] {
        session.send_call(echo, vec![value])?;
        session.expect_exception_only(check)?;
    }
    Ok(())
}

fn wrong_kind(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let shape = session.function("ffi.Shape")?;
    let echo = session.function("testing.echo")?;
    let object = session.object_of("object", shape, vec![1.into()])?;
    session.send_call(echo, vec![Value::Function(object)])?;
    session.expect_exception_only("as-function")?;
    session.send_call(echo, vec![Value::Module(object)])?;
    session.expect_exception_only("as-module").map(drop)
}

fn of_another_session(server: &Server) -> Outcome {
    let mut first = server.session()?;
    let maker = first.function(ADD[0])?;
    let add_ten = first.function_of("made", maker, vec![10.into()])?;
    first.shut_down()?;
    drop(first);
    let mut second = server.session()?;
    second.send_call(add_ten, vec![1.into()])?;
    second.expect_exception_only("call").map(drop)
}

/// What a session leaves in memory.
const LEFT: u8 = 0x5a;

fn memory_of_another_session(server: &Server) -> Outcome {
    let mut first = server.session()?;
    let tensor = first.filled(&[64], DataType::UINT8, &[LEFT; 64])?;
    first.shut_down()?;
    drop(first);
    let mut second = server.session()?;
    second
        .packets
        .send(&Packet::CopyFrom { tensor, nbytes: 64 })?;
    // What else may come of an address that is none has a clause of its own (7.3.13).
    let found = match second.packets.receive() {
        Ok(came) => came.payload,
        Err(_) => Vec::new(),
    };
    let holds = !found.windows(4).any(|four| four == [LEFT; 4]);
    let stage = second.stage();
    stage.check(
        "read",
        holds,
        "none of what was written",
        hex::encode(found),
    )
}

fn thousand(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function(ADD[0])?;
    let make = |number| hand::call(maker, &[hand::int(number)]);
    session.send_together(&(0..1000).map(make).collect::<Vec<_>>());
    let mut handles = Vec::new();
    for _ in 0..1000 {
        match session.returned("made")? {
            Returned::Value(Value::Function(handle)) => handles.push(handle),
            other => {
                let found = format!("{other:?}");
                return Err(session.stage().fail("a-function", "a function", found));
            }
        }
    }
    let calls = handles
        .iter()
        .map(|&handle| hand::call(handle, &[hand::int(1)]));
    session.send_together(&calls.collect::<Vec<_>>());
    for number in 0..1000 {
        let exact = [hand::result(hand::INT, hand::int(number + 1))];
        session.expect_bytes("works", "the sum of its own", &exact)?;
    }
    let free = |&handle: &u64| hand::syscall(PacketCode::FREE_HANDLE, &[hand::pointer(handle)]);
    session.send_together(&handles.iter().map(free).collect::<Vec<_>>());
    for _ in 0..1000 {
        session.expect_void("freed")?;
    }
    session.expect_goes_on("afterwards")
}

fn ends_with_them(server: &Server) -> Outcome {
    for said_goodbye in [true, false] {
        let mut session = server.session()?;
        let maker = session.function("rpc.test.add_to_lhs")?;
        session.function_of("made", maker, vec![10.into()])?;
        let get = get_tensor(&mut session)?;
        session.tensor_of("tensor", get, vec![])?;
        session.allocate(&[1 << 20], DataType::UINT8)?;
        if said_goodbye {
            session.shut_down()?;
        }
    }
    server.expect_alive()
}

//! Looking up and calling functions: `SRV-CALL-`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{DataType, Returned, Value};

use super::by_hand as hand;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const ECHO: &[&str] = &["testing.echo"];
const ADD: &[&str] = &["rpc.test.add_to_lhs"];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-CALL-001", Level::Must, "6.4.1", integer_comes_back)
        .about(
            "An integer that a function returns comes back as it is.",
            "It is the simplest result there is.",
        )
        .functions(ECHO),
    Case::server("SRV-CALL-002", Level::Must, "6.4.3", unknown_name).about(
        "The look-up of a name that no function has is answered by a null pointer.",
        "Clients ask for functions that only some servers have, as before each copy.",
    ),
    Case::server("SRV-CALL-003", Level::Must, "6.4.3", odd_names).about(
        "Names that are empty, very long or not ASCII are unknown like others.",
        "A name comes from whoever uses the client.",
    ),
    Case::server("SRV-CALL-004", Level::Must, "6.4.2", in_order)
        .about(
            "Calls that are sent without waiting are answered in their order.",
            "An answer does not say which request it is for.",
        )
        .functions(&["rpc.test.addone"]),
    Case::server("SRV-CALL-005", Level::Must, "6.4.2", mixed_in_order)
        .about(
            "Requests of several kinds that are sent without waiting are answered in their order.",
            "An answer does not say which request it is for.",
        )
        .functions(&["rpc.test.addone", "rpc.test.except"]),
    Case::server("SRV-CALL-006", Level::Must, "6.4.5", function_of_function)
        .about(
            "A function that a call returned can be called, and knows what it was made of.",
            "Modules hand out their functions so, and so do time evaluators.",
        )
        .functions(ADD),
    Case::server("SRV-CALL-007", Level::Must, "6.4.5", two_of_a_kind)
        .about(
            "Two functions that one function returned are two.",
            "A handle that stands for what was made last calls the wrong function.",
        )
        .functions(ADD),
    Case::server("SRV-CALL-008", Level::Must, "6.4.1", five_hundred)
        .about(
            "Five hundred calls in one session are all answered.",
            "Measurements call a function as often as that.",
        )
        .functions(&["rpc.test.addone"]),
    Case::server("SRV-CALL-009", Level::Must, "6.4.1", text_of_two)
        .about(
            "A function of two arguments gets both, in their order.",
            "Arguments have no names.",
        )
        .functions(&["rpc.test.strcat", "rpc.test.runtime_str_concat"]),
    Case::server("SRV-CALL-010", Level::Must, "6.4.1", nothing_more)
        .about(
            "A call has one answer, and nothing comes behind it.",
            "A spare answer is taken for that of the next request.",
        )
        .functions(ECHO),
    Case::server("SRV-CALL-011", Level::Should, "6.4.6", null_handle)
        .about(
            "A call of the null handle is answered by an exception, and the session goes on.",
            "Whoever forgets to look at the answer to a look-up gets there.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-CALL-012", Level::Should, "6.4.6", freed_handle)
        .about(
            "A call of a handle that was given up is answered by an exception, and the session goes on.",
            "A client with a mistake must learn of it, and the device must not be lost to others.",
        )
        .functions(ADD)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-CALL-013", Level::Should, "6.4.6", made_up_handle)
        .about(
            "A call of a number that is no handle is answered by an exception, and the session goes on.",
            "A client with a mistake must learn of it, and the device must not be lost to others.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-CALL-014", Level::Should, "6.4.6", not_a_function)
        .about(
            "A call of the handle of an object is answered by an exception, and the session goes on.",
            "A client with a mistake must learn of it, and the device must not be lost to others.",
        )
        .functions(&["ffi.Shape"])
        .tags(&[Tag::Hostile]),
    Case::server("SRV-CALL-015", Level::Should, "6.4.6", address_as_function)
        .about(
            "A call of an address of memory is answered by an exception, and nothing in it is run.",
            "Whoever can write memory and call it runs any code on the device.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-CALL-016", Level::Must, "6.4.4", every_look_up)
        .about(
            "Every name is looked up anew, with the same result.",
            "Clients look a function up each time they need it.",
        )
        .functions(&["testing.echo", "rpc.test.addone"]),
];

fn integer_comes_back(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for value in [0, 1, -1, i64::MAX, i64::MIN] {
        session.expect_call("echo", echo, vec![value.into()], &Value::Int(value))?;
    }
    session.free("freed", echo)?;
    session.shut_down()
}

/// Looks up a name that no function has.
fn expect_unknown(session: &mut Session, check: &str, name: &[u8]) -> Outcome {
    let name = hand::raw(hand::RAW_STR, name);
    let request = hand::syscall(PacketCode::GET_GLOBAL_FUNC, &[name]);
    session.packets.wire.send(&request);
    let allowed = [hand::returned(&[hand::pointer(0)])];
    session.expect_bytes(check, "a null pointer", &allowed)
}

fn unknown_name(server: &Server) -> Outcome {
    let mut session = server.session()?;
    expect_unknown(&mut session, "unknown", b"conformance.no.such.function")?;
    expect_unknown(
        &mut session,
        "unknown-again",
        b"conformance.no.such.function",
    )
}

fn odd_names(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let long = "x".repeat(64 << 10);
    let names = [
        ("empty", ""),
        ("blank", " "),
        ("slashes", "../../etc/passwd"),
        ("beyond-ascii", "世界.🦀"),
        ("long", &long),
        ("almost", "testing.echo "),
        ("other-case", "Testing.Echo"),
    ];
    for (check, name) in names {
        expect_unknown(&mut session, check, name.as_bytes())?;
    }
    Ok(())
}

fn in_order(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let addone = session.function("rpc.test.addone")?;
    for number in 0..32_i64 {
        session.send_call(addone, vec![number.into()])?;
    }
    for number in 0..32_i64 {
        let found = session.returned("answer")?;
        let holds = matches!(found, Returned::Value(Value::Int(next)) if next == number + 1);
        let check = format!("answer-{number}");
        session
            .stage()
            .check(&check, holds, number + 1, format_args!("{found:?}"))?;
    }
    Ok(())
}

fn mixed_in_order(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let addone = session.function("rpc.test.addone")?;
    let except = session.function("rpc.test.except")?;
    let tensor = session.filled(&[4], DataType::UINT8, &[1, 2, 3, 4])?;
    session.send_call(addone, vec![1.into()])?;
    session.send_call(except, vec!["boom".into()])?;
    session.packets.send(&rpc_proto::Packet::CopyFrom {
        tensor: tensor.clone(),
        nbytes: 4,
    })?;
    let exist = [hand::device(1, 0), hand::int(0)];
    session
        .packets
        .wire
        .send(&hand::syscall(PacketCode::DEV_GET_ATTR, &exist));
    session.send_call(addone, vec![2.into()])?;
    let call = |number| [hand::result(hand::INT, hand::int(number))];
    session.expect_bytes("first-call", "2", &call(2))?;
    session.expect_exception("second-call-raises")?;
    let ack = [hand::packet(PacketCode::COPY_ACK, &[1, 2, 3, 4])];
    session.expect_bytes("copy", "the bytes of the tensor", &ack)?;
    let one = [hand::returned(&[hand::int(1)])];
    session.expect_bytes("attribute", "1", &one)?;
    session.expect_bytes("last-call", "3", &call(3))
}

fn function_of_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function(ADD[0])?;
    let add_ten = session.function_of("made", maker, vec![10.into()])?;
    session.expect_call("called", add_ten, vec![12.into()], &Value::Int(22))?;
    session.expect_call("called-again", add_ten, vec![(-10).into()], &Value::Int(0))?;
    session.free("freed", add_ten)
}

fn two_of_a_kind(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function(ADD[0])?;
    let add_one = session.function_of("first", maker, vec![1.into()])?;
    let add_hundred = session.function_of("second", maker, vec![100.into()])?;
    session.expect_call("calls-the-first", add_one, vec![5.into()], &Value::Int(6))?;
    session.expect_call(
        "calls-the-second",
        add_hundred,
        vec![5.into()],
        &Value::Int(105),
    )?;
    session.free("first-freed", add_one)?;
    session.expect_call(
        "second-stays",
        add_hundred,
        vec![6.into()],
        &Value::Int(106),
    )?;
    session.free("second-freed", add_hundred)
}

fn five_hundred(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let addone = session.function("rpc.test.addone")?;
    for hundred in 0..5_i64 {
        let numbers = hundred * 100..hundred * 100 + 100;
        let calls = numbers
            .clone()
            .map(|number| hand::call(addone, &[hand::int(number)]));
        session.send_together(&calls.collect::<Vec<_>>());
        for number in numbers {
            let exact = [hand::result(hand::INT, hand::int(number + 1))];
            session.expect_bytes("call", "the sum", &exact)?;
        }
    }
    session.shut_down()
}

fn text_of_two(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let strcat = session.function("rpc.test.strcat")?;
    let args = vec!["abc".into(), 10.into()];
    session.expect_call("name-and-number", strcat, args, &Value::from("abc:10"))?;
    let both = session.function("rpc.test.runtime_str_concat")?;
    let args = vec!["first, ".into(), "second".into()];
    session.expect_call("two-texts", both, args, &Value::from("first, second"))
}

fn nothing_more(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    session.expect_call("call", echo, vec![1.into()], &Value::Int(1))?;
    session.packets.expect_quiet("nothing-behind-it")?;
    session.shut_down()
}

/// Calls what is no function.
fn expect_no_call(session: &mut Session, check: &str, handle: u64) -> Outcome {
    session.send_call(handle, vec![1.into()])?;
    session.expect_exception_only(check).map(drop)
}

fn null_handle(server: &Server) -> Outcome {
    let mut session = server.session()?;
    expect_no_call(&mut session, "null", 0)
}

fn freed_handle(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function(ADD[0])?;
    let add_ten = session.function_of("made", maker, vec![10.into()])?;
    session.free("freed", add_ten)?;
    expect_no_call(&mut session, "given-up", add_ten)
}

fn made_up_handle(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for handle in [u64::MAX, 0x7fff_0000_1230, 0x10] {
        expect_no_call(&mut session, &format!("made-up-{handle:#x}"), handle)?;
    }
    Ok(())
}

fn not_a_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let shape = session.function("ffi.Shape")?;
    let object = session.object_of("object", shape, vec![1.into()])?;
    expect_no_call(&mut session, "an-object", object)
}

fn address_as_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.filled(&[4096], DataType::UINT8, &[0x90; 4096])?;
    expect_no_call(&mut session, "an-address", tensor.data)
}

fn every_look_up(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for round in 0..3_i64 {
        let echo = session.function("testing.echo")?;
        let addone = session.function("rpc.test.addone")?;
        let check = format!("round-{round}");
        session.expect_call(&check, echo, vec![round.into()], &Value::Int(round))?;
        session.expect_call(&check, addone, vec![round.into()], &Value::Int(round + 1))?;
        session.free("echo-freed", echo)?;
        session.free("addone-freed", addone)?;
    }
    Ok(())
}

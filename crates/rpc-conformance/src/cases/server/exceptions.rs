//! Functions that fail: `SRV-EXC-`.

use rpc_proto::{Returned, Value};

use super::by_hand as hand;
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::stage::Outcome;

const EXCEPT: &[&str] = &["rpc.test.except"];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-EXC-001", Level::Must, "6.5.1", text_is_told)
        .about(
            "A function that fails is answered by an exception with its message.",
            "The message is all that the user sees of what happened on the device.",
        )
        .functions(EXCEPT),
    Case::server("SRV-EXC-002", Level::Should, "6.5.2", message_alone)
        .about(
            "The text of an exception is the message alone, without a class or a trace.",
            "Clients put words of their own before it, and compare it.",
        )
        .functions(EXCEPT),
    Case::server("SRV-EXC-003", Level::Must, "6.5.3", session_goes_on)
        .about(
            "The session goes on after an exception.",
            "Tuning tries programs that fail, one after the other.",
        )
        .functions(&["rpc.test.except", "rpc.test.addone"]),
    Case::server("SRV-EXC-004", Level::Must, "6.5.3", handles_stay)
        .about(
            "Handles and memory from before an exception are good after it.",
            "One failed call must not cost what was uploaded for many.",
        )
        .functions(&["rpc.test.except", "rpc.test.add_to_lhs"]),
    Case::server("SRV-EXC-005", Level::Must, "6.5.1", other_texts)
        .about(
            "Messages of several lines and of characters beyond ASCII are told as they are.",
            "The messages of compilers are like that.",
        )
        .functions(EXCEPT),
    Case::server("SRV-EXC-006", Level::Must, "6.5.1", no_text)
        .about(
            "A function that fails without a message is answered by an exception, too.",
            "An empty text is no result.",
        )
        .functions(EXCEPT),
    Case::server("SRV-EXC-007", Level::Should, "6.5.5", long_text)
        .about(
            "A message of 64 KiB is told whole.",
            "What is wrong stands at the end of a compiler's output.",
        )
        .functions(EXCEPT),
    Case::server("SRV-EXC-008", Level::Must, "6.5.1", inner_function)
        .about(
            "The exception of a function that a call returned is told.",
            "The functions of modules are of that kind.",
        )
        .functions(&["rpc.test.remote_return_nd"]),
    Case::server("SRV-EXC-009", Level::Must, "6.5.1", through_a_function)
        .about(
            "The exception of a function that another function calls is told.",
            "A time evaluator calls a function that may fail.",
        )
        .functions(&["runtime.RPCTimeEvaluator", "rpc.test.except"]),
    Case::server("SRV-EXC-010", Level::Must, "6.5.4", wrong_type)
        .about(
            "An argument of the wrong type is answered by an exception, and the session goes on.",
            "It is the most common mistake of all.",
        )
        .functions(&["rpc.testing.GetShapeSize", "rpc.test.addone"]),
    Case::server("SRV-EXC-011", Level::Must, "6.5.4", wrong_count)
        .about(
            "Too few or too many arguments are answered by an exception, and the session goes on.",
            "A function that reads arguments that are not there reads whatever is in memory.",
        )
        .functions(&["rpc.testing.GetShapeSize", "rpc.test.addone"]),
    Case::server("SRV-EXC-012", Level::Must, "6.5.1", of_the_library)
        .about(
            "Errors of several kinds are all told with their message.",
            "A client does not know the kinds.",
        )
        .functions(&["testing.test_raise_error"]),
    Case::server("SRV-EXC-013", Level::Must, "6.5.1", one_answer)
        .about(
            "An exception is the one answer to its request, and the next answer is that of the next.",
            "An answer does not say which request it is for.",
        )
        .functions(&["rpc.test.except", "testing.echo"]),
];

fn text_is_told(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    session.send_call(except, vec!["a message of its own".into()])?;
    let text = session.expect_exception("exception")?;
    let holds = text.contains("a message of its own");
    session.stage().check("text", holds, "the message", text)
}

fn message_alone(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    for message in ["abc", "a longer message", "with: a colon"] {
        session.send_call(except, vec![message.into()])?;
        let exact = [hand::exception(message)];
        session.expect_bytes("message", "the message alone", &exact)?;
    }
    Ok(())
}

fn session_goes_on(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    let addone = session.function("rpc.test.addone")?;
    for round in 0..10_i64 {
        session.send_call(except, vec!["again".into()])?;
        session.expect_exception("exception")?;
        session.expect_call(
            "next-call",
            addone,
            vec![round.into()],
            &Value::Int(round + 1),
        )?;
    }
    session.shut_down()
}

fn handles_stay(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    let maker = session.function("rpc.test.add_to_lhs")?;
    let add_ten = session.function_of("made", maker, vec![10.into()])?;
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
    let tensor = session.filled(&[8], rpc_proto::DataType::UINT8, &bytes)?;
    session.send_call(except, vec!["boom".into()])?;
    session.expect_exception("exception")?;
    session.expect_call("function-stays", add_ten, vec![1.into()], &Value::Int(11))?;
    session.expect_content("memory-stays", &tensor, &bytes)?;
    session.free("function-freed", add_ten)?;
    session.release("memory-freed", &tensor)
}

fn other_texts(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    let samples = [
        ("lines", "first line\nsecond line\n\nlast line"),
        ("beyond-ascii", "größer als 世界 🦀"),
        ("quotes", "'single' \"double\" \\ %s {}"),
    ];
    for (check, message) in samples {
        session.send_call(except, vec![message.into()])?;
        let text = session.expect_exception(check)?;
        let name = format!("{check}-text");
        session
            .stage()
            .check(&name, text.contains(message), message, text)?;
    }
    Ok(())
}

fn no_text(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    session.send_call(except, vec!["".into()])?;
    session.expect_exception_only("exception").map(drop)
}

fn long_text(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    let message = format!("{}the end", "a long message, ".repeat(4096));
    session.send_call(except, vec![message.as_str().into()])?;
    let text = session.expect_exception("exception")?;
    let holds = text.contains(&message);
    let expected = format!("a text with all of {} bytes", message.len());
    session.stage().check(
        "whole",
        holds,
        expected,
        format_args!("{} bytes", text.len()),
    )
}

fn inner_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function("rpc.test.remote_return_nd")?;
    let element = session.function_of("get-element", maker, vec!["get_elem".into()])?;
    session.expect_call("inside", element, vec![0.into()], &Value::Float(0.0))?;
    // There are ten elements.
    session.send_call(element, vec![10.into()])?;
    session.expect_exception_only("outside")?;
    session.send_call(maker, vec!["no such kind".into()])?;
    session.expect_exception_only("not-made").map(drop)
}

fn through_a_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let make = session.function("runtime.RPCTimeEvaluator")?;
    let args = super::timing::evaluator("rpc.test.except", 1, 1);
    let evaluator = session.function_of("evaluator", make, args)?;
    session.send_call(evaluator, vec!["from the inner one".into()])?;
    let text = session.expect_exception_only("exception")?;
    let holds = text.contains("from the inner one");
    session
        .stage()
        .check("text", holds, "the inner message", text)
}

fn wrong_type(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let size = session.function("rpc.testing.GetShapeSize")?;
    for (check, arg) in [
        ("integer", Value::Int(1)),
        ("text", "x".into()),
        ("none", Value::None),
    ] {
        session.send_call(size, vec![arg])?;
        session.expect_exception_only(&format!("{check}-for-a-shape"))?;
    }
    let addone = session.function("rpc.test.addone")?;
    session.send_call(addone, vec!["x".into()])?;
    session.expect_exception_only("text-for-a-number").map(drop)
}

fn wrong_count(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let size = session.function("rpc.testing.GetShapeSize")?;
    session.send_call(size, vec![])?;
    session.expect_exception_only("none-for-one")?;
    let addone = session.function("rpc.test.addone")?;
    session.send_call(addone, vec![1.into(), 2.into()])?;
    session.expect_exception_only("two-for-one")?;
    session.send_call(addone, vec![])?;
    session.expect_exception_only("none-again").map(drop)
}

fn of_the_library(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let raise = session.function("testing.test_raise_error")?;
    for kind in [
        "ValueError",
        "TypeError",
        "RuntimeError",
        "InternalError",
        "NoSuchError",
    ] {
        session.send_call(raise, vec![kind.into(), "what went wrong".into()])?;
        let text = session.expect_exception_only(kind)?;
        let check = format!("{kind}-text");
        session.stage().check(
            &check,
            text.contains("what went wrong"),
            "the message",
            text,
        )?;
    }
    Ok(())
}

fn one_answer(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let except = session.function("rpc.test.except")?;
    let echo = session.function("testing.echo")?;
    for _ in 0..3 {
        session.send_call(except, vec!["boom".into()])?;
        session.send_call(echo, vec!["fine".into()])?;
    }
    for _ in 0..3 {
        session.expect_exception("exception")?;
        let found = session.returned("next-answer")?;
        let holds = matches!(&found, Returned::Value(Value::Str(text)) if text == "fine");
        session
            .stage()
            .check("next-result", holds, "fine", format_args!("{found:?}"))?;
    }
    session.packets.expect_quiet("nothing-more")
}

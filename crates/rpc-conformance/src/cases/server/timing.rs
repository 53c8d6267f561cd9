//! Timing functions where they run: `SRV-EVAL-`.

use std::time::{Duration, Instant};

use rpc_proto::{Returned, Value};

use super::by_hand as hand;
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const TIMER: &[&str] = &["runtime.RPCTimeEvaluator", "rpc.test.addone"];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-EVAL-001", Level::Must, "10.3.1", eight_bytes_each)
        .about(
            "A time evaluator gives eight bytes for each repetition, a float of seconds.",
            "Clients cut the answer into floats.",
        )
        .functions(TIMER),
    Case::server("SRV-EVAL-002", Level::Must, "10.3.1", one_repetition)
        .about(
            "One repetition gives eight bytes, as bytes and not as a number.",
            "Eight bytes are the one case in which both would fit.",
        )
        .functions(TIMER),
    Case::server("SRV-EVAL-003", Level::Must, "10.3.2", plausible)
        .about(
            "Times are finite and not negative, and a longer least time makes for more runs, not for more time.",
            "A time is that of one run, however many were made.",
        )
        .functions(TIMER),
    Case::server("SRV-EVAL-004", Level::Must, "10.3.3", unknown_function)
        .about(
            "An evaluator of a function that there is not is refused by an exception.",
            "Names are misspelled.",
        )
        .functions(TIMER),
    Case::server("SRV-EVAL-005", Level::Must, "10.3.4", arguments)
        .about(
            "The arguments of the evaluator's call go to the function that is timed.",
            "What is measured depends on them.",
        )
        .functions(&["runtime.RPCTimeEvaluator", "rpc.test.except"]),
    Case::server("SRV-EVAL-006", Level::Must, "10.3.3", unknown_preparation)
        .about(
            "An evaluator with the name of a preparing function that there is not is refused by an exception.",
            "A measurement without its preparation is worth nothing.",
        )
        .functions(TIMER),
    Case::server("SRV-EVAL-007", Level::Must, "10.3.5", used_again)
        .about(
            "An evaluator can be called again, and others made beside it.",
            "A tuner measures with several inputs.",
        )
        .functions(TIMER),
    Case::server("SRV-EVAL-008", Level::Must, "10.3.6", preparation)
        .about(
            "The preparing function is called with the arguments of the measurement.",
            "It fills or flushes what the measurement will use.",
        )
        .functions(&["runtime.RPCTimeEvaluator", "testing.echo", "rpc.test.except"]),
    Case::server("SRV-EVAL-009", Level::Should, "10.3.7", least_time)
        .about(
            "A measurement takes at least the least time.",
            "Short runs are lost in the noise of a clock.",
        )
        .functions(TIMER),
];

/// The arguments for an evaluator of a global function on the first processor.
pub(super) fn evaluator(name: &str, number: i64, repeat: i64) -> Vec<Value<'static>> {
    prepared(name, number, repeat, 0, "")
}

fn prepared(
    name: &str,
    number: i64,
    repeat: i64,
    least_ms: i64,
    prepare: &str,
) -> Vec<Value<'static>> {
    // Behind the least time: runs that take no time, pause, runs before a pause, bytes to flush.
    let numbers = [1, 0, number, repeat, least_ms, 100, 0, 1, 0];
    let mut args = vec![Value::None, Value::from(name.to_owned())];
    args.extend(numbers.map(Value::Int));
    args.push(Value::from(prepare.to_owned()));
    args
}

/// Measures, and gives the seconds of each repetition.
fn measure(session: &mut Session, check: &str, evaluator: u64) -> Outcome<Vec<f64>> {
    let found = session.call(check, evaluator, vec![1.into()])?;
    match found {
        Returned::Value(Value::Bytes(bytes)) if bytes.len() % 8 == 0 => {
            let floats = bytes
                .chunks_exact(8)
                .map(|bytes| bytes.try_into().unwrap_or_default());
            Ok(floats.map(f64::from_le_bytes).collect())
        }
        other => {
            let found = format!("{other:?}");
            Err(session
                .stage()
                .fail(check, "bytes, eight for each repetition", found))
        }
    }
}

fn eight_bytes_each(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let make = session.function(TIMER[0])?;
    for repeat in [2, 3, 10] {
        let args = evaluator("rpc.test.addone", 1, repeat);
        let timer = session.function_of("evaluator", make, args)?;
        let times = measure(&mut session, "times", timer)?;
        let holds = i64::try_from(times.len()) == Ok(repeat);
        session
            .stage()
            .check(&format!("{repeat}-times"), holds, repeat, times.len())?;
        session.free("freed", timer)?;
    }
    Ok(())
}

fn one_repetition(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let make = session.function(TIMER[0])?;
    let timer = session.function_of("evaluator", make, evaluator("rpc.test.addone", 1, 1))?;
    session.send_call(timer, vec![1.into()])?;
    let came = session.packets.packet("times")?;
    let seconds = came.bytes.get(40..).unwrap_or_default();
    let exact = hand::result(hand::BYTES, hand::raw(hand::RAW_BYTES, seconds));
    let holds = came.bytes == exact && seconds.len() == 8;
    let words = "66, and eight bytes under index 9";
    session
        .packets
        .came_check("layout", holds, words, Some(&exact), &came)
}

fn plausible(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let make = session.function(TIMER[0])?;
    for (check, least_ms) in [("at-once", 0), ("twenty-milliseconds", 20)] {
        let args = prepared("rpc.test.addone", 3, 3, least_ms, "");
        let timer = session.function_of("evaluator", make, args)?;
        let times = measure(&mut session, check, timer)?;
        // One addition takes microseconds; a second is that of a machine that does much else.
        let right = |seconds: &f64| (0.0..1.0).contains(seconds);
        let holds = times.len() == 3 && times.iter().all(right);
        let name = format!("{check}-times");
        session
            .stage()
            .check(&name, holds, "three short times", format_args!("{times:?}"))?;
    }
    Ok(())
}

/// An evaluator that cannot be: refused when it is made, or when it is called.
fn expect_none(session: &mut Session, check: &str, args: Vec<Value<'static>>) -> Outcome {
    let make = session.function(TIMER[0])?;
    session.send_call(make, args)?;
    session.expect_exception_only(check).map(drop)
}

fn unknown_function(server: &Server) -> Outcome {
    let mut session = server.session()?;
    expect_none(
        &mut session,
        "unknown",
        evaluator("conformance.no.such.function", 1, 1),
    )
}

fn unknown_preparation(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let args = prepared("rpc.test.addone", 1, 1, 0, "conformance.no.such.function");
    expect_none(&mut session, "unknown", args)
}

fn arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let make = session.function(TIMER[0])?;
    let timer = session.function_of("evaluator", make, evaluator("rpc.test.except", 1, 1))?;
    for message in ["this one", "and that one"] {
        session.send_call(timer, vec![message.into()])?;
        let text = session.expect_exception_only("raises")?;
        session
            .stage()
            .check("its-argument", text.contains(message), message, text)?;
    }
    Ok(())
}

fn used_again(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let make = session.function(TIMER[0])?;
    let two = session.function_of("first", make, evaluator("rpc.test.addone", 1, 2))?;
    let five = session.function_of("second", make, evaluator("rpc.test.addone", 2, 5))?;
    for _ in 0..2 {
        for (timer, count) in [(two, 2), (five, 5)] {
            let times = measure(&mut session, "times", timer)?;
            session
                .stage()
                .check("count", times.len() == count, count, times.len())?;
        }
    }
    session.free("first-freed", two)?;
    session.free("second-freed", five)
}

fn preparation(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let make = session.function(TIMER[0])?;
    let args = prepared("testing.echo", 1, 1, 0, "rpc.test.except");
    let timer = session.function_of("evaluator", make, args)?;
    session.send_call(timer, vec!["from the preparation".into()])?;
    let text = session.expect_exception_only("raises")?;
    let holds = text.contains("from the preparation");
    session
        .stage()
        .check("its-argument", holds, "the argument", text)
}

fn least_time(server: &Server) -> Outcome {
    const EACH: Duration = Duration::from_millis(20);
    let mut session = server.session()?;
    let make = session.function(TIMER[0])?;
    let args = prepared("rpc.test.addone", 1, 3, 20, "");
    let timer = session.function_of("evaluator", make, args)?;
    let began = Instant::now();
    let times = measure(&mut session, "times", timer)?;
    let took = began.elapsed();
    session
        .stage()
        .check("three", times.len() == 3, 3, times.len())?;
    let found = format!("{took:?}");
    session
        .stage()
        .check("at-least", took >= 3 * EACH, "60 ms or more", found)
}

//! Exceptions: what a client tells its user of them: `CLI-EXC-`.

use rpc_proto::codes::{PacketCode, SESSION_TIMEOUT_PREFIX};
use rpc_proto::{Packet, Syscall};

use super::by_hand::{self, RAW_STR, SMALL_STR, STR};
use crate::case::{Case, Level};
use crate::roles::client::{Client, Line, Name, Script};
use crate::stage::{Outcome, Stage};

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-EXC-001", Level::Must, "9.10.1", text).about(
        "A client tells its user that a function failed, with the text of the exception.",
        "The text is all that anybody knows of what went wrong on the device.",
    ),
    Case::client("CLI-EXC-002", Level::Must, "9.10.2", empty_text).about(
        "A client takes an exception without a text as a failure.",
        "Older servers send no text for exceptions of Python functions.",
    ),
    Case::client("CLI-EXC-003", Level::Must, "9.10.3", goes_on).about(
        "A client goes on in the session after an exception.",
        "A program that tries many variants meets many failures.",
    ),
    Case::client("CLI-EXC-004", Level::Must, "9.10.4", session_timeout).about(
        "A client tells an exception that begins with the mark of a session timeout from others.",
        "Its user wants to know whether the program failed or was too slow.",
    ),
    Case::client("CLI-EXC-005", Level::Must, "9.10.5", unasked).about(
        "A client takes an exception that came before its request as the answer to it.",
        "A server tells so that the time of an idle session is up.",
    ),
    Case::client("CLI-EXC-006", Level::Must, "9.10.6", any_spelling).about(
        "A client takes the text of an exception in each spelling of a text.",
        "Servers differ in how they write texts.",
    ),
    Case::client("CLI-EXC-007", Level::Must, "9.10.1", long_text).about(
        "A client takes exceptions of many lines, of any alphabet, and of a megabyte.",
        "Compilers talk much.",
    ),
    Case::client("CLI-EXC-008", Level::Should, "9.10.7", session_timeout_behind_a_hop).about(
        "A client finds the mark of a session timeout also behind the words of a server in between.",
        "The session ran out of time all the same.",
    ),
    Case::client("CLI-EXC-009", Level::May, "9.10.8", more_values).about(
        "A client ignores values behind the text of an exception.",
        "It is what the reference does.",
    ),
    Case::client("CLI-EXC-010", Level::Must, "9.10.9", instead_of_a_function).about(
        "A client takes an exception as the answer to the question for a function.",
        "A server may fail at anything.",
    ),
];

/// Lets the function that fails answer by each of these, and gives the client's lines about it.
fn failures(client: &Client, answers: &[Vec<u8>]) -> Outcome<Vec<Line>> {
    let steps = vec!["fail"; answers.len()].join(",");
    let (mut rig, mut host) = client.session(&Script::steps(&format!("{steps},give")))?;
    for answer in answers {
        host.until_call(Name::Fail)?;
        host.served.packets.wire.send(answer);
    }
    host.until_end()?;
    let lines = rig.done()?;
    Ok(lines
        .into_iter()
        .filter(|line| line.step == "fail")
        .collect())
}

/// Checks what the client said of a failure.
fn expect_error(stage: &Stage, line: &Line, error: &str, text: &str) -> Outcome {
    let kind = line.error.as_deref().unwrap_or_default();
    let said = line.text.as_deref().unwrap_or_default();
    stage.check("kind-of-error", kind == error, error, kind)?;
    let holds = said.contains(text);
    let expected = format!("words with {text:?} in them");
    stage.check("text-of-error", holds, expected, format_args!("{said:?}"))
}

fn text(client: &Client) -> Outcome {
    let text = "the board is on fire";
    let lines = failures(client, &[by_hand::exception(text)])?;
    lines
        .iter()
        .try_for_each(|line| expect_error(&client.stage, line, "exception", text))
}

fn empty_text(client: &Client) -> Outcome {
    let lines = failures(client, &[by_hand::exception("")])?;
    lines
        .iter()
        .try_for_each(|line| expect_error(&client.stage, line, "exception", ""))
}

fn goes_on(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("fail,call,fail,tensor,fail,give"))?;
    host.until_end()?;
    rig.done().map(drop)
}

/// What the reference's server says when the time is up.
const TIME_IS_UP: &str =
    "Your 1.0s session has expired, try to increase the \"session_timeout\" value.";

fn session_timeout(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("fail"))?;
    host.until_call(Name::Fail)?;
    let text = format!("{SESSION_TIMEOUT_PREFIX}{TIME_IS_UP}");
    host.served.exception(&text)?;
    host.served.packets.wire.finish();
    host.abandoned()?;
    let line = rig.line_of("fail")?;
    expect_error(&client.stage, &line, "timeout", "1.0s session")
}

fn session_timeout_behind_a_hop(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("fail"))?;
    host.until_call(Name::Fail)?;
    let before = "RPCError: Error caught from RPC call:\n";
    let text = format!("{before}{SESSION_TIMEOUT_PREFIX}{TIME_IS_UP}");
    host.served.exception(&text)?;
    host.until_end()?;
    let line = rig.line_of("fail")?;
    expect_error(&client.stage, &line, "timeout", "1.0s session")
}

fn unasked(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("fail"))?;
    // Instead of the function, and before it is called.
    let question = host.until("look-up", |_, packet| {
        matches!(packet, Packet::Syscall(Syscall::GetGlobalFunc { name })
            if name == Name::Fail.text())
    })?;
    host.serve(&question)?;
    let text = format!("{SESSION_TIMEOUT_PREFIX}{TIME_IS_UP}");
    host.served.exception(&text)?;
    host.served.packets.wire.finish();
    host.abandoned()?;
    let line = rig.line_of("fail")?;
    expect_error(&client.stage, &line, "timeout", "1.0s session")
}

fn exception_of(values: &[Vec<u8>]) -> Vec<u8> {
    by_hand::packet(PacketCode::EXCEPTION, &by_hand::sequence(values))
}

fn any_spelling(client: &Client) -> Outcome {
    let spelled = [
        by_hand::raw(RAW_STR, b"failure"),
        by_hand::boxed(SMALL_STR, STR, b"failure"),
        by_hand::boxed(STR, STR, b"failure"),
    ];
    let answers: Vec<_> = spelled
        .into_iter()
        .map(|text| exception_of(&[text]))
        .collect();
    let lines = failures(client, &answers)?;
    lines
        .iter()
        .try_for_each(|line| expect_error(&client.stage, line, "exception", "failure"))
}

fn long_text(client: &Client) -> Outcome {
    let texts = [
        "Check failed: (a == b) is false: \nline 2\nline 3".to_owned(),
        "das Gerät brennt 🔥 \"so\" \\ da".to_owned(),
        "x".repeat(1 << 20),
    ];
    let answers: Vec<_> = texts.iter().map(|text| by_hand::exception(text)).collect();
    let lines = failures(client, &answers)?;
    for (line, text) in lines.iter().zip(&texts) {
        let begin: String = text.chars().take(20).collect();
        expect_error(&client.stage, line, "exception", begin.trim_end())?;
    }
    Ok(())
}

fn more_values(client: &Client) -> Outcome {
    let text = by_hand::raw(RAW_STR, b"failure");
    let lines = failures(client, &[exception_of(&[text, by_hand::int(5)])])?;
    lines
        .iter()
        .try_for_each(|line| expect_error(&client.stage, line, "exception", "failure"))
}

fn instead_of_a_function(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    host.until("look-up", |_, packet| {
        matches!(packet, Packet::Syscall(Syscall::GetGlobalFunc { name })
            if name == Name::Give.text())
    })?;
    host.served.exception("the board is on fire")?;
    host.until_end()?;
    let line = rig.failed("give")?;
    expect_error(&client.stage, &line, "exception", "the board is on fire")
}

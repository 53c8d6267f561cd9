//! What a client does when the tracker fails: `CLI-RETRY-`.

use std::time::Duration;

use rpc_proto::Returned;
use rpc_proto::codes::RPC_MAGIC;
use serde_json::{Value, json};

use crate::case::{Case, Level, Tag};
use crate::roles::TrackerWire;
use crate::roles::client::{Client, Name, Rig, Script};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-RETRY-001", Level::Should, "9.2.1", refused).about(
        "A client whose request is refused asks again.",
        "Trackers refuse also for reasons that pass.",
    ),
    Case::client("CLI-RETRY-002", Level::Must, "9.2.2", refused_by_a_number).about(
        "A client takes a bare -1 as a refusal: it asks again, or ends with an error.",
        "Some trackers refuse without an array.",
    ),
    Case::client("CLI-RETRY-003", Level::Should, "9.2.3", closed_after_the_request).about(
        "A client whose connection the tracker closes instead of an answer asks again on a new one.",
        "A tracker that is started anew closes the connections of all who wait.",
    ),
    Case::client("CLI-RETRY-004", Level::Should, "9.2.3", reset_after_the_request).about(
        "A client whose connection is reset instead of an answer asks again on a new one.",
        "A tracker that is killed, or a router that forgets, looks like this.",
    ),
    Case::client("CLI-RETRY-005", Level::Should, "9.2.3", closed_in_the_answer)
        .about(
            "A client whose connection ends in the middle of the answer asks again on a new one.",
            "Half a grant is none.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-RETRY-006", Level::Must, "9.2.4", closed_instead_of_a_greeting).about(
        "A client whose connection ends before the greeting tries again, or ends with an error.",
        "Nothing else will come on it.",
    ),
    Case::client("CLI-RETRY-007", Level::Must, "9.2.5", other_greeting)
        .about(
            "A client that is greeted otherwise sends no request there, and ends with an error.",
            "It talks to another service, whose port somebody mistook for the tracker's.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-RETRY-008", Level::Must, "9.2.6", no_json)
        .about(
            "A client that gets an answer that is not JSON asks again, or ends with an error.",
            "It must not wait for an answer that has come.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-RETRY-009", Level::Must, "9.2.6", wrong_shape)
        .about(
            "A client that gets JSON that is no grant asks again, or ends with an error.",
            "It must not connect to a host that it made up.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-RETRY-010", Level::Must, "9.2.6", length_not_positive)
        .about(
            "A client that gets a frame of no bytes, or of fewer, asks again, or ends with an error.",
            "Read as an unsigned number a negative length is four gigabytes.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-RETRY-011", Level::Should, "9.2.7", huge_length)
        .about(
            "A client does not wait for an answer of two gigabytes.",
            "It would wait for ever for something that is no answer.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-RETRY-012", Level::Must, "9.2.8", as_often_as_told).about(
        "A client asks no more often than its user told it, and then ends with an error.",
        "Who asks for ever hides that something is wrong, and wears the farm out.",
    ),
    Case::client("CLI-RETRY-013", Level::Should, "9.2.9", not_there_yet)
        .about(
            "A client whose tracker refuses connections tries for some seconds.",
            "A tracker that is started anew is away for a moment.",
        )
        .tags(&[Tag::Slow]),
    Case::client("CLI-RETRY-014", Level::Should, "9.2.10", lost_between_sessions).about(
        "A client whose connection to the tracker was lost since its last request makes a new one.",
        "A program that lives for days sees its tracker started anew.",
    ),
    Case::client("CLI-RETRY-015", Level::Must, "9.2.11", two_sessions).about(
        "A client that needs another session asks for another device.",
        "The match key of the first is used up.",
    ),
];

/// Answers the first request by `fail`, and the next one by a device.
fn then_granted(client: &Client, fail: impl FnOnce(&mut TrackerWire)) -> Outcome {
    let mut rig = client.start(&Script::steps("give"))?;
    let mut asking = rig.asked()?;
    fail(&mut asking);
    let mut host = rig.host_again(asking)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn refused(client: &Client) -> Outcome {
    then_granted(client, |asking| asking.send(&json!([-1, "not now"])))
}

fn closed_after_the_request(client: &Client) -> Outcome {
    then_granted(client, |asking| asking.wire.finish())
}

fn reset_after_the_request(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps("give"))?;
    rig.asked()?.wire.reset();
    let mut host = rig.host()?;
    host.until_end()?;
    rig.done().map(drop)
}

fn closed_in_the_answer(client: &Client) -> Outcome {
    then_granted(client, |asking| {
        asking.wire.send_whole(b"\x20\0\0\0[0, [\"127.0.0.1\", ");
        asking.wire.finish();
    })
}

/// Answers every request in the same way, until the client either asks for the second time, which is
/// then granted, or ends with an error.
fn asks_again_or_says_so(client: &Client, fail: impl Fn(&mut TrackerWire)) -> Outcome {
    let mut rig = client.start(&Script::steps("give").with_tries(2))?;
    let mut asking = rig.asked()?;
    fail(&mut asking);
    let Some(mut again) = rig.asked_again_or_ended(asking)? else {
        return rig.failed("session").map(drop);
    };
    let mut host = rig.host_on(&mut again)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn refused_by_a_number(client: &Client) -> Outcome {
    asks_again_or_says_so(client, |asking| asking.send(&json!(-1)))
}

fn no_json(client: &Client) -> Outcome {
    asks_again_or_says_so(client, |asking| asking.send_text("it is all yours"))?;
    asks_again_or_says_so(client, |asking| {
        let text = b"[0, [\"\xff\xfe\", 1, \"x\"]]";
        asking.wire.send(&crate::roles::tracker::frame(text));
    })
}

fn wrong_shape(client: &Client) -> Outcome {
    for answer in [json!([0]), json!({"status": 0})] {
        asks_again_or_says_so(client, |asking| asking.send(&answer))?;
    }
    Ok(())
}

fn length_not_positive(client: &Client) -> Outcome {
    for length in [0_i32, -2] {
        asks_again_or_says_so(client, |asking| asking.wire.send(&length.to_le_bytes()))?;
    }
    Ok(())
}

fn huge_length(client: &Client) -> Outcome {
    asks_again_or_says_so(client, |asking| asking.wire.send(&i32::MAX.to_le_bytes()))
}

/// Does the same on every connection to the tracker, until the client has ended with an error.
fn always(client: &Client, mut act: impl FnMut(&mut Rig, TrackerWire) -> Outcome) -> Outcome {
    let mut rig = client.start(&Script::steps("give").with_tries(2))?;
    let first = rig.tracker_connection("tracker-connection")?;
    act(&mut rig, first)?;
    rig.while_it_runs(&mut act)?;
    rig.failed("session").map(drop)
}

fn closed_instead_of_a_greeting(client: &Client) -> Outcome {
    always(client, |_, mut connection| {
        connection.greeting("magic")?;
        connection.wire.finish();
        Ok(())
    })
}

fn other_greeting(client: &Client) -> Outcome {
    for greeting in [RPC_MAGIC.to_le_bytes(), *b"HTTP"] {
        always(client, |_, mut connection| {
            connection.greeting("magic")?;
            connection.wire.send_whole(&greeting);
            connection.wire.read_to_end();
            let unread = connection.wire.unread();
            let holds = unread.is_empty() && connection.wire.ended().is_some();
            let found = format!("{:?}", String::from_utf8_lossy(unread));
            let expected = "the end of the connection, and no request";
            client.stage.check("no-request", holds, expected, found)
        })?;
    }
    Ok(())
}

fn as_often_as_told(client: &Client) -> Outcome {
    for tries in [1, 3] {
        let mut rig = client.start(&Script::steps("give").with_tries(tries))?;
        let mut requests = 1;
        let mut asking = rig.asked()?;
        loop {
            asking.send(&json!([-1, "never"]));
            match rig.asked_again_or_ended(asking)? {
                Some(again) => asking = again,
                None => break,
            }
            requests += 1;
            if requests > tries {
                break;
            }
        }
        let holds = requests <= tries;
        let check = format!("requests-of-{tries}");
        client.stage.check(
            &check,
            holds,
            format_args!("at most {tries} requests"),
            requests,
        )?;
        rig.failed("session")?;
    }
    Ok(())
}

fn not_there_yet(client: &Client) -> Outcome {
    let mut rig = client.start_early(&Script::steps("give"))?;
    // So that a client that starts fast meets a tracker that is not there.
    std::thread::sleep(Duration::from_millis(1500));
    rig.tracker.open()?;
    let mut host = rig.host()?;
    host.until_end()?;
    rig.done().map(drop)
}

fn lost_between_sessions(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps("give,again,give"))?;
    let mut asking = rig.asked()?;
    let mut host = rig.host_on(&mut asking)?;
    host.until_call(Name::Give)?;
    asking.wire.finish();
    drop(asking);
    host.served.returned(&Returned::Value(1_i64.into()))?;
    host.until_end()?;
    let mut host = rig.host()?;
    host.until_end()?;
    rig.done().map(drop)
}

fn two_sessions(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps("give,again,give"))?;
    let mut asking = rig.asked()?;
    rig.host_on(&mut asking)?.until_end()?;
    let mut host = rig.host_again(asking)?;
    host.until_end()?;
    let lines = rig.done()?;
    let given: Vec<_> = lines.iter().filter(|line| line.step == "give").collect();
    let found = Value::from(given.len());
    let holds = given.len() == 2;
    client.stage.check("both-work", holds, 2, found)
}

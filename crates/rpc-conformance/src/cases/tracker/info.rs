//! Who a connection says it is: `TRK-INFO-`.

use serde_json::{Value, json};

use crate::case::{Case, Level};
use crate::roles::Tracker;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-INFO-001", Level::Must, "2.4.9", answered).about(
        "An update info is answered by 0.",
        "A server waits for the answer before its first put.",
    ),
    Case::tracker("TRK-INFO-002", Level::Must, "2.8.3", listed).about(
        "Who said who it is stands in the summary, with its key.",
        "A query shows which servers a farm has.",
    ),
    Case::tracker("TRK-INFO-003", Level::Must, "2.8.4", null_is_replaced).about(
        "Where the address of an update info is null, the summary has the one that it came from.",
        "Servers seldom know under which address clients reach them.",
    ),
    Case::tracker("TRK-INFO-004", Level::Must, "2.8.3", given_address).about(
        "An address that an update info gives stands in the summary as it is.",
        "Behind a gateway only the server knows the address under which it can be reached.",
    ),
    Case::tracker("TRK-INFO-005", Level::Must, "2.4.10", port_as_text).about(
        "An update info whose port is a text is taken.",
        "Servers in C++ send a text.",
    ),
    Case::tracker("TRK-INFO-006", Level::Should, "2.8.7", port_as_given).about(
        "The summary has the port as it was given, as number or as text.",
        "Who reads the summary sees the same as with the reference.",
    ),
    Case::tracker("TRK-INFO-007", Level::Should, "2.4.11", without_address).about(
        "An update info without an address is taken, and summaries go on.",
        "Servers of old versions send none.",
    ),
    Case::tracker("TRK-INFO-008", Level::Must, "2.4.12", again).about(
        "A second update info replaces the first.",
        "A proxy says anew which keys are behind it whenever that changes.",
    ),
    Case::tracker("TRK-INFO-009", Level::Must, "2.8.3", odd_key).about(
        "A key with colons, quotes and characters beyond ASCII stands in the summary as it is.",
        "Serial numbers of phones, as 127.0.0.1:5555, are keys.",
    ),
    Case::tracker("TRK-INFO-010", Level::Must, "2.8.5", gone).about(
        "A server whose connection has ended is not listed any more.",
        "A query that shows dead servers leads people to wait for them.",
    ),
    Case::tracker("TRK-INFO-011", Level::Must, "2.8.3", two_of_a_kind).about(
        "Two servers of one key are listed twice.",
        "A farm has several devices of a kind.",
    ),
];

/// What the summary lists of servers with this key.
fn servers(tracker: &Tracker, key: &str) -> Outcome<Vec<Value>> {
    let mut connection = tracker.greeted()?;
    connection.send(&json!([6]));
    let summary = connection.answer("summary")?;
    let listed = summary[1]["server_info"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    Ok(listed
        .into_iter()
        .filter(|server| server["key"] == json!(key))
        .collect())
}

fn expect_servers(tracker: &Tracker, check: &str, key: &str, addresses: &[Value]) -> Outcome {
    let found = servers(tracker, key)?;
    let expected: Vec<_> = addresses
        .iter()
        .map(|addr| json!({"key": key, "addr": addr}))
        .collect();
    let words = Value::from(expected.clone());
    tracker
        .stage
        .check(check, found == expected, words, Value::from(found))
}

/// Sends an update info, whose answer is 0; gives the connection, which has to be kept.
fn say(tracker: &Tracker, info: &Value) -> Outcome<crate::roles::TrackerWire> {
    let mut server = tracker.greeted()?;
    server.send(&json!([5, info]));
    server.expect("update-info", &json!(0))?;
    Ok(server)
}

fn answered(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    say(tracker, &json!({"key": key, "addr": [null, 9090]})).map(drop)
}

fn listed(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    let _server = say(tracker, &json!({"key": key, "addr": ["203.0.113.7", 9090]}))?;
    let found = servers(tracker, &key)?;
    tracker.stage.check(
        "listed",
        found.len() == 1,
        "one server of the key",
        Value::from(found),
    )
}

fn null_is_replaced(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    let _server = say(tracker, &json!({"key": key, "addr": [null, 9090]}))?;
    expect_servers(
        tracker,
        "listed",
        &key,
        &[json!([tracker.own_host(), 9090])],
    )
}

fn given_address(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    let _server = say(
        tracker,
        &json!({"key": key, "addr": ["board.example", 9090]}),
    )?;
    expect_servers(tracker, "listed", &key, &[json!(["board.example", 9090])])
}

fn port_as_text(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    let _server = say(tracker, &json!({"key": key, "addr": [null, "15201"]}))?;
    let found = servers(tracker, &key)?;
    let host = tracker.own_host();
    let holds = found.len() == 1
        && found[0]["addr"][0] == json!(host)
        && [json!("15201"), json!(15201)].contains(&found[0]["addr"][1]);
    tracker.stage.check(
        "listed",
        holds,
        "the host and the port 15201",
        Value::from(found),
    )
}

fn port_as_given(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    let _server = say(tracker, &json!({"key": key, "addr": ["h", "15201"]}))?;
    expect_servers(tracker, "text", &key, &[json!(["h", "15201"])])?;
    let key = format!("server:{}", tracker.key("other"));
    let _server = say(tracker, &json!({"key": key, "addr": ["h", 15201]}))?;
    expect_servers(tracker, "number", &key, &[json!(["h", 15201])])
}

fn without_address(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    let _server = say(tracker, &json!({"key": key}))?;
    let found = servers(tracker, &key)?;
    tracker.stage.check(
        "listed",
        found.len() == 1,
        "one server of the key",
        Value::from(found),
    )
}

fn again(tracker: &Tracker) -> Outcome {
    let first = format!("server:{}", tracker.key("first"));
    let second = format!("server:{}", tracker.key("second"));
    let mut server = say(tracker, &json!({"key": first, "addr": ["h", 1]}))?;
    server.send(&json!([5, {"key": second, "addr": ["h", 1]}]));
    server.expect("second", &json!(0))?;
    expect_servers(tracker, "second-is-listed", &second, &[json!(["h", 1])])?;
    expect_servers(tracker, "first-is-not", &first, &[])
}

fn odd_key(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}127.0.0.1:5555 \"größe\" 📱", tracker.key("dev"));
    let _server = say(tracker, &json!({"key": key, "addr": ["h", 1]}))?;
    expect_servers(tracker, "listed", &key, &[json!(["h", 1])])
}

fn gone(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    drop(say(tracker, &json!({"key": key, "addr": ["h", 1]}))?);
    tracker.until("not-listed", "no server of the key", || {
        let found = servers(tracker, &key)?;
        Ok((found.is_empty(), Value::from(found)))
    })
}

fn two_of_a_kind(tracker: &Tracker) -> Outcome {
    let key = format!("server:{}", tracker.key("dev"));
    let info = json!({"key": key, "addr": ["h", 1]});
    let _servers = [say(tracker, &info)?, say(tracker, &info)?];
    expect_servers(tracker, "listed", &key, &[json!(["h", 1]), json!(["h", 1])])
}

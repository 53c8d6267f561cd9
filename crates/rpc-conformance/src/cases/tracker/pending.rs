//! The match keys that are left: `TRK-LEFT-`.

use serde_json::{Value, json};

use crate::case::{Case, Level};
use crate::roles::{Tracker, TrackerWire};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-LEFT-001", Level::Must, "2.7.1", none).about(
        "A connection that has put nothing is told an empty array.",
        "A proxy without servers asks, too.",
    ),
    Case::tracker("TRK-LEFT-002", Level::Must, "2.7.1", all_of_them).about(
        "A connection is told every match key that it has put, without a status before them.",
        "A server that misses its match key puts a new one every few seconds.",
    ),
    Case::tracker("TRK-LEFT-003", Level::Must, "2.7.2", not_the_granted).about(
        "A match key that was granted is not told any more.",
        "It is how a server finds out that a client took its device and never came.",
    ),
    Case::tracker("TRK-LEFT-004", Level::Must, "2.7.3", not_of_others).about(
        "Match keys of other connections are not told.",
        "A server that misses its match key must not be calmed by another's.",
    ),
    Case::tracker(
        "TRK-LEFT-005",
        Level::Must,
        "2.7.2",
        put_and_granted_at_once,
    )
    .about(
        "A match key that went to a waiting request at once is not told.",
        "The server would wait for a client that is there already.",
    ),
    Case::tracker("TRK-LEFT-006", Level::Must, "2.7.1", put_again).about(
        "A new match key is told after an old one was granted.",
        "That is the state of a server after its first session.",
    ),
    Case::tracker("TRK-LEFT-007", Level::Must, "2.7.1", several_keys).about(
        "Match keys of all keys that the connection offers are told.",
        "A proxy offers several.",
    ),
];

/// Checks what is told, in any order.
fn expect_left(server: &mut TrackerWire, check: &str, expected: &[&str]) -> Outcome {
    server.send(&json!([7]));
    let found = server.answer(check)?;
    let mut sorted: Vec<_> = found.as_array().cloned().unwrap_or_default();
    sorted.sort_by_key(Value::to_string);
    let mut wanted: Vec<_> = expected.iter().map(|key| json!(key)).collect();
    wanted.sort_by_key(Value::to_string);
    let holds = found.is_array() && sorted == wanted;
    server
        .wire
        .stage()
        .check(check, holds, Value::from(wanted), found)
}

fn none(tracker: &Tracker) -> Outcome {
    let mut server = tracker.greeted()?;
    server.send(&json!([7]));
    server.expect("none", &json!([]))
}

fn all_of_them(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    for match_key in ["a:0.1", "a:0.2", "größe:0.3"] {
        server.put(&key, 9090, match_key)?;
    }
    expect_left(&mut server, "all", &["a:0.1", "a:0.2", "größe:0.3"])
}

fn not_the_granted(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, "a")?;
    server.put(&key, 9090, "b")?;
    tracker.asking(&key, 1)?.expect_grant("grant", "a")?;
    expect_left(&mut server, "the-other", &["b"])?;
    tracker.asking(&key, 1)?.expect_grant("grant", "b")?;
    expect_left(&mut server, "none", &[])
}

fn not_of_others(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut one = tracker.greeted()?;
    let mut other = tracker.greeted()?;
    one.put(&key, 9090, "of one")?;
    other.put(&key, 9090, "of the other")?;
    expect_left(&mut one, "one", &["of one"])?;
    expect_left(&mut other, "other", &["of the other"])
}

fn put_and_granted_at_once(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut client = tracker.asking(&key, 1)?;
    tracker.until_counts("waits", &key, 0, 1)?;
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, "m")?;
    client.expect_grant("grant", "m")?;
    expect_left(&mut server, "none", &[])
}

fn put_again(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.device(&key, 9090, "old")?;
    tracker.asking(&key, 1)?.expect_grant("grant", "old")?;
    server.put(&key, 9090, "new")?;
    expect_left(&mut server, "new", &["new"])
}

fn several_keys(tracker: &Tracker) -> Outcome {
    let mut server = tracker.greeted()?;
    server.put(&tracker.key("a"), 9090, "of a")?;
    server.put(&tracker.key("b"), 9090, "of b")?;
    expect_left(&mut server, "both", &["of a", "of b"])
}

//! The summary: `TRK-SUM-`.

use serde_json::{Value, json};

use crate::case::{Case, Level};
use crate::roles::Tracker;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-SUM-001", Level::Must, "2.8.1", shape).about(
        "The summary is a status and an object with queue_info and server_info.",
        "Query tools read both.",
    ),
    Case::tracker("TRK-SUM-002", Level::Must, "2.8.2", free_and_pending).about(
        "The counts follow every put, request and grant.",
        "Tuning jobs choose how many runners they start by them.",
    ),
    Case::tracker("TRK-SUM-003", Level::Must, "2.8.2", grant_is_in_the_counts).about(
        "When a put has been answered, the counts have it; when a grant has come, they have that.",
        "A job that looks after its own request sees itself.",
    ),
    Case::tracker("TRK-SUM-004", Level::Must, "2.8.1", types).about(
        "Counts are integers, keys are texts, addresses are arrays of two.",
        "Query tools format them.",
    ),
    Case::tracker(
        "TRK-SUM-005",
        Level::Should,
        "2.8.6",
        key_without_free_device,
    )
    .about(
        "A key whose only device was granted is still listed, with 0 free.",
        "A query that does not show it says that there is no such device.",
    ),
    Case::tracker("TRK-SUM-006", Level::Must, "2.8.2", fifty_servers).about(
        "With fifty servers the summary lists every one.",
        "A farm has as many.",
    ),
];

fn whole(tracker: &Tracker) -> Outcome<Value> {
    let mut connection = tracker.greeted()?;
    connection.send(&json!([6]));
    connection.answer("summary")
}

fn shape(tracker: &Tracker) -> Outcome {
    let summary = whole(tracker)?;
    let holds = summary.as_array().is_some_and(|parts| parts.len() == 2)
        && summary[0] == json!(0)
        && summary[1]["queue_info"].is_object()
        && summary[1]["server_info"].is_array();
    let expected = r#"[0, {"queue_info": {…}, "server_info": […]}]"#;
    tracker.stage.check("shape", holds, expected, &summary)
}

fn free_and_pending(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.introduce(&key, 9090)?;
    server.put(&key, 9090, "a")?;
    tracker.expect_counts("one-free", &key, 1, 0)?;
    server.put(&key, 9090, "b")?;
    tracker.expect_counts("two-free", &key, 2, 0)?;
    let mut client = tracker.asking(&key, 1)?;
    client.expect_grant("grant", "a")?;
    tracker.expect_counts("one-free-again", &key, 1, 0)?;
    client.send(&json!([4, key, "", 1]));
    client.expect_grant("grant", "b")?;
    tracker.expect_counts("none-free", &key, 0, 0)?;
    client.send(&json!([4, key, "", 1]));
    tracker.until_counts("one-waits", &key, 0, 1)?;
    server.put(&key, 9090, "c")?;
    client.expect_grant("grant", "c")?;
    tracker.expect_counts("none-waits", &key, 0, 0)
}

fn grant_is_in_the_counts(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    for round in 0..10 {
        let match_key = format!("m{round}");
        server.put(&key, 9090, &match_key)?;
        tracker.expect_counts("after-the-put", &key, 1, 0)?;
        tracker.asking(&key, 1)?.expect_grant("grant", &match_key)?;
        tracker.expect_counts("after-the-grant", &key, 0, 0)?;
    }
    Ok(())
}

fn types(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let _server = tracker.device(&key, 9090, "m")?;
    let summary = whole(tracker)?;
    let counts = &summary[1]["queue_info"][&key];
    let stage = &tracker.stage;
    let integers = counts["free"].is_u64() && counts["pending"].is_u64();
    stage.check("counts", integers, "two integers", counts)?;
    let servers = summary[1]["server_info"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let own = format!("server:{key}");
    let listed = servers.iter().find(|server| server["key"] == json!(own));
    let address = listed
        .map(|server| server["addr"].clone())
        .unwrap_or_default();
    let holds = address.as_array().is_some_and(|parts| parts.len() == 2) && address[0].is_string();
    stage.check("address", holds, "host and port", &address)
}

fn key_without_free_device(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let _server = tracker.device(&key, 9090, "m")?;
    tracker.asking(&key, 1)?.expect_grant("grant", "m")?;
    let counts = tracker.counts(&key)?;
    let expected = json!({"free": 0, "pending": 0});
    tracker
        .stage
        .check("listed", counts == expected, &expected, &counts)
}

fn fifty_servers(tracker: &Tracker) -> Outcome {
    const SERVERS: u16 = 50;
    let key = tracker.key("dev");
    let servers: Vec<_> = (0..SERVERS)
        .map(|number| tracker.device(&key, 9000 + number, &format!("m{number}")))
        .collect::<Result<_, _>>()?;
    tracker.expect_counts("free", &key, SERVERS.into(), 0)?;
    let summary = whole(tracker)?;
    let own = format!("server:{key}");
    let listed = summary[1]["server_info"].as_array().into_iter().flatten();
    let mut ports: Vec<_> = listed
        .filter(|server| server["key"] == json!(own))
        .filter_map(|server| server["addr"][1].as_u64())
        .collect();
    ports.sort_unstable();
    let expected: Vec<u64> = (9000..9000 + u64::from(SERVERS)).collect();
    drop(servers);
    tracker.stage.check(
        "listed",
        ports == expected,
        "each of the fifty",
        format_args!("{ports:?}"),
    )
}

//! What a server offers: `TRK-PUT-`.

use serde_json::{Value, json};

use crate::case::{Case, Level, Tag};
use crate::roles::{Tracker, TrackerWire};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-PUT-001", Level::Must, "2.4.1", put_is_answered).about(
        "A put is answered by 0.",
        "A server waits for the answer before it accepts a client.",
    ),
    Case::tracker(
        "TRK-PUT-002",
        Level::Must,
        "2.5.1",
        grant_has_port_and_match_key,
    )
    .about(
        "Who asks for the key is told the port and the match key of the put.",
        "With another port or match key the server is not found or refuses.",
    ),
    Case::tracker("TRK-PUT-003", Level::Must, "2.4.3", own_address).about(
        "A put with null as address lends the address that it came from.",
        "Servers seldom know under which address clients reach them.",
    ),
    Case::tracker("TRK-PUT-004", Level::Must, "2.4.3", no_address).about(
        "A put of three elements is taken, as one with null as address.",
        "Older servers send three.",
    ),
    Case::tracker("TRK-PUT-005", Level::Must, "2.4.2", given_address).about(
        "An address that a put gives is handed out as it is.",
        "Behind a gateway only the server knows the address under which it can be reached.",
    ),
    Case::tracker("TRK-PUT-006", Level::Must, "2.4.2", address_with_quotes).about(
        "An address with quotes and backslashes is handed out as it is.",
        "A tracker that builds JSON by hand breaks it.",
    ),
    Case::tracker("TRK-PUT-007", Level::Should, "2.4.4", empty_address).about(
        "An empty address counts as none.",
        "No client can connect to an empty name.",
    ),
    Case::tracker("TRK-PUT-008", Level::Must, "2.4.5", odd_keys).about(
        "Keys with colons, quotes, backslashes, blanks and line ends can be put and asked for.",
        "Serial numbers of phones, as 127.0.0.1:5555, are keys.",
    ),
    Case::tracker("TRK-PUT-009", Level::Must, "2.4.5", odd_match_keys).about(
        "Match keys are given back as they are, whatever is in them.",
        "They are the server's own; nobody else has to understand them.",
    ),
    Case::tracker("TRK-PUT-010", Level::Must, "2.4.5", empty_key)
        .about(
            "The empty text is a key.",
            "A server that was started without a key has this one.",
        )
        // Every playing of it has the same key.
        .tags(&[Tag::Alone]),
    Case::tracker("TRK-PUT-011", Level::Must, "2.4.6", several_devices).about(
        "One connection may offer several devices under one key.",
        "A server with several boards, or a proxy, does.",
    ),
    Case::tracker("TRK-PUT-012", Level::Must, "2.4.6", several_keys).about(
        "One connection may offer devices under several keys.",
        "A proxy does.",
    ),
    Case::tracker(
        "TRK-PUT-013",
        Level::Should,
        "2.4.7",
        twice_on_one_connection,
    )
    .about(
        "A match key that one connection puts twice harms nobody who is granted it.",
        "A server that tries again after a lost answer does that.",
    ),
    Case::tracker(
        "TRK-PUT-014",
        Level::Should,
        "2.4.7",
        twice_on_two_connections,
    )
    .about(
        "A match key that two connections put harms nobody who is granted it.",
        "Random numbers are not always different.",
    ),
    Case::tracker("TRK-PUT-015", Level::Must, "2.4.1", put_while_one_waits).about(
        "A put that a waiting request takes at once is answered by 0, too.",
        "The server waits for the answer either way.",
    ),
    Case::tracker("TRK-PUT-016", Level::Must, "2.4.8", all_ports).about(
        "The smallest and the greatest port are given back as they are.",
        "A port that went through 16 signed bits is another one.",
    ),
    Case::tracker("TRK-PUT-017", Level::Must, "2.4.5", long_key).about(
        "A key and a match key of a thousand characters are taken.",
        "Keys that describe a device in full are long.",
    ),
    Case::tracker("TRK-PUT-018", Level::Must, "2.4.6", put_again).about(
        "After its device was taken, a server offers it again under another match key.",
        "That is what it does after each session.",
    ),
    Case::tracker(
        "TRK-PUT-019",
        Level::Must,
        "2.4.1",
        put_without_introduction,
    )
    .about(
        "A put of a connection that did not say who it is can be asked for.",
        "A proxy puts first and says who it is afterwards.",
    ),
];

/// Puts under a key and asks for it on another connection; gives the grant.
fn granted(tracker: &Tracker, key: &str, match_key: &str, address: &Value) -> Outcome<Value> {
    let mut server = tracker.greeted()?;
    server.send(&json!([3, key, [9090, match_key], address]));
    server.expect("put", &json!(0))?;
    let mut client = tracker.asking(key, 1)?;
    client.answer("grant")
}

fn expect_granted(tracker: &Tracker, key: &str, match_key: &str) -> Outcome {
    let found = granted(tracker, key, match_key, &Value::Null)?;
    let host = tracker.own_host();
    let expected = json!([0, [host, 9090, match_key]]);
    tracker
        .stage
        .check("grant", found == expected, &expected, &found)
}

fn expect_host(tracker: &Tracker, given: &Value, expected: &str) -> Outcome {
    let key = tracker.key("dev");
    let found = granted(tracker, &key, "m", given)?;
    let holds = found[1][0] == json!(expected);
    tracker
        .stage
        .check("host", holds, format_args!("the host {expected:?}"), &found)
}

fn put_is_answered(tracker: &Tracker) -> Outcome {
    let mut server = tracker.greeted()?;
    server.put(&tracker.key("dev"), 9090, "m")
}

fn grant_has_port_and_match_key(tracker: &Tracker) -> Outcome {
    expect_granted(tracker, &tracker.key("dev"), "dev:0.5")
}

fn own_address(tracker: &Tracker) -> Outcome {
    expect_host(tracker, &Value::Null, &tracker.own_host())
}

fn no_address(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.send(&json!([3, key, [9090, "m"]]));
    server.expect("put", &json!(0))?;
    let mut client = tracker.asking(&key, 1)?;
    client.expect("grant", &json!([0, [tracker.own_host(), 9090, "m"]]))
}

fn given_address(tracker: &Tracker) -> Outcome {
    expect_host(tracker, &json!("203.0.113.7"), "203.0.113.7")?;
    expect_host(tracker, &json!("board.example"), "board.example")
}

fn address_with_quotes(tracker: &Tracker) -> Outcome {
    expect_host(tracker, &json!(r#"a "b" \ c"#), r#"a "b" \ c"#)
}

fn empty_address(tracker: &Tracker) -> Outcome {
    expect_host(tracker, &json!(""), &tracker.own_host())
}

/// Texts that break what takes them apart or builds JSON by hand.
const ODD: [&str; 8] = [
    "127.0.0.1:5555",
    ":",
    "a:b:c",
    "with blanks",
    "quote\"d",
    "back\\slash",
    "line\nend",
    "größe 世界 📱",
];

fn odd_keys(tracker: &Tracker) -> Outcome {
    let own = tracker.key("dev");
    ODD.iter()
        .try_for_each(|odd| expect_granted(tracker, &format!("{own}{odd}"), "dev:0.5"))
}

fn odd_match_keys(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    ODD.iter()
        .try_for_each(|odd| expect_granted(tracker, &key, odd))?;
    expect_granted(tracker, &key, "")
}

fn empty_key(tracker: &Tracker) -> Outcome {
    let mut server = tracker.greeted()?;
    server.put("", 9090, &tracker.key("m"))?;
    let mut client = tracker.asking("", 1)?;
    client.expect_grant("grant", &tracker.key("m"))
}

fn several_devices(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    for number in 0..3 {
        server.put(&key, 9000 + number, &format!("m{number}"))?;
    }
    let mut client = tracker.greeted()?;
    let mut found = Vec::new();
    for _ in 0..3 {
        client.send(&json!([4, key, "", 1]));
        found.push(client.answer("grant")?[1][1].clone());
    }
    found.sort_by_key(Value::to_string);
    let expected = [json!(9000), json!(9001), json!(9002)];
    tracker.stage.check(
        "all",
        found == expected,
        "each of the three",
        format_args!("{found:?}"),
    )
}

fn several_keys(tracker: &Tracker) -> Outcome {
    let keys = [tracker.key("a"), tracker.key("b")];
    let mut server = tracker.greeted()?;
    for key in &keys {
        server.put(key, 9090, &format!("of {key}"))?;
    }
    for key in &keys {
        let mut client = tracker.asking(key, 1)?;
        client.expect_grant("grant", &format!("of {key}"))?;
    }
    Ok(())
}

/// Two clients ask after the same match key was put twice. A tracker may have one device or two of it;
/// who is granted it has to be served on as before.
fn doubled(tracker: &Tracker, key: &str, first: &mut TrackerWire) -> Outcome {
    let mut clients = [tracker.asking(key, 1)?, tracker.asking(key, 1)?];
    clients[0].expect_grant("first", "same")?;
    // So that a second device would have been granted by now.
    tracker.expect_alive("barrier")?;
    clients[1].wire.poll();
    if !clients[1].wire.unread().is_empty() {
        clients[1].expect_grant("second", "same")?;
        clients[1].send(&json!([1]));
        clients[1].expect("second-goes-on", &json!(0))?;
    }
    clients[0].send(&json!([1]));
    clients[0].expect("first-goes-on", &json!(0))?;
    first.send(&json!([1]));
    first.expect("server-goes-on", &json!(0))
}

fn twice_on_one_connection(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, "same")?;
    server.send(&json!([3, key, [9090, "same"], null]));
    server.answer("second-put")?;
    doubled(tracker, &key, &mut server)
}

fn twice_on_two_connections(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, "same")?;
    let mut other = tracker.greeted()?;
    other.put(&key, 9091, "same")?;
    doubled(tracker, &key, &mut server)?;
    other.send(&json!([1]));
    other.expect("other-server-goes-on", &json!(0))
}

fn put_while_one_waits(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut client = tracker.asking(&key, 1)?;
    tracker.until_counts("one-waits", &key, 0, 1)?;
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, "m")?;
    client.expect_grant("grant", "m")
}

fn all_ports(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    for port in [1_u16, 32768, 65535] {
        let mut server = tracker.greeted()?;
        server.put(&key, port, "m")?;
        let mut client = tracker.asking(&key, 1)?;
        client.expect("grant", &json!([0, [tracker.own_host(), port, "m"]]))?;
    }
    Ok(())
}

fn long_key(tracker: &Tracker) -> Outcome {
    let key = format!("{}{}", tracker.key("dev"), "k".repeat(1000));
    expect_granted(tracker, &key, &"m".repeat(1000))
}

fn put_again(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.device(&key, 9090, "m0")?;
    let mut client = tracker.asking(&key, 1)?;
    client.expect_grant("first", "m0")?;
    for round in 1..4 {
        let match_key = format!("m{round}");
        server.put(&key, 9090, &match_key)?;
        client.send(&json!([4, key, "", 1]));
        client.expect_grant("again", &match_key)?;
    }
    Ok(())
}

fn put_without_introduction(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, "m")?;
    let mut client = tracker.asking(&key, 1)?;
    client.expect_grant("grant", "m")?;
    server.introduce(&key, 9090)
}

//! Who gets which device: `TRK-QUEUE-`.

use serde_json::{Value, json};

use crate::case::{Case, Level};
use crate::roles::{Tracker, TrackerWire};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-QUEUE-001", Level::Must, "2.5.2", waits_for_a_device).about(
        "A request is not answered before there is a device of its key.",
        "A client that is told of a device that does not exist fails.",
    ),
    Case::tracker("TRK-QUEUE-002", Level::Must, "2.5.4", first_come).about(
        "Requests of one priority are served in the order in which they came.",
        "Otherwise who came first may wait for ever.",
    ),
    Case::tracker("TRK-QUEUE-003", Level::Must, "2.5.3", greatest_first).about(
        "The request with the greatest priority is served first, also when it came last.",
        "That is what a priority is for.",
    ),
    Case::tracker("TRK-QUEUE-004", Level::Must, "2.5.3", mixed).about(
        "Of mixed requests, the greatest priority goes first, and within one the order of coming.",
        "Both rules hold at the same time.",
    ),
    Case::tracker("TRK-QUEUE-005", Level::Must, "2.5.7", negative).about(
        "A negative priority is less than 0.",
        "Jobs that may wait give themselves one.",
    ),
    Case::tracker("TRK-QUEUE-006", Level::Must, "2.5.7", extremes).about(
        "The greatest and the least integer of 32 bits are ordered as they should.",
        "A priority that went through fewer bits, or a sign that was turned, orders them otherwise.",
    ),
    Case::tracker("TRK-QUEUE-007", Level::Should, "2.5.8", fractions).about(
        "Priorities with fractions are ordered, too.",
        "Some languages have one kind of number only.",
    ),
    Case::tracker("TRK-QUEUE-008", Level::Must, "2.5.5", granted_once).about(
        "A device is granted to one request only.",
        "The second client would find it busy, or with another's session.",
    ),
    Case::tracker("TRK-QUEUE-009", Level::Must, "2.5.6", in_order_of_puts).about(
        "Devices are granted in the order in which they were put.",
        "It spreads the work over a farm.",
    ),
    Case::tracker("TRK-QUEUE-010", Level::Must, "2.5.9", users_are_equal).about(
        "The user's name changes nothing.",
        "The reference's client leaves it empty.",
    ),
    Case::tracker("TRK-QUEUE-011", Level::Must, "2.5.10", keys_are_apart).about(
        "A device of another key does not serve a request.",
        "The code was compiled for this kind of device.",
    ),
    Case::tracker("TRK-QUEUE-012", Level::Must, "2.5.10", keys_are_not_prefixes).about(
        "Keys are compared whole: a longer one, another case, or a blank more is another key.",
        "The code was compiled for this kind of device.",
    ),
    Case::tracker("TRK-QUEUE-013", Level::Must, "2.5.11", one_after_the_other).about(
        "One connection may ask again after it was served.",
        "A tuning job asks hundreds of times.",
    ),
    Case::tracker("TRK-QUEUE-014", Level::Must, "2.5.4", two_hundred).about(
        "Two hundred waiting requests are served in the order in which they came.",
        "Requests of one clock tick must not be out of order.",
    ),
    Case::tracker("TRK-QUEUE-015", Level::Must, "2.5.1", device_first).about(
        "A device that was there before the request is granted at once.",
        "That is the usual case.",
    ),
    Case::tracker("TRK-QUEUE-016", Level::Must, "2.5.1", request_first).about(
        "A request that was there before the device is served when the device comes.",
        "Waiting is what the queue is for.",
    ),
    Case::tracker("TRK-QUEUE-017", Level::Must, "2.5.5", as_many_as_devices).about(
        "Of five requests, three devices serve three; two go on waiting.",
        "No device is given twice, and none is kept back.",
    ),
];

/// So many connections that ask, one after the other, each known to be in the queue before the next.
fn line_up(tracker: &Tracker, key: &str, priorities: &[Value]) -> Outcome<Vec<TrackerWire>> {
    let mut waiting = Vec::new();
    for (before, priority) in (1..).zip(priorities) {
        let mut client = tracker.greeted()?;
        client.send(&json!([4, key, "", priority]));
        tracker.until_counts("waits", key, 0, before)?;
        waiting.push(client);
    }
    Ok(waiting)
}

/// Requests of these priorities wait; devices come one by one, and have to go in this order.
fn expect_order(tracker: &Tracker, priorities: &[Value], order: &[usize]) -> Outcome {
    let key = tracker.key("dev");
    let mut waiting = line_up(tracker, &key, priorities)?;
    let mut server = tracker.greeted()?;
    for (turn, &place) in order.iter().enumerate() {
        let match_key = format!("m{turn}");
        server.put(&key, 9090, &match_key)?;
        waiting[place].expect_grant(&format!("turn-{turn}-is-of-request-{place}"), &match_key)?;
    }
    Ok(())
}

fn waits_for_a_device(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut client = tracker.asking(&key, 1)?;
    tracker.until_counts("waits", &key, 0, 1)?;
    client.expect_quiet("no-answer-yet")?;
    let _other = tracker.device(&tracker.key("other"), 9090, "other")?;
    tracker.expect_alive("barrier")?;
    client.expect_quiet("no-answer-for-another-key")?;
    let _server = tracker.device(&key, 9090, "m")?;
    client.expect_grant("grant", "m")
}

fn first_come(tracker: &Tracker) -> Outcome {
    expect_order(
        tracker,
        &[json!(1), json!(1), json!(1), json!(1)],
        &[0, 1, 2, 3],
    )
}

fn greatest_first(tracker: &Tracker) -> Outcome {
    expect_order(tracker, &[json!(1), json!(2), json!(3)], &[2, 1, 0])
}

fn mixed(tracker: &Tracker) -> Outcome {
    let priorities = [1, 5, 5, 9, 1, 9].map(|priority| json!(priority));
    expect_order(tracker, &priorities, &[3, 5, 1, 2, 0, 4])
}

fn negative(tracker: &Tracker) -> Outcome {
    expect_order(tracker, &[json!(-1), json!(0), json!(-5)], &[1, 0, 2])
}

fn extremes(tracker: &Tracker) -> Outcome {
    let priorities = [json!(i32::MIN), json!(0), json!(i32::MAX), json!(40_000)];
    expect_order(tracker, &priorities, &[2, 3, 1, 0])
}

fn fractions(tracker: &Tracker) -> Outcome {
    expect_order(tracker, &[json!(1.25), json!(1.5), json!(1)], &[1, 0, 2])
}

fn granted_once(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let _server = tracker.device(&key, 9090, "m")?;
    let mut first = tracker.asking(&key, 1)?;
    first.expect_grant("grant", "m")?;
    let mut second = tracker.asking(&key, 1)?;
    tracker.until_counts("second-waits", &key, 0, 1)?;
    second.expect_quiet("not-granted-again")
}

fn in_order_of_puts(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut servers = [tracker.greeted()?, tracker.greeted()?];
    for turn in 0..6 {
        servers[turn % 2].put(&key, 9090, &format!("m{turn}"))?;
    }
    let mut client = tracker.greeted()?;
    for turn in 0..6 {
        client.send(&json!([4, key, "", 1]));
        client.expect_grant(&format!("device-{turn}"), &format!("m{turn}"))?;
    }
    Ok(())
}

fn users_are_equal(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut waiting = Vec::new();
    for (before, user) in (1..).zip(["zoe", "", "ann", "root"]) {
        let mut client = tracker.greeted()?;
        client.send(&json!([4, key, user, 1]));
        tracker.until_counts("waits", &key, 0, before)?;
        waiting.push(client);
    }
    let mut server = tracker.greeted()?;
    for (turn, client) in waiting.iter_mut().enumerate() {
        server.put(&key, 9090, &format!("m{turn}"))?;
        client.expect_grant(&format!("turn-{turn}"), &format!("m{turn}"))?;
    }
    Ok(())
}

fn keys_are_apart(tracker: &Tracker) -> Outcome {
    let (a, b) = (tracker.key("a"), tracker.key("b"));
    let mut of_a = tracker.asking(&a, 9)?;
    let mut of_b = tracker.asking(&b, 1)?;
    tracker.until_counts("a-waits", &a, 0, 1)?;
    tracker.until_counts("b-waits", &b, 0, 1)?;
    let mut server = tracker.greeted()?;
    server.put(&b, 9090, "of b")?;
    of_b.expect_grant("b", "of b")?;
    server.put(&a, 9090, "of a")?;
    of_a.expect_grant("a", "of a")
}

fn keys_are_not_prefixes(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let _servers = [
        tracker.device(&format!("{key}x"), 9090, "longer")?,
        tracker.device(&key.to_uppercase(), 9090, "upper")?,
        tracker.device(&format!("{key} "), 9090, "blank")?,
        tracker.device(&key[1..], 9090, "shorter")?,
    ];
    let mut client = tracker.asking(&key, 1)?;
    tracker.until_counts("waits", &key, 0, 1)?;
    client.expect_quiet("no-answer")?;
    let _server = tracker.device(&key, 9090, "m")?;
    client.expect_grant("grant", "m")
}

fn one_after_the_other(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    let mut client = tracker.greeted()?;
    for turn in 0..20 {
        let match_key = format!("m{turn}");
        server.put(&key, 9090, &match_key)?;
        client.send(&json!([4, key, "", 1]));
        client.expect_grant(&format!("turn-{turn}"), &match_key)?;
    }
    Ok(())
}

fn two_hundred(tracker: &Tracker) -> Outcome {
    const REQUESTS: usize = 200;
    let key = tracker.key("dev");
    let mut waiting = Vec::new();
    for _ in 0..REQUESTS {
        let mut client = tracker.asking(&key, 1)?;
        // In the queue before the next: each answer to a ping of the same connection shows it.
        client.send(&json!([1]));
        client.expect("is-in-the-queue", &json!(0))?;
        waiting.push(client);
    }
    let mut server = tracker.greeted()?;
    for (turn, client) in waiting.iter_mut().enumerate() {
        let match_key = format!("m{turn}");
        server.put(&key, 9090, &match_key)?;
        client.expect_grant(&format!("turn-{turn}"), &match_key)?;
    }
    Ok(())
}

fn device_first(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let _server = tracker.device(&key, 9090, "m")?;
    tracker.asking(&key, 1)?.expect_grant("grant", "m")
}

fn request_first(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut client = tracker.asking(&key, 1)?;
    tracker.until_counts("waits", &key, 0, 1)?;
    let _server = tracker.device(&key, 9090, "m")?;
    client.expect_grant("grant", "m")
}

fn as_many_as_devices(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut waiting = line_up(
        tracker,
        &key,
        &[1, 1, 1, 1, 1].map(|priority| json!(priority)),
    )?;
    let mut server = tracker.greeted()?;
    for turn in 0..3 {
        server.put(&key, 9090, &format!("m{turn}"))?;
    }
    for (turn, client) in waiting.iter_mut().take(3).enumerate() {
        client.expect_grant(&format!("turn-{turn}"), &format!("m{turn}"))?;
    }
    tracker.expect_counts("two-wait", &key, 0, 2)?;
    waiting[3..]
        .iter_mut()
        .try_for_each(|client| client.expect_quiet("no-answer"))
}

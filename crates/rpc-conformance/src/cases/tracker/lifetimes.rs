//! What remains when a connection ends: `TRK-LIFE-`.

use serde_json::json;

use crate::case::{Case, Level};
use crate::roles::{Tracker, TrackerWire};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-LIFE-001", Level::Must, "2.6.1", devices_go).about(
        "What a server offered is gone when its connection ends.",
        "A client would be sent to a server that is not there.",
    ),
    Case::tracker("TRK-LIFE-002", Level::Must, "2.6.8", devices_go_by_reset).about(
        "What a server offered is gone when its connection is reset.",
        "That is how a server looks that was killed.",
    ),
    Case::tracker("TRK-LIFE-003", Level::Should, "2.6.2", without_introduction).about(
        "What a connection offered that did not say who it is is gone with it.",
        "A client would be sent to a server that is not there, and there is no end to such devices.",
    ),
    Case::tracker("TRK-LIFE-004", Level::Must, "2.6.3", key_with_colons).about(
        "The devices of a key with colons are gone with their server.",
        "A tracker that reads the key out of the match key looks in the wrong queue.",
    ),
    Case::tracker("TRK-LIFE-005", Level::Must, "2.6.3", behind_a_proxy).about(
        "What a proxy offered under several keys is gone with the proxy.",
        "Its own key, server:proxy[a,b], is the key of no queue.",
    ),
    Case::tracker("TRK-LIFE-006", Level::Must, "2.6.4", waiting_client_goes).about(
        "A device goes to the next in the queue when the first has gone.",
        "A device that is granted to nobody is lost until its server notices.",
    ),
    Case::tracker("TRK-LIFE-007", Level::Must, "2.6.4", waiting_client_is_reset).about(
        "A device goes to the next in the queue when the connection of the first was reset.",
        "That is how a client looks that was killed.",
    ),
    Case::tracker("TRK-LIFE-008", Level::Must, "2.6.4", all_have_gone).about(
        "When all who waited have gone, a device stays free.",
        "A device that is granted to nobody is lost until its server notices.",
    ),
    Case::tracker("TRK-LIFE-009", Level::Must, "2.6.5", others_stay).about(
        "The devices of other servers of the same key stay.",
        "One board that is unplugged must not take the farm along.",
    ),
    Case::tracker("TRK-LIFE-010", Level::Should, "2.6.6", counts_forget_the_gone).about(
        "Who has gone is not counted as waiting.",
        "People look at the counts to see whether it is worth while to wait.",
    ),
    Case::tracker("TRK-LIFE-011", Level::Should, "2.6.7", half_closed_client).about(
        "A client that has ended what it sends is not granted a device.",
        "It is what a client that has gone looks like until something is sent to it.",
    ),
    Case::tracker("TRK-LIFE-012", Level::Must, "2.6.1", come_back).about(
        "A server that comes back offers its device anew, under the same key.",
        "Servers are started again.",
    ),
    Case::tracker("TRK-LIFE-013", Level::Should, "2.6.9", same_match_key_of_another).about(
        "When a server goes, a device of another with a like match key stays.",
        "Match keys are opaque; what belongs to whom follows the connection.",
    ),
    Case::tracker("TRK-LIFE-014", Level::Must, "2.6.4", high_priority_goes).about(
        "When the request with the greatest priority has gone, the others keep their order.",
        "Taking one out of the queue must not shuffle it.",
    ),
    Case::tracker("TRK-LIFE-015", Level::Must, "2.6.1", granted_then_gone).about(
        "A server that goes after its device was granted takes nothing of others along.",
        "The match key that was granted is not in the queue any more.",
    ),
    Case::tracker("TRK-LIFE-016", Level::Should, "2.6.9", opaque_match_keys).about(
        "The devices of a server are gone with it also where its match keys do not name the key.",
        "A match key is the server's own affair.",
    ),
];

/// Sees that there is no device of this key any more: a request waits for one.
fn expect_none(tracker: &Tracker, key: &str) -> Outcome {
    tracker.until_counts("none-is-free", key, 0, 0)?;
    let mut client = tracker.asking(key, 1)?;
    tracker.until_counts("a-request-waits", key, 0, 1)?;
    client.expect_quiet("not-granted")?;
    // And is served as soon as there is one again.
    let _server = tracker.device(key, 9090, "new")?;
    client.expect_grant("served-by-a-new-one", "new")
}

/// A match key as servers of the reference make them.
fn usual(key: &str, random: &str) -> String {
    format!("{key}:{random}")
}

fn devices_go(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    drop(tracker.device(&key, 9090, &usual(&key, "0.1"))?);
    expect_none(tracker, &key)
}

fn devices_go_by_reset(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    tracker
        .device(&key, 9090, &usual(&key, "0.1"))?
        .wire
        .reset();
    expect_none(tracker, &key)
}

fn without_introduction(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, &usual(&key, "0.1"))?;
    drop(server);
    expect_none(tracker, &key)
}

fn key_with_colons(tracker: &Tracker) -> Outcome {
    let key = format!("{}:127.0.0.1:5555", tracker.key("dev"));
    drop(tracker.device(&key, 9090, &format!("{key}:0.42"))?);
    expect_none(tracker, &key)
}

fn behind_a_proxy(tracker: &Tracker) -> Outcome {
    let (a, b) = (tracker.key("a"), tracker.key("b"));
    let mut proxy = tracker.greeted()?;
    proxy.put(&a, 9090, &format!("{a}:0.1"))?;
    proxy.put(&b, 9090, &format!("{b}:0.2"))?;
    proxy.introduce(&format!("proxy[{a},{b}]"), 9090)?;
    drop(proxy);
    expect_none(tracker, &a)?;
    expect_none(tracker, &b)
}

fn next_is_served(tracker: &Tracker, go: fn(TrackerWire)) -> Outcome {
    let key = tracker.key("dev");
    let first = tracker.asking(&key, 1)?;
    tracker.until_counts("first-waits", &key, 0, 1)?;
    let mut second = tracker.asking(&key, 1)?;
    tracker.until_counts("second-waits", &key, 0, 2)?;
    go(first);
    tracker.time_to_notice(&key, 1)?;
    let _server = tracker.device(&key, 9090, "m")?;
    second.expect_grant("second-is-served", "m")
}

fn waiting_client_goes(tracker: &Tracker) -> Outcome {
    next_is_served(tracker, drop)
}

fn waiting_client_is_reset(tracker: &Tracker) -> Outcome {
    next_is_served(tracker, |client| client.wire.reset())
}

fn all_have_gone(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let waiting = [tracker.asking(&key, 1)?, tracker.asking(&key, 2)?];
    tracker.until_counts("they-wait", &key, 0, 2)?;
    drop(waiting);
    tracker.time_to_notice(&key, 0)?;
    let mut server = tracker.device(&key, 9090, "m")?;
    server.send(&json!([7]));
    server.expect("still-pending", &json!(["m"]))?;
    tracker
        .asking(&key, 1)?
        .expect_grant("a-new-one-is-served", "m")
}

fn others_stay(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let gone = tracker.device(&key, 9090, &usual(&key, "0.1"))?;
    let _stays = tracker.device(&key, 9091, &usual(&key, "0.2"))?;
    drop(gone);
    tracker.until_counts("one-is-left", &key, 1, 0)?;
    tracker
        .asking(&key, 1)?
        .expect_grant("the-other", &usual(&key, "0.2"))
}

fn counts_forget_the_gone(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let waiting = tracker.asking(&key, 1)?;
    tracker.until_counts("one-waits", &key, 0, 1)?;
    drop(waiting);
    tracker.until_counts("none-waits", &key, 0, 0)
}

fn half_closed_client(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut half = tracker.asking(&key, 1)?;
    tracker.until_counts("one-waits", &key, 0, 1)?;
    let mut next = tracker.asking(&key, 1)?;
    tracker.until_counts("two-wait", &key, 0, 2)?;
    half.wire.finish();
    tracker.time_to_notice(&key, 1)?;
    let _server = tracker.device(&key, 9090, "m")?;
    next.expect_grant("the-next-is-served", "m")
}

fn come_back(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    for round in 0..3 {
        let match_key = format!("m{round}");
        let server = tracker.device(&key, 9090, &match_key)?;
        tracker.asking(&key, 1)?.expect_grant("grant", &match_key)?;
        drop(server);
    }
    Ok(())
}

fn same_match_key_of_another(tracker: &Tracker) -> Outcome {
    let (a, b) = (tracker.key("a"), tracker.key("b"));
    let gone = tracker.device(&a, 9090, "same:0.5")?;
    let _stays = tracker.device(&b, 9091, "same:0.5")?;
    drop(gone);
    tracker.until_counts("gone", &a, 0, 0)?;
    tracker.asking(&b, 1)?.expect_grant("the-other", "same:0.5")
}

fn high_priority_goes(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut waiting = Vec::new();
    for (before, priority) in (1..).zip([1, 9, 3, 3, 2]) {
        waiting.push(tracker.asking(&key, priority)?);
        tracker.until_counts("waits", &key, 0, before)?;
    }
    drop(waiting.remove(1));
    tracker.time_to_notice(&key, 4)?;
    let mut server = tracker.greeted()?;
    // Without the second they are 1, 3, 3 and 2.
    for (turn, place) in [1, 2, 3, 0].into_iter().enumerate() {
        let match_key = format!("m{turn}");
        server.put(&key, 9090, &match_key)?;
        waiting[place].expect_grant(&format!("turn-{turn}"), &match_key)?;
    }
    Ok(())
}

fn granted_then_gone(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let (of_first, of_second) = (usual(&key, "0.1"), usual(&key, "0.2"));
    let first = tracker.device(&key, 9090, &of_first)?;
    let _second = tracker.device(&key, 9091, &of_second)?;
    tracker.asking(&key, 1)?.expect_grant("first", &of_first)?;
    drop(first);
    tracker.expect_alive("barrier")?;
    tracker.expect_counts("the-other-is-free", &key, 1, 0)?;
    tracker.asking(&key, 1)?.expect_grant("second", &of_second)
}

fn opaque_match_keys(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    drop(tracker.device(&key, 9090, "opaque")?);
    expect_none(tracker, &key)
}

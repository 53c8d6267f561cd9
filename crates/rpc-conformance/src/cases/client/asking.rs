//! What a client says to the tracker when it asks for a device: `CLI-ASK-`.

use std::time::Duration;

use rpc_proto::codes::TRACKER_MAGIC;
use serde_json::json;

use crate::case::{Case, Level};
use crate::roles::client::{Client, Script};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-ASK-001", Level::Must, "9.1.1", magic_alone).about(
        "A client begins with the tracker's magic, and waits for the answer before it goes on.",
        "Trackers that expect the magic alone in what they read first close the connection otherwise.",
    ),
    Case::client("CLI-ASK-002", Level::Must, "9.1.2", greeting_in_pieces).about(
        "A client takes the tracker's greeting in pieces.",
        "Who reads once and expects four bytes fails on a slow network.",
    ),
    Case::client("CLI-ASK-003", Level::Must, "9.1.3", request).about(
        "A client asks by the code 4, the key, a user and a priority.",
        "A tracker closes the connection on anything else.",
    ),
    Case::client("CLI-ASK-004", Level::Must, "9.1.4", odd_key).about(
        "A client asks for the key that its user named, whatever characters it has.",
        "Keys are names that people choose: quotes, backslashes and all alphabets occur.",
    ),
    Case::client("CLI-ASK-005", Level::Must, "9.1.5", priority).about(
        "A client sends the priority that its user named, as a number.",
        "It decides who is served first.",
    ),
    Case::client("CLI-ASK-006", Level::Should, "9.1.6", default_priority).about(
        "A client whose user names no priority sends 1.",
        "With another default it is always before or behind those who did not think of it either.",
    ),
    Case::client("CLI-ASK-007", Level::Must, "9.1.7", one_request).about(
        "A client does not ask again before its request is answered.",
        "Each request takes a device away from others.",
    ),
    Case::client("CLI-ASK-008", Level::Must, "9.1.8", grant_in_pieces).about(
        "A client takes the tracker's answer in pieces.",
        "Who reads once and expects a whole frame fails on a slow network.",
    ),
    Case::client("CLI-ASK-009", Level::Must, "9.1.9", any_spelling).about(
        "A client takes any spelling of JSON as answer.",
        "Trackers differ in blanks, escapes and line ends.",
    ),
    Case::client("CLI-ASK-010", Level::Must, "9.1.10", waits).about(
        "A client waits in the queue until the tracker answers.",
        "On a busy farm a device may be free only after hours.",
    ),
    Case::client("CLI-ASK-011", Level::Must, "9.1.11", host_name).about(
        "A client takes a name as the host of a device, and looks it up.",
        "Servers behind a router are offered under the name of the router.",
    ),
    Case::client("CLI-ASK-012", Level::Must, "9.1.12", odd_match_key).about(
        "A client names the match key as the tracker gave it.",
        "A server accepts no other; match keys may have colons and any alphabet.",
    ),
];

const NOTHING: &str = "";

fn magic_alone(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.tracker_connection("tracker-connection")?;
    asking.greeting("magic")?;
    // Not to judge by it: who goes on without waiting has done so by then, most likely.
    std::thread::sleep(Duration::from_millis(50));
    asking.expect_quiet("waits-for-the-greeting")?;
    asking.wire.send_whole(&TRACKER_MAGIC.to_le_bytes());
    rig.expect_request(&mut asking)?;
    rig.host_on(&mut asking)?.until_end()?;
    rig.done().map(drop)
}

fn greeting_in_pieces(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.tracker_connection("tracker-connection")?;
    asking.greeting("magic")?;
    asking.wire.send_in_pieces(&TRACKER_MAGIC.to_le_bytes(), 1);
    rig.expect_request(&mut asking)?;
    rig.host_on(&mut asking)?.until_end()?;
    rig.done().map(drop)
}

fn request(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps(NOTHING))?;
    host.until_end()?;
    rig.done().map(drop)
}

fn odd_key(client: &Client) -> Outcome {
    let key = client.stage.key(r#"a"b\c:d/é 😀"#);
    let mut rig = client.start(&Script::steps(NOTHING).with_key(key))?;
    let mut asking = rig.asked()?;
    let port = rig.server.port();
    // A match key has no blanks: they would begin an option.
    asking.send(&json!([0, ["127.0.0.1", port, "plain:0.1"]]));
    let mut served = rig.arrival("plain:0.1")?.accept("suite");
    served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done().map(drop)
}

fn priority(client: &Client) -> Outcome {
    for priority in [7, -5] {
        let mut rig = client.start(&Script::steps(NOTHING).with_priority(priority))?;
        let mut asking = rig.greeted()?;
        let found = rig.expect_request(&mut asking)?;
        let holds = found.as_f64() == Some(f64::from(priority));
        let check = format!("priority-{priority}");
        client.stage.check(&check, holds, priority, found)?;
        rig.host_on(&mut asking)?.until_end()?;
        rig.done()?;
    }
    Ok(())
}

fn default_priority(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.greeted()?;
    let found = rig.expect_request(&mut asking)?;
    let holds = found.as_f64() == Some(1.0);
    client.stage.check("priority", holds, 1, found)?;
    rig.host_on(&mut asking)?.until_end()?;
    rig.done().map(drop)
}

fn one_request(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.asked()?;
    std::thread::sleep(Duration::from_millis(50));
    asking.expect_quiet("waits-for-the-answer")?;
    let mut arrived = rig.borrowed(&mut asking)?;
    asking.expect_quiet("no-request-during-the-handshake")?;
    arrived.packets.expect_quiet("waits-for-the-server")?;
    let mut served = arrived.accept("suite");
    served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    let another = rig.tracker.look()?;
    let holds = another.is_none();
    let found = "another connection to the tracker";
    client
        .stage
        .check("one-connection", holds, "one connection", found)?;
    rig.done().map(drop)
}

fn grant_in_pieces(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.asked()?;
    let match_key = rig.new_match_key();
    let text = json!([0, ["127.0.0.1", rig.server.port(), match_key]]).to_string();
    let frame = crate::roles::tracker::frame(text.as_bytes());
    asking.wire.send_in_pieces(&frame, 1);
    let mut served = rig.arrival(&match_key)?.accept("suite");
    served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done().map(drop)
}

fn any_spelling(client: &Client) -> Outcome {
    const SPELLINGS: [&str; 3] = [
        r#"[0,["HOST",PORT,"KEY"]]"#,
        " [ 0 ,\r\n\t[ \"HOST\" , PORT , \"KEY\" ] ]\n",
        r#"[0, ["\u0031\u00327.0.0.1", PORT, "KEY"]]"#,
    ];
    client.sessions(&SPELLINGS, |rig, asking, spelled| {
        let match_key = rig.new_match_key();
        let text = spelled
            .replace("HOST", "127.0.0.1")
            .replace("PORT", &rig.server.port().to_string())
            .replace("KEY", &match_key);
        asking.send_text(&text);
        let mut served = rig.arrival(&match_key)?.accept("suite");
        served.init("init")?;
        served.void()?;
        Ok(served)
    })
}

fn waits(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.asked()?;
    std::thread::sleep(Duration::from_millis(1500));
    asking.expect_quiet("waits")?;
    rig.host_on(&mut asking)?.until_end()?;
    rig.done().map(drop)
}

fn host_name(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.asked()?;
    let port = rig.server.port();
    let match_key = rig.grant_at(&mut asking, "localhost", port);
    let mut served = rig.arrival(&match_key)?.accept("suite");
    served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done().map(drop)
}

fn odd_match_key(client: &Client) -> Outcome {
    const MATCH_KEYS: [&str; 4] = ["127.0.0.1:5555:0.25", "x", "é😀:0.5", r#"a"b\c"#];
    client.sessions(&MATCH_KEYS, |rig, asking, match_key| {
        asking.send(&json!([0, ["127.0.0.1", rig.server.port(), match_key]]));
        let mut served = rig.arrival(match_key)?.accept("suite");
        served.init("init")?;
        served.void()?;
        Ok(served)
    })
}

//! How a client introduces itself to a server, and opens its session: `CLI-SHAKE-` and `CLI-INIT-`.

use std::time::Duration;

use rpc_proto::codes::{HandshakeCode, PROTOCOL_VERSION};
use rpc_proto::{OwnedValue, Packet, Value, Values};
use serde_json::json;

use super::by_hand;
use crate::case::{Case, Level};
use crate::roles::TrackerWire;
use crate::roles::client::{Client, Host, Rig, Script};
use crate::roles::served::{Served, accepted};
use crate::roles::server::introduction;
use crate::stage::Outcome;
use crate::wire::Wire;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-SHAKE-001", Level::Must, "9.4.1", introduces_itself).about(
        "A client begins with the magic and the text client: with its match key behind it.",
        "A server accepts nobody else.",
    ),
    Case::client("CLI-SHAKE-002", Level::Must, "9.4.2", waits_for_the_answer).about(
        "A client sends nothing behind its key before the server has answered.",
        "A proxy closes a connection on which more comes before the server is found.",
    ),
    Case::client("CLI-SHAKE-003", Level::Must, "9.4.3", session_timeout).about(
        "A client whose user limits the session says so in an option behind the match key.",
        "Without it a hung program keeps the device for ever.",
    ),
    Case::client("CLI-SHAKE-004", Level::Should, "9.4.4", whole_seconds).about(
        "A client writes a whole number of seconds without a point.",
        "Servers in C++ and Java take digits only, and one of them ends on anything else.",
    ),
    Case::client("CLI-SHAKE-005", Level::Should, "9.4.5", part_of_a_second).about(
        "A client writes a session timeout that is no whole number as a decimal number.",
        "A limit of 2.5 seconds that is sent as 2 ends work that was in time.",
    ),
    Case::client("CLI-SHAKE-006", Level::Must, "9.4.6", no_limit).about(
        "A client whose user does not limit the session sends no option for it.",
        "A server would end a session that was to last.",
    ),
    Case::client("CLI-SHAKE-007", Level::Must, "9.4.7", answer_in_pieces).about(
        "A client takes the server's answer in pieces.",
        "Proxies and Python servers send it in three.",
    ),
    Case::client("CLI-SHAKE-008", Level::Must, "9.4.8", any_server_key).about(
        "A client takes any text as the server's key, also none.",
        "Servers in Java answer by the client's own key, and proxies by whatever the server said.",
    ),
    Case::client("CLI-INIT-001", Level::Must, "9.5.1", init_comes_first).about(
        "A client begins the session with an init packet of the version 0.8.0.",
        "A server refuses other versions, and all that comes before init.",
    ),
    Case::client("CLI-INIT-002", Level::Must, "9.5.2", no_constructor).about(
        "A client without a constructor sends no arguments in init.",
        "This is how a plain session is asked for.",
    ),
    Case::client("CLI-INIT-003", Level::Must, "9.5.3", constructor).about(
        "A client sends the constructor's name and its arguments as they were given, in order.",
        "They are the way through a gateway to a device behind it.",
    ),
    Case::client("CLI-INIT-004", Level::Must, "9.5.4", answered_by_nothing).about(
        "A client takes a return packet of nothing as the answer to init.",
        "It is what servers send.",
    ),
    Case::client("CLI-INIT-005", Level::Should, "9.5.5", answered_by_anything).about(
        "A client takes a return packet of anything as the answer to init, also of no value.",
        "A server that does not know its client's dialect answers by none: that has one spelling.",
    ),
];

const NOTHING: &str = "";

/// Opens a session with this script; gives the client's key.
fn key_of(client: &Client, script: &Script) -> Outcome<(String, String)> {
    let mut rig = client.start(script)?;
    let mut asking = rig.asked()?;
    let match_key = rig.grant(&mut asking);
    let arrived = rig.arrival(&match_key)?;
    let key = arrived.key.clone();
    let mut served = arrived.accept("suite");
    served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done()?;
    Ok((key, match_key))
}

fn introduces_itself(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.asked()?;
    let match_key = rig.grant(&mut asking);
    let wire = rig.server_connection("server-connection")?;
    let mut packets = rig.server.packets(wire);
    let expected = introduction(format!("client:{match_key}").as_bytes());
    let found = packets.wire.read(expected.len());
    let holds = found.as_ref().is_ok_and(|found| *found == expected);
    let shown = match &found {
        Ok(found) => hex::encode(found),
        Err(short) => short.to_string(),
    };
    let stage = &client.stage;
    stage.check("handshake", holds, hex::encode(&expected), shown)?;
    packets.wire.send(&accepted("suite"));
    let mut served = Served { packets };
    served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done().map(drop)
}

fn waits_for_the_answer(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.asked()?;
    let mut arrived = rig.borrowed(&mut asking)?;
    // Not to judge by it: who goes on without waiting has done so by then, most likely.
    std::thread::sleep(Duration::from_millis(50));
    arrived.packets.expect_quiet("waits-for-the-answer")?;
    // Not even the code alone is an answer.
    let answer = accepted("suite");
    let (code, key) = answer.split_at(4);
    arrived.packets.wire.send_whole(code);
    std::thread::sleep(Duration::from_millis(50));
    arrived.packets.expect_quiet("waits-for-the-key")?;
    arrived.packets.wire.send_whole(key);
    let packets = arrived.packets;
    let mut served = Served { packets };
    served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done().map(drop)
}

/// Checks that one of these stands behind the match key.
fn expect_options(client: &Client, script: &Script, allowed: &[&str]) -> Outcome {
    let (key, match_key) = key_of(client, script)?;
    let whole = |options: &&str| format!("client:{match_key}{options}");
    let holds = allowed.iter().map(whole).any(|allowed| allowed == key);
    let expected: Vec<_> = allowed.iter().map(whole).collect();
    client
        .stage
        .check("key", holds, expected.join(", or "), &key)
}

fn session_timeout(client: &Client) -> Outcome {
    let script = Script::steps(NOTHING).with_session_timeout("60");
    let (key, _) = key_of(client, &script)?;
    let option = key
        .split(' ')
        .find_map(|word| word.strip_prefix("-timeout="));
    let holds = option.is_some_and(|seconds| seconds.parse() == Ok(60.0));
    let expected = "the option -timeout=60 behind a blank";
    client.stage.check("option", holds, expected, key)
}

fn whole_seconds(client: &Client) -> Outcome {
    let script = Script::steps(NOTHING).with_session_timeout("60");
    expect_options(client, &script, &[" -timeout=60"])
}

fn part_of_a_second(client: &Client) -> Outcome {
    let script = Script::steps(NOTHING).with_session_timeout("2.5");
    expect_options(client, &script, &[" -timeout=2.5"])
}

fn no_limit(client: &Client) -> Outcome {
    expect_options(client, &Script::steps(NOTHING), &[""])
}

/// Accepts the client by bytes that `send` writes.
fn accepted_by(
    rig: &mut Rig,
    asking: &mut TrackerWire,
    send: impl FnOnce(&mut Wire),
) -> Outcome<Served> {
    let mut arrived = rig.borrowed(asking)?;
    send(&mut arrived.packets.wire);
    let packets = arrived.packets;
    let mut served = Served { packets };
    served.init("init")?;
    served.void()?;
    Ok(served)
}

fn answer_in_pieces(client: &Client) -> Outcome {
    let answer = accepted("suite");
    client.sessions(&[1, 4, 8], |rig, asking, &cut| {
        accepted_by(rig, asking, |wire| match cut {
            1 => wire.send_in_pieces(&answer, 1),
            _ => wire.send_split(&answer, cut),
        })
    })
}

fn any_server_key(client: &Client) -> Outcome {
    let long = "x".repeat(1000);
    let keys = [
        "",
        "no role",
        "client:x:0.5 -timeout=60",
        "server:é😀",
        &long,
    ];
    client.sessions(&keys, |rig, asking, key| {
        let rest = introduction(key.as_bytes());
        let success = HandshakeCode::SUCCESS.0.to_le_bytes();
        let answer = [&success, &rest[4..]].concat();
        accepted_by(rig, asking, |wire| wire.send(&answer))
    })
}

/// The constructor of the init packet.
fn init_of(client: &Client, script: &Script) -> Outcome<Vec<OwnedValue>> {
    let mut rig = client.start(script)?;
    let mut asking = rig.asked()?;
    let mut served = rig.borrowed(&mut asking)?.accept("suite");
    let constructor = served.init("init")?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done()?;
    Ok(constructor.to_vec())
}

fn init_comes_first(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps(NOTHING))?;
    let mut asking = rig.asked()?;
    let mut served = rig.borrowed(&mut asking)?.accept("suite");
    let expected = Packet::init(Values::from_iter([]));
    served.packets.expect("init", &expected)?;
    served.void()?;
    served.expect_end("session-ended")?;
    rig.done().map(drop)
}

fn no_constructor(client: &Client) -> Outcome {
    let constructor = init_of(client, &Script::steps(NOTHING))?;
    let holds = constructor.is_empty();
    let found = format!("{constructor:?}");
    client.stage.check("constructor", holds, "no values", found)
}

fn constructor(client: &Client) -> Outcome {
    for given in [
        json!(["rpc.Connect", "127.0.0.1", 9090, "board", false]),
        json!([
            "a",
            "1234567",
            "12345678",
            "é😀",
            "",
            -1,
            1_099_511_627_776_i64,
            true,
            2.5
        ]),
    ] {
        let script = Script::steps(NOTHING).with_constructor(&given);
        let found = init_of(client, &script)?;
        let expected: Vec<_> = given.as_array().into_iter().flatten().map(value).collect();
        let holds = found == expected;
        client.stage.check(
            "constructor",
            holds,
            format_args!("{expected:?}"),
            format_args!("{found:?}"),
        )?;
    }
    Ok(())
}

fn value(json: &serde_json::Value) -> OwnedValue {
    match json {
        serde_json::Value::Bool(value) => (*value).into(),
        serde_json::Value::String(text) => text.clone().into(),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        _ => Value::None,
    }
}

/// Answers init by this, and serves the script.
fn init_answered(client: &Client, answer: &[u8]) -> Outcome {
    let mut rig = client.start(&Script::steps("give"))?;
    let mut asking = rig.asked()?;
    let mut served = rig.served(&mut asking)?;
    served.packets.wire.send(answer);
    Host::new(served).until_end()?;
    rig.done().map(drop)
}

fn answered_by_nothing(client: &Client) -> Outcome {
    init_answered(client, &by_hand::returned(&[by_hand::none()]))
}

fn answered_by_anything(client: &Client) -> Outcome {
    let text = by_hand::raw(by_hand::RAW_STR, PROTOCOL_VERSION.as_bytes());
    let answers = [vec![], vec![by_hand::int(0)], vec![text]];
    client.sessions(&answers, |rig, asking, values| {
        let mut served = rig.served(asking)?;
        served.packets.wire.send(&by_hand::returned(values));
        Ok(served)
    })
}

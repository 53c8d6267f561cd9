//! From the grant to the session, and what a client does when that fails: `CLI-BORROW-`.

use rpc_proto::Packet;
use rpc_proto::codes::{HandshakeCode, RPC_MAGIC};

use crate::case::{Case, Level, Tag};
use crate::roles::TrackerWire;
use crate::roles::client::{Client, LOOPBACK, Rig, Script};
use crate::roles::served::{Arrived, Listening, Served, accepted};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-BORROW-001", Level::Should, "9.3.1", unreachable).about(
        "A client whose server refuses the connection asks for another device.",
        "A device that was unplugged stays on offer for a while.",
    ),
    Case::client("CLI-BORROW-002", Level::Should, "9.3.2", closed_at_once).about(
        "A client whose connection the server closes at once asks for another device.",
        "A server that ends, or a router in front of none, does so.",
    ),
    Case::client("CLI-BORROW-003", Level::Should, "9.3.2", closed_after_the_handshake).about(
        "A client whose connection the server closes instead of an answer asks for another device.",
        "A server may end at any time.",
    ),
    Case::client("CLI-BORROW-004", Level::Should, "9.3.2", closed_in_the_answer).about(
        "A client whose connection ends in the middle of the server's answer asks for another device.",
        "A server may end at any time.",
    ),
    Case::client("CLI-BORROW-005", Level::Should, "9.3.2", reset).about(
        "A client whose connection the server resets asks for another device.",
        "A server that is killed does so.",
    ),
    Case::client("CLI-BORROW-006", Level::Should, "9.3.3", mismatch).about(
        "A client that is refused with a mismatch asks for another device.",
        "The grant was too old: the server has a new match key meanwhile.",
    ),
    Case::client("CLI-BORROW-007", Level::Should, "9.3.3", duplicate).about(
        "A client that is refused as a duplicate asks for another device.",
        "Somebody with the same match key waits at the proxy already.",
    ),
    Case::client("CLI-BORROW-008", Level::Must, "9.3.4", unknown_code)
        .about(
            "A client takes a code that it does not know as a refusal: it sends no packets.",
            "What is there is no server, or one of another protocol.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-BORROW-009", Level::Should, "9.3.5", negative_key_length)
        .about(
            "A client whose server announces a key of negative length gives that server up.",
            "Read as an unsigned number it is four gigabytes.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-BORROW-010", Level::Should, "9.3.5", huge_key_length)
        .about(
            "A client whose server announces a key of two gigabytes gives that server up.",
            "It would take the memory, and wait for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-BORROW-011", Level::Should, "9.3.6", init_fails).about(
        "A client whose init is answered by an exception asks for another device.",
        "The next one may have what the constructor needs.",
    ),
    Case::client("CLI-BORROW-012", Level::Should, "9.3.6", shutdown_instead_of_init).about(
        "A client whose init is answered by a shutdown asks for another device.",
        "Servers send it when their own process fails.",
    ),
    Case::client("CLI-BORROW-013", Level::Should, "9.3.6", closed_instead_of_init).about(
        "A client whose connection is closed instead of an answer to init asks for another device.",
        "A server may end at any time.",
    ),
    Case::client("CLI-BORROW-014", Level::Must, "9.3.7", as_often_as_told).about(
        "A client asks for no more devices than its user told it, when no server takes it.",
        "Each device that it asks for is taken from others for seconds.",
    ),
    Case::client("CLI-BORROW-015", Level::Must, "9.3.8", nothing_kept).about(
        "A client closes its connection to a server that it gives up.",
        "A server waits for the end of the connection before it serves the next one.",
    ),
];

/// Lets the first device fail, and checks that the client asks for another and uses its match key.
fn then_another(
    client: &Client,
    fail: impl FnOnce(&mut Rig, &mut TrackerWire) -> Outcome,
) -> Outcome {
    let mut rig = client.start(&Script::steps("give"))?;
    let mut asking = rig.asked()?;
    fail(&mut rig, &mut asking)?;
    let mut host = rig.host_again(asking)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn at_the_handshake(client: &Client, fail: impl FnOnce(Arrived)) -> Outcome {
    then_another(client, |rig, asking| {
        fail(rig.borrowed(asking)?);
        Ok(())
    })
}

fn at_init(client: &Client, fail: impl FnOnce(&mut Served) -> Outcome) -> Outcome {
    then_another(client, |rig, asking| {
        let mut served = rig.served(asking)?;
        fail(&mut served)?;
        rig.keep(served);
        Ok(())
    })
}

fn unreachable(client: &Client) -> Outcome {
    let nobody = Listening::closed(&client.stage, LOOPBACK, "nobody")?;
    then_another(client, |rig, asking| {
        rig.grant_at(asking, "127.0.0.1", nobody.port());
        Ok(())
    })
}

fn closed_at_once(client: &Client) -> Outcome {
    then_another(client, |rig, asking| {
        rig.grant(asking);
        rig.server_connection("server-connection")?.finish();
        Ok(())
    })
}

fn closed_after_the_handshake(client: &Client) -> Outcome {
    at_the_handshake(client, |mut arrived| arrived.packets.wire.finish())
}

fn closed_in_the_answer(client: &Client) -> Outcome {
    let answer = accepted("suite");
    let mut rig = client.start(&Script::steps("give").with_tries(5))?;
    let mut asking = rig.asked()?;
    for cut in [2, 4, 6, 10] {
        let mut arrived = rig.borrowed(&mut asking)?;
        arrived.packets.wire.send_whole(&answer[..cut]);
        arrived.packets.wire.finish();
        asking = rig.asked_again(asking)?;
    }
    let mut host = rig.host_on(&mut asking)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn reset(client: &Client) -> Outcome {
    at_the_handshake(client, |arrived| arrived.packets.wire.reset())
}

fn mismatch(client: &Client) -> Outcome {
    at_the_handshake(client, |arrived| arrived.refuse(HandshakeCode::MISMATCH))
}

fn duplicate(client: &Client) -> Outcome {
    at_the_handshake(client, |arrived| arrived.refuse(HandshakeCode::DUPLICATE))
}

fn unknown_code(client: &Client) -> Outcome {
    const CODES: [i32; 3] = [RPC_MAGIC + 3, 0, -1];
    let mut rig = client.start(&Script::steps("give").with_tries(3))?;
    let mut asking = Some(rig.asked()?);
    for code in CODES {
        // A client may well give up at the first.
        let Some(mut granted) = asking else { break };
        let mut arrived = rig.borrowed(&mut granted)?;
        arrived.packets.wire.send_whole(&code.to_le_bytes());
        expect_given_up(client, &mut arrived)?;
        asking = rig.asked_again_or_ended(granted)?;
    }
    rig.failed("session").map(drop)
}

fn negative_key_length(client: &Client) -> Outcome {
    gives_up(client, |arrived| {
        let answer = [RPC_MAGIC.to_le_bytes(), (-1_i32).to_le_bytes()].concat();
        arrived.packets.wire.send_whole(&answer);
    })
}

fn huge_key_length(client: &Client) -> Outcome {
    gives_up(client, |arrived| {
        let answer = [RPC_MAGIC.to_le_bytes(), i32::MAX.to_le_bytes()].concat();
        arrived.packets.wire.send_whole(&answer);
    })
}

/// Answers the only handshake by something wrong, keeps the connection open, and checks that the
/// client sends nothing there, closes it and says so.
fn gives_up(client: &Client, answer: impl FnOnce(&mut Arrived)) -> Outcome {
    let mut rig = client.start(&Script::steps("give").with_tries(1))?;
    let mut asking = rig.asked()?;
    let mut arrived = rig.borrowed(&mut asking)?;
    answer(&mut arrived);
    expect_given_up(client, &mut arrived)?;
    rig.failed("session").map(drop)
}

/// Checks that the client sends nothing more there, and closes the connection.
fn expect_given_up(client: &Client, arrived: &mut Arrived) -> Outcome {
    let wire = &mut arrived.packets.wire;
    let short = wire.read_to_end();
    let holds = wire.ended().is_some() && wire.unread().is_empty();
    let found = format!("{short}, after the bytes {}", hex::encode(wire.unread()));
    let expected = "the end of the connection, and no packets";
    client.stage.check("gives-up", holds, expected, found)
}

fn init_fails(client: &Client) -> Outcome {
    at_init(client, |served| served.exception("no such constructor"))
}

fn shutdown_instead_of_init(client: &Client) -> Outcome {
    at_init(client, |served| {
        served.packets.send(&Packet::Shutdown)?;
        served.packets.wire.finish();
        Ok(())
    })
}

fn closed_instead_of_init(client: &Client) -> Outcome {
    at_init(client, |served| {
        served.packets.wire.finish();
        Ok(())
    })
}

fn as_often_as_told(client: &Client) -> Outcome {
    for tries in [1, 3] {
        let mut rig = client.start(&Script::steps("give").with_tries(tries))?;
        let mut devices = 0;
        let mut asking = Some(rig.asked()?);
        while let Some(mut granted) = asking.take() {
            devices += 1;
            rig.borrowed(&mut granted)?.refuse(HandshakeCode::MISMATCH);
            asking = rig.asked_again_or_ended(granted)?;
            if devices > tries {
                break;
            }
        }
        let check = format!("devices-of-{tries}");
        let expected = format!("at most {tries} devices");
        client
            .stage
            .check(&check, devices <= tries, expected, devices)?;
        rig.failed("session")?;
    }
    Ok(())
}

fn nothing_kept(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps("give"))?;
    let mut asking = rig.asked()?;
    let mut first = rig.served(&mut asking)?;
    first.exception("not this one")?;
    let mut asking = rig.asked_again(asking)?;
    // Before the next device is granted, so that it is not the end of the program that closes it.
    first.expect_end("first-is-closed")?;
    let mut host = rig.host_on(&mut asking)?;
    host.until_end()?;
    rig.done().map(drop)
}

//! The end of a session, by the client or before its time: `CLI-END-`.

use rpc_proto::Packet;
use rpc_proto::codes::PacketCode;

use super::by_hand::{self, INT};
use crate::case::{Case, Level};
use crate::roles::client::{Client, Host, Name, Script};
use crate::stage::Outcome;
use crate::wire::Wire;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-END-001", Level::Must, "9.12.1", closes).about(
        "A client that is done closes its connection.",
        "The device is taken until then.",
    ),
    Case::client("CLI-END-002", Level::Should, "9.12.2", says_so).about(
        "A client that is done sends a shutdown before it closes.",
        "A server can tell then that nothing was cut off.",
    ),
    Case::client("CLI-END-003", Level::Must, "9.12.3", after_an_error).about(
        "A client whose function failed can end the session as always.",
        "The device is for the next one, whatever happened.",
    ),
    Case::client("CLI-END-004", Level::Must, "9.12.4", shutdown_instead_of_a_reply).about(
        "A client whose request is answered by a shutdown ends it with an error.",
        "Servers send it when the process that serves fails.",
    ),
    Case::client("CLI-END-005", Level::Must, "9.12.4", closed_instead_of_a_reply).about(
        "A client whose connection is closed instead of a reply ends the request with an error.",
        "A server may end at any time.",
    ),
    Case::client("CLI-END-006", Level::Must, "9.12.4", closed_in_the_length).about(
        "A client whose connection is closed in the length of a reply ends the request with an error.",
        "A server may end at any time.",
    ),
    Case::client("CLI-END-007", Level::Must, "9.12.4", closed_in_the_reply).about(
        "A client whose connection is closed in a reply ends the request with an error.",
        "Half a result is none.",
    ),
    Case::client("CLI-END-008", Level::Must, "9.12.4", reset).about(
        "A client whose connection is reset ends the request with an error.",
        "A server that is killed, or a router that forgets, looks like this.",
    ),
    Case::client("CLI-END-009", Level::Must, "9.12.4", closed_in_the_bytes).about(
        "A client whose connection is closed in the bytes of a tensor ends the copy with an error.",
        "Half a tensor is none.",
    ),
    Case::client("CLI-END-010", Level::Must, "9.12.5", another_session).about(
        "A client can open another session after one that was lost.",
        "A program that lives for days meets servers that end.",
    ),
];

fn closes(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    host.until_end()?;
    rig.done().map(drop)
}

fn says_so(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    host.until_end()?;
    let found = "the end of the connection alone";
    client
        .stage
        .check("shutdown", host.shut_down, "a shutdown packet", found)?;
    rig.done().map(drop)
}

fn after_an_error(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("fail"))?;
    host.until_end()?;
    rig.done().map(drop)
}

/// Ends the session in this way instead of a result, and checks that the client says so.
fn ended(client: &Client, end: impl FnOnce(&mut Wire)) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    host.until_call(Name::Give)?;
    end(&mut host.served.packets.wire);
    host.abandoned()?;
    rig.failed("give").map(drop)
}

fn shutdown_instead_of_a_reply(client: &Client) -> Outcome {
    ended(client, |wire| {
        wire.send_whole(&by_hand::packet(PacketCode::SHUTDOWN, &[]));
    })
}

fn closed_instead_of_a_reply(client: &Client) -> Outcome {
    ended(client, Wire::finish)
}

fn closed_in_the_length(client: &Client) -> Outcome {
    ended(client, |wire| {
        wire.send_whole(&[40, 0, 0]);
        wire.finish();
    })
}

fn closed_in_the_reply(client: &Client) -> Outcome {
    let reply = by_hand::result(INT, by_hand::int(5));
    ended(client, |wire| {
        wire.send_whole(&reply[..reply.len() - 1]);
        wire.finish();
    })
}

fn reset(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    host.until_call(Name::Give)?;
    host.served.packets.wire.reset();
    rig.failed("give").map(drop)
}

fn closed_in_the_bytes(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("tensor"))?;
    host.until("copy-from", |_: &Host, packet: &Packet<'_>| {
        matches!(packet, Packet::CopyFrom { .. })
    })?;
    let ack = by_hand::packet(PacketCode::COPY_ACK, &[0; 24]);
    let wire = &mut host.served.packets.wire;
    wire.send_whole(&ack[..20]);
    wire.finish();
    host.abandoned()?;
    rig.failed("tensor").map(drop)
}

fn another_session(client: &Client) -> Outcome {
    let mut rig = client.start(&Script::steps("fail,again,give"))?;
    let mut asking = rig.asked()?;
    let mut host = rig.host_on(&mut asking)?;
    host.until_call(Name::Fail)?;
    host.served.packets.wire.finish();
    host.abandoned()?;
    let mut host = rig.host_again(asking)?;
    host.until_end()?;
    rig.done().map(drop)
}

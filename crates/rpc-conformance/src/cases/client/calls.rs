//! Functions: finding and calling them, and their replies: `CLI-CALL-` and `CLI-REPLY-`.

use rpc_proto::{DataType, Device, OwnedValue, Packet, Returned, Syscall, Value};

use super::by_hand::{self, INT, RAW_STR};
use crate::case::{Case, Level};
use crate::roles::client::{Client, Host, Name, Script};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-REPLY-001", Level::Must, "9.6.1", cut_anywhere).about(
        "A client takes a reply in two pieces, wherever it is cut.",
        "Packets are cut where the network likes.",
    ),
    Case::client("CLI-REPLY-002", Level::Must, "9.6.1", byte_by_byte).about(
        "A client takes replies that come byte by byte.",
        "Packets are cut where the network likes.",
    ),
    Case::client("CLI-REPLY-003", Level::Must, "9.6.2", empty_packets).about(
        "A client ignores packets of no bytes before a reply.",
        "Some servers send them to keep a connection alive.",
    ),
    Case::client("CLI-REPLY-004", Level::Must, "9.6.3", result_and_end).about(
        "A client takes a reply that comes in one piece with the end of the session behind it.",
        "The result is there; that the server ends afterwards does not make it wrong.",
    ),
    Case::client("CLI-CALL-001", Level::Must, "9.7.1", all_steps).about(
        "A client does what its user asks for, step by step, and understands what it is answered.",
        "Where this fails, nothing else needs to be looked at.",
    ),
    Case::client("CLI-CALL-002", Level::Must, "9.7.2", arguments).about(
        "A client sends arguments as its user gave them, each with its type, in order.",
        "The function on the device computes with what arrives.",
    ),
    Case::client("CLI-CALL-003", Level::Must, "9.7.3", null_means_missing).about(
        "A client takes the null pointer as the news that there is no such function, and never frees it.",
        "A server that is asked to free null may end.",
    ),
    Case::client("CLI-CALL-004", Level::Should, "9.7.4", none_means_missing).about(
        "A client takes the value none for the null pointer, where a function was looked up.",
        "Some servers write a null pointer so.",
    ),
    Case::client("CLI-CALL-005", Level::Must, "9.7.5", other_functions_go_on).about(
        "A client goes on after a function was missing.",
        "Programs look whether a function is there before they use it.",
    ),
];

fn cut_anywhere(client: &Client) -> Outcome {
    let reply = by_hand::result(RAW_STR, by_hand::raw(RAW_STR, b"text"));
    let cuts = reply.len() - 1;
    let (mut rig, mut host) = client.session(&Script::times("give", cuts))?;
    for cut in 1..=cuts {
        host.until_call(Name::Give)?;
        host.served.packets.wire.send_split(&reply, cut);
    }
    host.until_end()?;
    rig.gave(&vec![("str", "text"); cuts])
}

fn byte_by_byte(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give,fail,give"))?;
    let number = by_hand::result(INT, by_hand::int(-2));
    let text = by_hand::result(RAW_STR, by_hand::raw(RAW_STR, b"some text"));
    host.until_call(Name::Give)?;
    host.served.packets.wire.send_in_pieces(&number, 1);
    host.until_call(Name::Fail)?;
    let exception = by_hand::exception("no");
    host.served.packets.wire.send_in_pieces(&exception, 1);
    host.until_call(Name::Give)?;
    host.served.packets.wire.send_in_pieces(&text, 1);
    host.until_end()?;
    rig.gave(&[("int", "-2"), ("str", "some text")])
}

fn empty_packets(client: &Client) -> Outcome {
    const EMPTY: [u8; 8] = [0; 8];
    let (mut rig, mut host) = client.session(&Script::times("give", 3))?;
    let reply = by_hand::result(INT, by_hand::int(3));
    for count in [1, 2, 1000] {
        let bytes = [EMPTY.repeat(count), reply.clone()].concat();
        host.give_bytes(&bytes)?;
    }
    host.until_end()?;
    rig.gave(&[("int", "3"); 3])
}

fn result_and_end(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    let shutdown = by_hand::packet(rpc_proto::codes::PacketCode::SHUTDOWN, &[]);
    let reply = by_hand::result(INT, by_hand::int(5));
    host.until_call(Name::Give)?;
    let wire = &mut host.served.packets.wire;
    wire.send_whole(&[reply, shutdown].concat());
    wire.finish();
    host.abandoned()?;
    let line = rig.line_of("give")?;
    let given = (line.kind.as_deref(), line.value.as_deref());
    let holds = line.ok && given == (Some("int"), Some("5"));
    let found = format!("{line:?}");
    client.stage.check("given", holds, "the integer 5", found)
}

fn all_steps(client: &Client) -> Outcome {
    let (mut rig, mut host) =
        client.session(&Script::steps("call,give,tensor,missing,fail,give"))?;
    host.until_end()?;
    rig.done().map(drop)
}

/// The arguments of the script's calls, in its order.
fn arguments_of_the_script() -> Vec<Vec<OwnedValue>> {
    let bytes = |bytes: &[u8]| Value::from(bytes.to_vec());
    vec![
        vec![Value::None],
        vec![42_i64.into()],
        vec![(-1_i64).into()],
        vec![true.into()],
        vec![false.into()],
        vec![1.5.into()],
        vec!["".into()],
        vec!["text".into()],
        vec!["a longer text".into()],
        vec!["é😀".into()],
        vec![bytes(b"")],
        vec![bytes(b"\0\x01\xff")],
        vec![bytes(&(0..=255).collect::<Vec<u8>>())],
        vec![DataType::FLOAT32.into()],
        vec![Device::cpu(0).into()],
        vec![7_i64.into(), "second".into(), 2.5.into()],
    ]
}

fn arguments(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("call"))?;
    for (number, expected) in arguments_of_the_script().into_iter().enumerate() {
        let found = host.until_call(Name::Echo)?;
        let holds = found == expected;
        client.stage.check(
            &format!("arguments-{number}"),
            holds,
            format_args!("{expected:?}"),
            format_args!("{found:?}"),
        )?;
        let first = found.into_iter().next().unwrap_or(Value::None);
        host.served.returned(&Returned::Value(first))?;
    }
    host.until_end()?;
    rig.done().map(drop)
}

/// Answers the question for a function that is not there by this.
fn missing(client: &Client, answer: Value<'_>) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("missing,give"))?;
    host.until("look-up", |_: &Host, packet: &Packet<'_>| {
        matches!(packet, Packet::Syscall(Syscall::GetGlobalFunc { name })
            if name == "conformance.missing")
    })?;
    host.served.value(answer)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn null_means_missing(client: &Client) -> Outcome {
    missing(client, Value::Pointer(0))
}

fn none_means_missing(client: &Client) -> Outcome {
    missing(client, Value::None)
}

fn other_functions_go_on(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("missing,missing,give,call"))?;
    host.until_end()?;
    rig.done().map(drop)
}

//! Packets as such: `SRV-FRAME-`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{Packet, Value};

use super::by_hand::{self, init, int, packet, syscall, texts};
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::roles::packets::PacketWire;
use crate::stage::Outcome;

const EMPTY: [u8; 8] = [0; 8];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-FRAME-001", Level::Must, "4.1.1", empty_packets).about(
        "Packets of no bytes are ignored, before init, between requests and many of them.",
        "Peers may send them at any time.",
    ),
    Case::server("SRV-FRAME-002", Level::Must, "4.1.2", init_cut_everywhere).about(
        "An init packet may be cut into two pieces at every byte.",
        "Where a stream is cut is not in the hands of who writes to it.",
    ),
    Case::server("SRV-FRAME-003", Level::Must, "4.1.2", call_cut_everywhere)
        .about(
            "A call may be cut into two pieces at every byte.",
            "Where a stream is cut is not in the hands of who writes to it.",
        )
        .functions(&["testing.echo"]),
    Case::server("SRV-FRAME-004", Level::Must, "4.1.2", byte_by_byte).about(
        "A packet may come byte by byte.",
        "Some carriers move small pieces.",
    ),
    Case::server("SRV-FRAME-005", Level::Must, "4.1.3", two_in_one).about(
        "Two packets may come in one piece.",
        "A client need not wait for a reply that it does not need.",
    ),
    Case::server("SRV-FRAME-006", Level::Must, "4.1.3", one_and_a_half).about(
        "A piece may end in the middle of the second packet, wherever that is.",
        "The rest of a packet comes when it comes.",
    ),
    Case::server("SRV-FRAME-007", Level::Must, "4.2.2", two_hundred_in_one)
        .about(
            "Two hundred calls in one piece are answered in their order.",
            "A reply in the wrong place is the result of another call.",
        )
        .functions(&["testing.echo"]),
    Case::server("SRV-FRAME-008", Level::Must, "4.2.1", one_reply_each).about(
        "Each request has one reply, and nothing comes behind it.",
        "A reply too much puts every later one in the wrong place.",
    ),
    Case::server("SRV-FRAME-009", Level::Must, "4.2.3", nothing_unasked).about(
        "Nothing comes that was not asked for.",
        "It would be taken for the reply to the next request.",
    ),
    Case::server("SRV-FRAME-010", Level::Must, "4.2.4", replies_are_not_read)
        .about(
            "A thousand requests are taken before the first reply is read.",
            "A client that sends many requests reads when it has sent them.",
        )
        .functions(&["testing.echo"]),
    Case::server("SRV-FRAME-011", Level::Must, "4.1.4", lengths_of_replies).about(
        "The length of a reply counts what follows it, for replies of several kinds.",
        "A client finds the next reply by it.",
    ),
    Case::server("SRV-FRAME-012", Level::Must, "4.1.2", length_cut).about(
        "The length of a packet may come in two pieces, also behind another packet.",
        "Where a stream is cut is not in the hands of who writes to it.",
    ),
];

fn look_up(name: &str) -> Vec<u8> {
    syscall(PacketCode::GET_GLOBAL_FUNC, &[texts(name).swap_remove(0).1])
}

/// The reply to a look-up of a name that no function has.
fn expect_null(packets: &mut PacketWire, check: &str) -> Outcome {
    let null = [Value::Pointer(0)];
    packets.expect(check, &Packet::Return(null.into_iter().collect()))
}

/// A name that no function has, and that is long enough to be cut in many places.
const NOBODY: &str = "conformance.no_such_function";

fn empty_packets(server: &Server) -> Outcome {
    let mut packets = server.shaken("")?;
    packets.wire.send(&EMPTY);
    packets.wire.send(&init("0.8.0", &[]));
    packets.packet("init")?;
    packets.wire.send(&EMPTY.repeat(100));
    packets.wire.send(&look_up(NOBODY));
    expect_null(&mut packets, "look-up")?;
    packets
        .wire
        .send(&[&EMPTY[..], &look_up(NOBODY), &EMPTY].concat());
    expect_null(&mut packets, "look-up-between")?;
    packets.send(&Packet::Shutdown)?;
    packets.expect_end("shutdown").map(drop)
}

fn init_cut_everywhere(server: &Server) -> Outcome {
    let bytes = init("0.8.0", &[]);
    for cut in 1..bytes.len() {
        let mut packets = server.shaken("")?;
        packets.wire.send_split(&bytes, cut);
        packets.packet(&format!("cut-at-{cut}"))?;
        packets.send(&Packet::Shutdown)?;
        packets.expect_end("shutdown")?;
    }
    Ok(())
}

fn call_cut_everywhere(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let bytes = by_hand::call(echo, &[texts("hello").swap_remove(0).1, int(7)]);
    let expected = by_hand::text_results("hello");
    for cut in 1..bytes.len() {
        session.packets.wire.send_split(&bytes, cut);
        session.expect_bytes(&format!("cut-at-{cut}"), "the text", &expected)?;
    }
    session.shut_down()
}

fn byte_by_byte(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.packets.wire.send_in_pieces(&look_up(NOBODY), 1);
    expect_null(&mut session.packets, "look-up")?;
    session.shut_down()
}

fn two_in_one(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.packets.wire.send_whole(&look_up(NOBODY).repeat(2));
    expect_null(&mut session.packets, "first")?;
    expect_null(&mut session.packets, "second")?;
    session.shut_down()
}

fn one_and_a_half(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let one = look_up(NOBODY);
    let both = one.repeat(2);
    for cut in one.len() + 1..both.len() {
        session.packets.wire.send_whole(&both[..cut]);
        expect_null(&mut session.packets, "first")?;
        session.packets.wire.send_whole(&both[cut..]);
        expect_null(&mut session.packets, &format!("second-cut-at-{cut}"))?;
    }
    session.shut_down()
}

fn two_hundred_in_one(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let calls: Vec<_> = (0..200)
        .map(|number| by_hand::call(echo, &[int(number)]))
        .collect();
    session.packets.wire.send_whole(&calls.concat());
    for number in 0..200 {
        let expected = [by_hand::result(by_hand::INT, int(number))];
        session.expect_bytes(&format!("reply-{number}"), "its number", &expected)?;
    }
    session.shut_down()
}

fn one_reply_each(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for round in 0..5 {
        session.packets.wire.send(&look_up(NOBODY));
        expect_null(&mut session.packets, &format!("reply-{round}"))?;
        session.packets.expect_quiet("nothing-behind")?;
    }
    session.shut_down()
}

fn nothing_unasked(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.packets.expect_quiet("nothing-behind-init")?;
    session.packets.wire.send(&look_up(NOBODY));
    expect_null(&mut session.packets, "look-up")?;
    session.packets.expect_quiet("nothing-behind-look-up")?;
    session.shut_down()
}

fn replies_are_not_read(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let calls: Vec<_> = (0..1000)
        .map(|number| by_hand::call(echo, &[int(number)]))
        .collect();
    for call in &calls {
        session.packets.wire.send(call);
    }
    for number in 0..1000 {
        let expected = [by_hand::result(by_hand::INT, int(number))];
        session.expect_bytes(&format!("reply-{number}"), "its number", &expected)?;
    }
    session.shut_down()
}

fn lengths_of_replies(server: &Server) -> Outcome {
    let mut session = server.session()?;
    // A pointer, an exception, nothing; each is followed by a reply that is only found behind it.
    let device_attr = |kind| {
        syscall(
            PacketCode::DEV_GET_ATTR,
            &[by_hand::device(1, 0), int(kind)],
        )
    };
    let wrong = syscall(PacketCode::GET_GLOBAL_FUNC, &[int(7)]);
    for (name, request) in [
        ("pointer", look_up(NOBODY)),
        ("exception", wrong),
        ("attribute", device_attr(0)),
    ] {
        session.packets.wire.send(&request);
        session.packets.packet(name)?;
        session.packets.wire.send(&look_up(NOBODY));
        expect_null(&mut session.packets, &format!("behind-{name}"))?;
    }
    session.shut_down()
}

fn length_cut(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let one = look_up(NOBODY);
    for cut in 1..8 {
        session
            .packets
            .wire
            .send_whole(&[&one[..], &one[..cut]].concat());
        expect_null(&mut session.packets, "first")?;
        session.packets.wire.send_whole(&one[cut..]);
        expect_null(&mut session.packets, &format!("second-cut-at-{cut}"))?;
    }
    // The shutdown, too.
    let shutdown = packet(PacketCode::SHUTDOWN, &[]);
    session.packets.wire.send_split(&shutdown, 4);
    session.packets.expect_end("shutdown").map(drop)
}

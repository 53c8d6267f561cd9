//! What is no packet: `SRV-BAD-`.

use rpc_proto::Packet;
use rpc_proto::codes::PacketCode;

use super::by_hand::{
    RAW_STR, call, exception, int, none, packet, pointer, raw, returned, sequence, syscall,
};
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::packets::{NoPacket, PacketWire};
use crate::roles::server::Session;
use crate::stage::Outcome;
use crate::wire::Shortfall;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-BAD-001", Level::Must, "8.2.3", next_one_is_served)
        .about(
            "The next client is served after a session whose packets made no sense.",
            "Otherwise one broken client takes a device out of a farm.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-002", Level::Must, "4.3.1", unknown_codes)
        .about(
            "Packets of the codes 0, 22, 99 and -1 end the session.",
            "A client of a later version has to learn that this server does not know its request.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-003", Level::Should, "4.3.2", packets_of_servers)
        .about(
            "Packets that only servers send end the session.",
            "Two clients that were connected to each other have to notice it.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-004", Level::Must, "4.3.3", length_too_short)
        .about(
            "A length that is shorter than the contents ends the session.",
            "What stands behind it is no packet.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-005", Level::Must, "4.3.3", length_without_code)
        .about(
            "A length of 1, 2 or 3 ends the session.",
            "There is no room for a code.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-006", Level::Must, "4.3.4", length_too_long)
        .about(
            "Bytes behind the contents of a packet end the session.",
            "Who writes them means something that this server does not know.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-007", Level::Should, "4.3.5", huge_lengths)
        .about(
            "Lengths of 2^62, 2^63 and 2^64 - 1 end the session.",
            "Eight bytes must not be enough to fill a server's memory, or to keep it waiting.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-016", Level::Should, "4.3.9", too_few_arguments)
        .about(
            "Syscalls without arguments are answered by an exception, and the session goes on.",
            "The packet is whole: the next one can be read.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-017", Level::May, "4.3.11", too_many_arguments)
        .about(
            "A look-up with an argument too much is answered, or refused.",
            "Clients of later versions may have more to say.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-021", Level::Should, "4.3.5", long_and_silent)
        .about(
            "A packet that announces a terabyte is not waited for.",
            "A session that waits for it keeps the device from others.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-022", Level::Must, "8.2.3", garbage)
        .about(
            "The next client is served after a session whose packet held random bytes, whatever became of it.",
            "There is always one more way to be wrong.",
        )
        .tags(&[Tag::Hostile, Tag::Slow]),
    Case::server("SRV-BAD-023", Level::Must, "4.3.1", unknown_code_first)
        .about(
            "A packet of an unknown code ahead of the init packet ends the connection.",
            "There is no session yet that could say what it means.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-024", Level::Must, "8.2.6", cut_off)
        .about(
            "A packet that is cut off by the client's end is not answered, and the connection is closed.",
            "Half of a request is none; and who waits for the rest keeps the device.",
        )
        .tags(&[Tag::Hostile]),
];

/// How a server may end a session; in each way it may say before that it shuts down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// It ends, and may say why by exceptions.
    Reason,
    /// It may have answered first.
    Answer,
}

/// A session for one of several things that are tried in a case.
pub(super) fn session_for(server: &Server, check: &str) -> Outcome<Session> {
    opened(shaken_for(server, check)?, &format!("init-for-{check}"))
}

/// A session on a connection that was accepted.
pub(super) fn opened(mut packets: PacketWire, check: &str) -> Outcome<Session> {
    packets.send(&Packet::init(std::iter::empty().collect()))?;
    packets.expect(check, &Packet::void())?;
    Ok(Session { packets })
}

/// The same without a session.
pub(super) fn shaken_for(server: &Server, check: &str) -> Outcome<PacketWire> {
    server.recovered(check)?;
    server.shaken("")
}

/// Sends bytes that are no packet, and checks that the server ends the session.
pub(super) fn expect_ended(server: &Server, check: &str, bytes: &[u8]) -> Outcome {
    let mut session = session_for(server, check)?;
    session.packets.wire.send_whole(bytes);
    expect_session_ended(&mut session.packets, check, Before::Reason)
}

pub(super) fn expect_session_ended(
    packets: &mut PacketWire,
    check: &str,
    before: Before,
) -> Outcome {
    const EXPECTED: &str = "the end of the session, perhaps behind an exception or a shutdown";
    let stage = packets.stage();
    loop {
        match packets.receive() {
            Ok(came) => {
                let is_reason = matches!(came.packet, Packet::Exception { .. } | Packet::Shutdown);
                if !is_reason && before == Before::Reason {
                    packets.came_check(check, false, EXPECTED, None, &came)?;
                }
            }
            Err(NoPacket::Short(Shortfall::Ended(_))) => return stage.passes(check),
            Err(none) => return Err(packets.no_packet(check, EXPECTED, None, &none)),
        }
    }
}

/// The same for what may also be refused by an exception alone.
pub(super) fn expect_refused(server: &Server, check: &str, bytes: &[u8]) -> Outcome {
    let mut session = session_for(server, check)?;
    session.packets.wire.send_whole(bytes);
    session.expect_refused(check).map(drop)
}

fn each_ended(server: &Server, packets: &[(&str, Vec<u8>)]) -> Outcome {
    packets
        .iter()
        .try_for_each(|(check, bytes)| expect_ended(server, check, bytes))
}

pub(super) fn with_length(length: u64, rest: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), rest].concat()
}

pub(super) fn look_up(name: &[u8]) -> Vec<u8> {
    syscall(PacketCode::GET_GLOBAL_FUNC, &[raw(RAW_STR, name)])
}

fn next_one_is_served(server: &Server) -> Outcome {
    expect_ended(server, "code-99", &packet(PacketCode(99), &[]))?;
    server.session()?.shut_down()
}

fn unknown_codes(server: &Server) -> Outcome {
    for code in [0, 22, 99, -1] {
        let bytes = packet(PacketCode(code), &sequence(&[none()]));
        expect_ended(server, &format!("code-{code}"), &bytes)?;
    }
    Ok(())
}

fn packets_of_servers(server: &Server) -> Outcome {
    each_ended(
        server,
        &[
            ("return", packet(PacketCode::RETURN, &sequence(&[none()]))),
            ("exception", exception("no")),
            ("copy-ack", packet(PacketCode::COPY_ACK, &[1, 2, 3])),
        ],
    )
}

fn length_too_short(server: &Server) -> Outcome {
    let whole = look_up(b"testing.echo");
    // Just the code is in the packet; and the code and the count.
    each_ended(
        server,
        &[
            ("of-4", with_length(4, &whole[8..])),
            ("of-8", with_length(8, &whole[8..])),
            (
                "shorter-by-1",
                with_length(whole.len() as u64 - 9, &whole[8..]),
            ),
        ],
    )
}

fn length_without_code(server: &Server) -> Outcome {
    for length in 1..4 {
        expect_ended(
            server,
            &format!("length-{length}"),
            &with_length(length, &[9, 0, 0, 0]),
        )?;
    }
    Ok(())
}

fn length_too_long(server: &Server) -> Outcome {
    let longer = |mut bytes: Vec<u8>| {
        let length = bytes.len() as u64 - 8 + 4;
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes
    };
    for (check, bytes) in [
        ("look-up", look_up(b"testing.echo")),
        ("shutdown", packet(PacketCode::SHUTDOWN, &[])),
    ] {
        let mut session = session_for(server, check)?;
        session.packets.wire.send_whole(&longer(bytes));
        expect_session_ended(&mut session.packets, check, Before::Answer)?;
    }
    Ok(())
}

fn huge_lengths(server: &Server) -> Outcome {
    for (check, length) in [("2^62", 1 << 62), ("2^63", 1 << 63), ("2^64-1", u64::MAX)] {
        expect_ended(server, check, &with_length(length, &look_up(b"x")[8..]))?;
    }
    Ok(())
}

fn too_few_arguments(server: &Server) -> Outcome {
    for code in 9..=21 {
        let check = format!("code-{code}");
        let mut session = session_for(server, &check)?;
        session
            .packets
            .wire
            .send_whole(&syscall(PacketCode(code), &[]));
        session.expect_exception_only(&check)?;
        session.shut_down()?;
    }
    Ok(())
}

fn too_many_arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let name = raw(RAW_STR, b"conformance.nobody");
    let bytes = syscall(PacketCode::GET_GLOBAL_FUNC, &[name, int(1)]);
    session.packets.wire.send_whole(&bytes);
    let came = session.packets.packet("answer")?;
    let null = returned(&[pointer(0)]);
    let is_exception = came.packet.code() == PacketCode::EXCEPTION;
    let holds = came.bytes == null || is_exception;
    let packets = &session.packets;
    packets.came_check(
        "look-up",
        holds,
        "a null pointer or an exception",
        Some(&null),
        &came,
    )?;
    session.expect_goes_on("goes-on")
}

fn long_and_silent(server: &Server) -> Outcome {
    let call = call(1, &[int(1)]);
    expect_ended(server, "ended", &with_length(1 << 40, &call[8..]))
}

fn garbage(server: &Server) -> Outcome {
    let mut random = fastrand::Rng::with_seed(server.stage.conditions.seed);
    for round in 0..16 {
        let code = random.i32(2..=21);
        let check = format!("round-{round}-code-{code}");
        let body: Vec<_> = std::iter::repeat_with(|| random.u8(..)).take(64).collect();
        let mut session = session_for(server, &check)?;
        session
            .packets
            .wire
            .send_whole(&packet(PacketCode(code), &body));
        session.packets.wire.finish();
        expect_session_ended(&mut session.packets, &check, Before::Answer)?;
    }
    Ok(())
}

fn unknown_code_first(server: &Server) -> Outcome {
    let mut packets = shaken_for(server, "code-99")?;
    packets
        .wire
        .send_whole(&packet(PacketCode(99), &sequence(&[none()])));
    expect_session_ended(&mut packets, "code-99", Before::Reason)
}

fn cut_off(server: &Server) -> Outcome {
    let whole = look_up(b"conformance.nobody");
    for cut in [4, 8, 10, 12, 20, whole.len() - 1] {
        let check = format!("cut-at-{cut}");
        let mut session = session_for(server, &check)?;
        session.packets.wire.send_whole(&whole[..cut]);
        session.packets.wire.finish();
        expect_session_ended(&mut session.packets, &check, Before::Reason)?;
    }
    Ok(())
}

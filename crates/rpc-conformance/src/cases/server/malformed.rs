//! What is no packet: `SRV-BAD-`.

use rpc_proto::Device;
use rpc_proto::codes::PacketCode;

use super::by_hand::{call, int, none, packet, pointer, sequence, syscall, tensor, value};
use super::exchange::Refused;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::packets::NoPacket;
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
    Case::server("SRV-BAD-002", Level::Should, "4.3.1", unknown_codes)
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
    Case::server("SRV-BAD-004", Level::Should, "4.3.3", length_too_short)
        .about(
            "A length that is shorter than the contents ends the session.",
            "What stands behind it is no packet.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-005", Level::Should, "4.3.3", length_without_code)
        .about(
            "A length of 1, 2 or 3 ends the session.",
            "There is no room for a code.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-006", Level::Should, "4.3.4", length_too_long)
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
    Case::server(
        "SRV-BAD-008",
        Level::Should,
        "4.3.6",
        more_values_than_there_are,
    )
    .about(
        "A count of more values than the packet holds ends the session.",
        "What is read behind the packet is no value.",
    )
    .tags(&[Tag::Hostile]),
    Case::server(
        "SRV-BAD-009",
        Level::Should,
        "4.3.6",
        longer_text_than_there_is,
    )
    .about(
        "A text that is announced as longer than the packet ends the session.",
        "What is read behind the packet is no text.",
    )
    .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-010", Level::Should, "4.3.6", huge_texts)
        .about(
            "Texts of 2^31, 2^40 and 2^63 bytes in a packet of a few end the session.",
            "A length that is believed is memory that is taken.",
        )
        .tags(&[Tag::Hostile]),
    Case::server(
        "SRV-BAD-011",
        Level::Should,
        "4.3.6",
        longer_version_than_there_is,
    )
    .about(
        "A version that is announced as longer than the packet ends the session.",
        "What is read behind the packet is no text.",
    )
    .tags(&[Tag::Hostile]),
    Case::server(
        "SRV-BAD-012",
        Level::Should,
        "4.3.6",
        more_dimensions_than_there_are,
    )
    .about(
        "A tensor of more dimensions than the packet holds ends the session.",
        "A count that is believed is memory that is taken.",
    )
    .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-013", Level::Should, "4.3.7", negative_counts)
        .about(
            "A negative count of values or dimensions is refused.",
            "A count that is taken for a large one makes a server read behind the packet.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-014", Level::Should, "4.3.8", unknown_types)
        .about(
            "Values of the type indices 10, 13, 50, 63, 70 and -1 end the session.",
            "How long they are is not known, so that nothing behind them can be read.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-015", Level::Should, "4.3.8", unknown_inner_types)
        .about(
            "A text or an object with another inner type index is refused.",
            "How long it is is not known.",
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
    Case::server(
        "SRV-BAD-018",
        Level::Should,
        "4.3.10",
        names_that_are_not_utf8,
    )
    .about(
        "A name that is not UTF-8 is answered by a null pointer or refused.",
        "It is no reason to stop serving.",
    )
    .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-019", Level::Should, "4.3.6", every_truncation)
        .about(
            "A call whose length was cut by any number of bytes is refused.",
            "Each field in it has to notice that it is not whole.",
        )
        .tags(&[Tag::Hostile]),
    Case::server(
        "SRV-BAD-020",
        Level::Should,
        "4.3.6",
        copy_without_its_bytes,
    )
    .about(
        "A copy that announces more bytes than the packet has ends the session.",
        "What is read behind the packet is no data.",
    )
    .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-021", Level::Should, "4.3.5", long_and_silent)
        .about(
            "A packet that announces a terabyte is not waited for.",
            "A session that waits for it keeps the device from others.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-022", Level::Should, "4.3.6", garbage)
        .about(
            "Random bytes in place of a packet's contents end the session or are refused.",
            "There is always one more way to be wrong.",
        )
        .tags(&[Tag::Hostile]),
];

/// Sends bytes that are no packet, and checks that the server ends the session; before, it may answer,
/// refuse and say that it shuts down.
fn expect_ended(server: &Server, check: &str, bytes: &[u8]) -> Outcome {
    let mut session = server.session()?;
    session.packets.wire.send_whole(bytes);
    expect_session_ended(&mut session, check)
}

fn expect_session_ended(session: &mut Session, check: &str) -> Outcome {
    let stage = session.stage();
    loop {
        match session.packets.receive() {
            Ok(_) => {}
            Err(NoPacket::Short(Shortfall::Ended(_))) => return stage.check(check, true, "", ""),
            Err(none) => return Err(stage.fail(check, "the end of the session", none)),
        }
    }
}

/// The same for what may also be refused by an exception alone.
fn expect_refused(server: &Server, check: &str, bytes: &[u8]) -> Outcome {
    let mut session = server.session()?;
    session.packets.wire.send_whole(bytes);
    match session.expect_refused(check)? {
        Refused::Ended => Ok(()),
        Refused::Exception(_) => Ok(()),
    }
}

fn each_ended(server: &Server, packets: &[(&str, Vec<u8>)]) -> Outcome {
    packets
        .iter()
        .try_for_each(|(check, bytes)| expect_ended(server, check, bytes))
}

fn with_length(length: u64, rest: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), rest].concat()
}

fn look_up(name: &[u8]) -> Vec<u8> {
    syscall(PacketCode::GET_GLOBAL_FUNC, &[super::by_hand::raw(8, name)])
}

fn next_one_is_served(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session
        .packets
        .wire
        .send_whole(&packet(PacketCode(99), &[]));
    expect_session_ended(&mut session, "ended")?;
    server.expect_alive()
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
            ("exception", super::by_hand::exception("no")),
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
    each_ended(
        server,
        &[
            ("look-up", longer(look_up(b"testing.echo"))),
            ("shutdown", longer(packet(PacketCode::SHUTDOWN, &[]))),
        ],
    )
}

fn huge_lengths(server: &Server) -> Outcome {
    for (check, length) in [("2^62", 1 << 62), ("2^63", 1 << 63), ("2^64-1", u64::MAX)] {
        expect_ended(server, check, &with_length(length, &look_up(b"x")[8..]))?;
    }
    Ok(())
}

/// A look-up whose count of arguments is this.
fn with_count(count: i32) -> Vec<u8> {
    let mut bytes = look_up(b"testing.echo");
    bytes[12..16].copy_from_slice(&count.to_le_bytes());
    bytes
}

fn more_values_than_there_are(server: &Server) -> Outcome {
    for count in [2, 1000, i32::MAX] {
        expect_ended(server, &format!("count-{count}"), &with_count(count))?;
    }
    Ok(())
}

/// A look-up whose name is announced with this length.
fn with_text_length(length: u64) -> Vec<u8> {
    let mut bytes = look_up(b"testing.echo");
    bytes[20..28].copy_from_slice(&length.to_le_bytes());
    bytes
}

fn longer_text_than_there_is(server: &Server) -> Outcome {
    for length in [13, 1000] {
        expect_ended(
            server,
            &format!("length-{length}"),
            &with_text_length(length),
        )?;
    }
    Ok(())
}

fn huge_texts(server: &Server) -> Outcome {
    for (check, length) in [("2^31", 1 << 31), ("2^40", 1 << 40), ("2^63", 1 << 63)] {
        expect_ended(server, check, &with_text_length(length))?;
    }
    Ok(())
}

fn longer_version_than_there_is(server: &Server) -> Outcome {
    for length in [100_u64, 1 << 40, u64::MAX] {
        let mut packets = server.shaken("")?;
        let mut bytes = super::by_hand::init("0.8.0", &[]);
        bytes[12..20].copy_from_slice(&length.to_le_bytes());
        packets.wire.send_whole(&bytes);
        let mut session = Session { packets };
        expect_session_ended(&mut session, &format!("length-{length}"))?;
    }
    Ok(())
}

/// A call with a tensor of this number of dimensions, and room for one.
fn with_dimensions(dimensions: i32) -> Vec<u8> {
    let mut view = tensor(0, Device::cpu(0), (2, 32, 1), &[1], 0);
    view[16..20].copy_from_slice(&dimensions.to_le_bytes());
    call(1, &[value(super::by_hand::TENSOR_VIEW, &view)])
}

fn more_dimensions_than_there_are(server: &Server) -> Outcome {
    for dimensions in [3, 1000, i32::MAX] {
        expect_ended(
            server,
            &format!("dimensions-{dimensions}"),
            &with_dimensions(dimensions),
        )?;
    }
    Ok(())
}

fn negative_counts(server: &Server) -> Outcome {
    expect_refused(server, "values", &with_count(-1))?;
    expect_refused(server, "dimensions", &with_dimensions(-1))
}

fn unknown_types(server: &Server) -> Outcome {
    for index in [10, 13, 50, 63, 70, -1] {
        let bytes = call(1, &[value(index, &[0; 8])]);
        expect_ended(server, &format!("type-{index}"), &bytes)?;
    }
    Ok(())
}

fn unknown_inner_types(server: &Server) -> Outcome {
    let inner = |index: i32, inner: i32| {
        call(
            1,
            &[value(index, &[&inner.to_le_bytes()[..], &[0; 8]].concat())],
        )
    };
    expect_refused(server, "text", &inner(65, 66))?;
    expect_refused(server, "bytes", &inner(66, 65))?;
    expect_refused(server, "object", &inner(115, 65))
}

fn too_few_arguments(server: &Server) -> Outcome {
    for code in 9..=21 {
        let mut session = server.session()?;
        session
            .packets
            .wire
            .send_whole(&syscall(PacketCode(code), &[]));
        session.expect_exception(&format!("code-{code}"))?;
        session.expect_goes_on("goes-on")?;
        session.shut_down()?;
    }
    Ok(())
}

fn too_many_arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let name = super::by_hand::raw(8, b"conformance.nobody");
    let bytes = syscall(PacketCode::GET_GLOBAL_FUNC, &[name, int(1)]);
    session.packets.wire.send_whole(&bytes);
    let came = session.packets.packet("answer")?;
    let null = super::by_hand::returned(&[pointer(0)]);
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

fn names_that_are_not_utf8(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.packets.wire.send_whole(&look_up(b"\xff\xfe"));
    let stage = session.stage();
    match session.packets.receive() {
        Ok(came) => {
            let null = super::by_hand::returned(&[pointer(0)]);
            let code = came.packet.code();
            let refused = [PacketCode::EXCEPTION, PacketCode::SHUTDOWN].contains(&code);
            let holds = came.bytes == null || refused;
            session.packets.came_check(
                "look-up",
                holds,
                "a null pointer, or a refusal",
                Some(&null),
                &came,
            )
        }
        Err(NoPacket::Short(Shortfall::Ended(_))) => stage.check("look-up", true, "", ""),
        Err(none) => Err(stage.fail("look-up", "a null pointer, or a refusal", none)),
    }
}

fn every_truncation(server: &Server) -> Outcome {
    let view = tensor(0, Device::cpu(0), (2, 32, 1), &[1], 0);
    let text = super::by_hand::raw(8, b"a text");
    let whole = call(
        1,
        &[int(7), text, value(super::by_hand::TENSOR_VIEW, &view)],
    );
    // Every eighth byte, and the last ones, so that it does not take a session for each.
    let cuts = (12..whole.len() - 8)
        .step_by(8)
        .chain(whole.len() - 8..whole.len());
    for cut in cuts {
        let bytes = with_length(cut as u64 - 8, &whole[8..cut]);
        expect_ended(server, &format!("cut-at-{cut}"), &bytes)?;
    }
    Ok(())
}

fn copy_without_its_bytes(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let view = session.allocate(&[4], rpc_proto::DataType::FLOAT32)?;
    let view = tensor(view.data, Device::cpu(0), (2, 32, 1), &[4], 0);
    let body = [&view[..], &16_u64.to_le_bytes(), &[0; 8]].concat();
    session
        .packets
        .wire
        .send_whole(&packet(PacketCode::COPY_TO_REMOTE, &body));
    expect_session_ended(&mut session, "ended")
}

fn long_and_silent(server: &Server) -> Outcome {
    let call = call(1, &[int(1)]);
    expect_ended(server, "ended", &with_length(1 << 40, &call[8..]))
}

fn garbage(server: &Server) -> Outcome {
    let mut random = fastrand::Rng::with_seed(server.stage.conditions.seed);
    for round in 0..16 {
        let code = random.i32(2..=21);
        let body: Vec<_> = std::iter::repeat_with(|| random.u8(..)).take(64).collect();
        let mut session = server.session()?;
        session
            .packets
            .wire
            .send_whole(&packet(PacketCode(code), &body));
        session.packets.wire.finish();
        expect_session_ended(&mut session, &format!("round-{round}-code-{code}"))?;
    }
    Ok(())
}

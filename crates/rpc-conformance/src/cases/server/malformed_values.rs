//! Packets whose values make no sense: `SRV-BAD-`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{DataType, Device};

use super::by_hand::{
    BYTES, OBJECT, RAW_STR, SMALL_BYTES, SMALL_STR, STR, TENSOR_VIEW, call, init, int, none,
    packet, pointer, raw, returned, sequence, tensor, value,
};
use super::malformed::{
    Before, expect_ended, expect_refused, expect_session_ended, look_up, session_for, shaken_for,
    with_length,
};
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::packets::NoPacket;
use crate::stage::Outcome;
use crate::wire::Shortfall;

/// A function that takes any value.
const ECHO: &str = "testing.echo";

pub(super) const CASES: &[Case] = &[
    Case::server(
        "SRV-BAD-008",
        Level::Must,
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
        Level::Must,
        "4.3.6",
        longer_text_than_there_is,
    )
    .about(
        "A text that is announced as longer than the packet ends the session.",
        "What is read behind the packet is no text.",
    )
    .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-010", Level::Must, "4.3.6", huge_texts)
        .about(
            "Texts of 2^31, 2^40 and 2^63 bytes in a packet of a few end the session.",
            "A length that is believed is memory that is taken.",
        )
        .tags(&[Tag::Hostile]),
    Case::server(
        "SRV-BAD-011",
        Level::Must,
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
        Level::Must,
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
    Case::server("SRV-BAD-014", Level::Must, "4.3.8", unknown_types)
        .about(
            "Values of the type indices 10, 13, 50, 63, 70 and -1 end the session.",
            "How long they are is not known, so that nothing behind them can be read.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-015", Level::Should, "4.3.12", unknown_inner_types)
        .about(
            "A text or an object with another inner type index is refused.",
            "How long it is is not known.",
        )
        .functions(&[ECHO])
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
    Case::server("SRV-BAD-019", Level::Must, "4.3.6", every_truncation)
        .about(
            "A call whose length was cut by any number of bytes is refused.",
            "Each field in it has to notice that it is not whole.",
        )
        .tags(&[Tag::Hostile, Tag::Slow]),
    Case::server(
        "SRV-BAD-020",
        Level::Must,
        "4.3.6",
        copy_without_its_bytes,
    )
    .about(
        "A copy that announces more bytes than the packet has ends the session.",
        "What is read behind the packet is no data.",
    )
    .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-025", Level::Must, "4.3.6", huge_copies)
        .about(
            "A copy of 2^40, 2^63 or 2^64 - 1 bytes in a packet of a few ends the session.",
            "A size that is added to others before it is looked at wraps around.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-026", Level::Must, "4.3.6", broken_init)
        .about(
            "An init packet that is cut, or announces more values than it holds, ends the connection.",
            "It is the first packet that a stranger sends.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-BAD-027", Level::Must, "4.3.1", long_unknown_packet)
        .about(
            "A megabyte behind an unknown code ends the session.",
            "The end has to come though the client is still writing.",
        )
        .tags(&[Tag::Hostile]),
];

/// A look-up whose count of arguments is this.
fn with_count(count: i32) -> Vec<u8> {
    let mut bytes = look_up(ECHO.as_bytes());
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
    let mut bytes = look_up(ECHO.as_bytes());
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
    for length in [100, 1 << 40, u64::MAX] {
        let mut bytes = init("0.8.0", &[]);
        bytes[12..20].copy_from_slice(&length.to_le_bytes());
        expect_init_ended(server, &format!("length-{length}"), &bytes)?;
    }
    Ok(())
}

/// Sends bytes in place of an init packet, which end the connection.
fn expect_init_ended(server: &Server, check: &str, bytes: &[u8]) -> Outcome {
    let mut packets = shaken_for(server, check)?;
    packets.wire.send_whole(bytes);
    expect_session_ended(&mut packets, check, Before::Reason)
}

/// A call with a tensor of this number of dimensions, and room for one.
fn with_dimensions(dimensions: i32) -> Vec<u8> {
    let mut view = tensor(0, Device::cpu(0), (2, 32, 1), &[1], 0);
    view[16..20].copy_from_slice(&dimensions.to_le_bytes());
    call(1, &[value(TENSOR_VIEW, &view)])
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
    for (check, index, inner) in [
        ("text", STR, BYTES),
        ("bytes", BYTES, STR),
        ("small-text", SMALL_STR, OBJECT),
        ("small-bytes", SMALL_BYTES, OBJECT),
        ("object", OBJECT, STR),
    ] {
        let mut session = session_for(server, check)?;
        // One that there is, so that nothing but the value can be refused.
        let echo = session.function(ECHO)?;
        let mistyped = value(index, &[&inner.to_le_bytes()[..], &[0; 8]].concat());
        session.packets.wire.send_whole(&call(echo, &[mistyped]));
        session.expect_refused(check)?;
    }
    Ok(())
}

fn names_that_are_not_utf8(server: &Server) -> Outcome {
    let mut session = session_for(server, "look-up")?;
    session.packets.wire.send_whole(&look_up(b"\xff\xfe"));
    let stage = session.stage();
    match session.packets.receive() {
        Ok(came) => {
            let null = returned(&[pointer(0)]);
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
        Err(NoPacket::Short(Shortfall::Ended(_))) => stage.passes("look-up"),
        Err(none) => Err(stage.fail("look-up", "a null pointer, or a refusal", none)),
    }
}

fn every_truncation(server: &Server) -> Outcome {
    let view = tensor(0, Device::cpu(0), (2, 32, 1), &[1], 0);
    let text = raw(RAW_STR, b"a text");
    let whole = call(1, &[int(7), text, value(TENSOR_VIEW, &view)]);
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

/// A copy to a tensor of four floats that announces `nbytes`, and brings eight.
fn copy_of(server: &Server, check: &str, nbytes: u64) -> Outcome {
    let mut session = session_for(server, check)?;
    let view = session.allocate(&[4], DataType::FLOAT32)?;
    let view = tensor(view.data, Device::cpu(0), (2, 32, 1), &[4], 0);
    let body = [&view[..], &nbytes.to_le_bytes(), &[0; 8]].concat();
    session
        .packets
        .wire
        .send_whole(&packet(PacketCode::COPY_TO_REMOTE, &body));
    expect_session_ended(&mut session.packets, check, Before::Reason)
}

fn copy_without_its_bytes(server: &Server) -> Outcome {
    copy_of(server, "16-bytes", 16)
}

fn huge_copies(server: &Server) -> Outcome {
    for (check, nbytes) in [("2^40", 1 << 40), ("2^63", 1 << 63), ("2^64-1", u64::MAX)] {
        copy_of(server, check, nbytes)?;
    }
    Ok(())
}

fn broken_init(server: &Server) -> Outcome {
    let named = init("0.8.0", &[raw(RAW_STR, b"rpc.LocalSession")]);
    // Its count of values stands behind the length and the text of the version.
    let count = 8 + 4 + 8 + "0.8.0".len();
    let with_count = |number: i32| {
        let mut bytes = named.clone();
        bytes[count..count + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    expect_init_ended(server, "count-2", &with_count(2))?;
    expect_init_ended(server, "count-2^31-1", &with_count(i32::MAX))?;
    for cut in [12, 16, 20, count, count + 4, named.len() - 1] {
        let bytes = with_length(cut as u64 - 8, &named[8..cut]);
        expect_init_ended(server, &format!("cut-at-{cut}"), &bytes)?;
    }
    Ok(())
}

fn long_unknown_packet(server: &Server) -> Outcome {
    // A packet that makes no sense at all, in a length that would be right for it.
    let body = [sequence(&[none()]), vec![0xff; 1 << 20]].concat();
    expect_ended(server, "code-99", &packet(PacketCode(99), &body))
}

//! Replies that are none: `CLI-BAD-`. A client ends the request with an error: it does not wait for
//! more, it does not take them for a result, and it does not take memory for what they announce.

use rpc_proto::codes::PacketCode;

use super::by_hand::{self, BOOL, INT, NONE, RAW_STR, SHAPE, STR, TENSOR, TENSOR_VIEW};
use crate::case::{Case, Level, Tag};
use crate::roles::client::{Client, Name, Script};
use crate::stage::Outcome;

/// What goes wrong for others.
const HANGS: &str =
    "A program that waits for ever, or goes on with a wrong result, is worse than one that ends.";
/// The same where memory is at stake.
const MEMORY: &str = "One broken server must not take the memory of its client.";

const fn case(
    id: &'static str,
    level: Level,
    clause: &'static str,
    play: fn(&Client) -> Outcome,
) -> Case {
    Case::client(id, level, clause, play).tags(&[Tag::Hostile])
}

pub(super) const CASES: &[Case] = &[
    case("CLI-BAD-001", Level::Must, "9.13.1", unknown_code).about(
        "A client ends a request that is answered by a packet of an unknown code.",
        HANGS,
    ),
    case("CLI-BAD-002", Level::Should, "9.13.3", request_as_a_reply).about(
        "A client ends a request that is answered by a request.",
        HANGS,
    ),
    case("CLI-BAD-003", Level::Must, "9.13.2", bytes_as_a_result).about(
        "A client ends a call that is answered by the bytes of a copy.",
        HANGS,
    ),
    case("CLI-BAD-004", Level::Should, "9.13.4", huge_packet).about(
        "A client ends a request whose reply announces more bytes than there are.",
        MEMORY,
    ),
    case("CLI-BAD-005", Level::Should, "9.13.4", packet_of_all_bytes).about(
        "A client ends a request whose reply announces 2^64 - 1 bytes.",
        MEMORY,
    ),
    case("CLI-BAD-006", Level::Must, "9.13.5", too_short).about(
        "A client ends a request whose reply holds less than its values need.",
        HANGS,
    ),
    case("CLI-BAD-007", Level::Should, "9.13.6", too_long).about(
        "A client ends a request whose reply holds more than its values.",
        HANGS,
    ),
    case("CLI-BAD-008", Level::Must, "9.13.7", many_values).about(
        "A client ends a request whose reply announces more values than it holds.",
        MEMORY,
    ),
    case("CLI-BAD-009", Level::Should, "9.13.8", negative_count).about(
        "A client ends a request whose reply announces a negative number of values.",
        HANGS,
    ),
    case("CLI-BAD-010", Level::Must, "9.13.7", long_text).about(
        "A client ends a request whose reply announces a longer text than it holds.",
        MEMORY,
    ),
    case("CLI-BAD-011", Level::Should, "9.13.8", huge_text).about(
        "A client ends a request whose reply announces a text of 2^40 or of 2^63 bytes.",
        MEMORY,
    ),
    case("CLI-BAD-012", Level::Must, "9.13.7", many_dimensions).about(
        "A client ends a request whose reply holds a tensor of more dimensions than fit.",
        MEMORY,
    ),
    case("CLI-BAD-013", Level::Should, "9.13.8", negative_dimensions).about(
        "A client ends a request whose reply holds a tensor of a negative number of dimensions.",
        MEMORY,
    ),
    case("CLI-BAD-014", Level::Must, "9.13.9", unknown_type).about(
        "A client ends a request whose reply holds a value of an unknown type.",
        HANGS,
    ),
    case("CLI-BAD-015", Level::Should, "9.13.11", no_values)
        .about("A client ends a call whose result holds no values.", HANGS),
    case("CLI-BAD-016", Level::Must, "9.13.10", too_many_values).about(
        "A client ends a call whose result holds a value too much.",
        HANGS,
    ),
    case(
        "CLI-BAD-017",
        Level::Must,
        "9.13.10",
        tensor_without_a_handle,
    )
    .about(
        "A client ends a call whose result is a tensor without a handle.",
        HANGS,
    ),
    case(
        "CLI-BAD-018",
        Level::Should,
        "9.13.11",
        other_type_than_announced,
    )
    .about(
        "A client ends a call whose result is of another type than stands before it.",
        HANGS,
    ),
    case("CLI-BAD-019", Level::Must, "9.13.12", number_for_a_function).about(
        "A client ends the question for a function that is answered by a number.",
        HANGS,
    ),
    case("CLI-BAD-020", Level::Must, "9.13.12", two_functions).about(
        "A client ends the question for a function that is answered by two pointers.",
        HANGS,
    ),
];

/// Answers a call by these bytes, and checks that the client says that it failed. The connection stays
/// open, so that it has to find out by itself.
fn answered(client: &Client, bytes: &[u8]) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    host.until_call(Name::Give)?;
    host.served.packets.wire.send_whole(bytes);
    host.abandoned()?;
    rig.failed("give").map(drop)
}

/// A return packet of this body.
fn reply(body: &[u8]) -> Vec<u8> {
    by_hand::packet(PacketCode::RETURN, body)
}

/// A count, and what is to follow it.
fn counted(count: i32, values: &[Vec<u8>]) -> Vec<u8> {
    [&count.to_le_bytes(), values.concat().as_slice()].concat()
}

fn unknown_code(client: &Client) -> Outcome {
    for code in [99, -1] {
        let body = by_hand::sequence(&[by_hand::none()]);
        answered(client, &by_hand::packet(PacketCode(code), &body))?;
    }
    Ok(())
}

fn request_as_a_reply(client: &Client) -> Outcome {
    answered(client, &by_hand::call(0x1000, &[by_hand::int(1)]))
}

fn bytes_as_a_result(client: &Client) -> Outcome {
    answered(
        client,
        &by_hand::packet(PacketCode::COPY_ACK, &[1, 2, 3, 4]),
    )
}

/// A reply whose first bytes are as they should be, in a packet of this length.
fn of_length(length: u64) -> Vec<u8> {
    let right = by_hand::result(INT, by_hand::int(5));
    [&length.to_le_bytes(), &right[8..]].concat()
}

fn huge_packet(client: &Client) -> Outcome {
    answered(client, &of_length(1 << 62))
}

fn packet_of_all_bytes(client: &Client) -> Outcome {
    answered(client, &of_length(u64::MAX))
}

fn too_short(client: &Client) -> Outcome {
    answered(client, &of_length(20))
}

fn too_long(client: &Client) -> Outcome {
    let body = by_hand::sequence(&[by_hand::int(INT.into()), by_hand::int(5)]);
    answered(client, &reply(&[body, vec![0; 7]].concat()))
}

fn many_values(client: &Client) -> Outcome {
    let values = [by_hand::int(INT.into()), by_hand::int(5)];
    for count in [3, i32::MAX] {
        answered(client, &reply(&counted(count, &values)))?;
    }
    Ok(())
}

fn negative_count(client: &Client) -> Outcome {
    let values = [by_hand::int(INT.into()), by_hand::int(5)];
    answered(client, &reply(&counted(-1, &values)))
}

/// A text that announces this length and has four bytes.
fn text_of(length: u64) -> Vec<u8> {
    by_hand::value(RAW_STR, &[&length.to_le_bytes(), &b"text"[..]].concat())
}

fn long_text(client: &Client) -> Outcome {
    answered(client, &by_hand::result(STR, text_of(5)))
}

fn huge_text(client: &Client) -> Outcome {
    for length in [1 << 40, 1 << 63] {
        answered(client, &by_hand::result(STR, text_of(length)))?;
    }
    Ok(())
}

/// A tensor that announces so many dimensions and has one.
fn tensor_of(dimensions: i32) -> Vec<u8> {
    let address = 0x7000_0000_u64.to_le_bytes();
    let numbers = [1_i32, 0, dimensions].map(i32::to_le_bytes).concat();
    let tail = [6_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat();
    let view = [&address[..], &numbers, &[2, 32, 1, 0], &tail].concat();
    let tensor = by_hand::value(TENSOR_VIEW, &view);
    by_hand::returned(&[by_hand::int(TENSOR.into()), tensor, by_hand::pointer(0)])
}

fn many_dimensions(client: &Client) -> Outcome {
    answered(client, &tensor_of(i32::MAX))
}

fn negative_dimensions(client: &Client) -> Outcome {
    answered(client, &tensor_of(-1))
}

fn unknown_type(client: &Client) -> Outcome {
    for index in [10, -3] {
        let value = by_hand::value(index, &[0; 8]);
        answered(client, &by_hand::returned(&[by_hand::int(1), value]))?;
    }
    Ok(())
}

fn no_values(client: &Client) -> Outcome {
    answered(client, &by_hand::returned(&[]))
}

fn too_many_values(client: &Client) -> Outcome {
    let values = [by_hand::int(INT.into()), by_hand::int(5), by_hand::int(6)];
    answered(client, &by_hand::returned(&values))
}

fn tensor_without_a_handle(client: &Client) -> Outcome {
    let handle = by_hand::pointer(0x7000_0000);
    answered(client, &by_hand::result(TENSOR, handle))
}

fn other_type_than_announced(client: &Client) -> Outcome {
    answered(
        client,
        &by_hand::result(INT, by_hand::raw(RAW_STR, b"text")),
    )?;
    answered(client, &by_hand::result(SHAPE, by_hand::value(NONE, &[])))
}

/// Answers the question for a function by these values.
fn looked_up(client: &Client, values: &[Vec<u8>]) -> Outcome {
    use rpc_proto::{Packet, Syscall};
    let (mut rig, mut host) = client.session(&Script::steps("give"))?;
    host.until("look-up", |_, packet| {
        matches!(packet, Packet::Syscall(Syscall::GetGlobalFunc { name })
            if name == Name::Give.text())
    })?;
    host.served
        .packets
        .wire
        .send_whole(&by_hand::returned(values));
    host.abandoned()?;
    rig.failed("give").map(drop)
}

fn number_for_a_function(client: &Client) -> Outcome {
    looked_up(client, &[by_hand::value(BOOL, &[1, 0, 0, 0, 0, 0, 0, 0])])
}

fn two_functions(client: &Client) -> Outcome {
    looked_up(
        client,
        &[by_hand::pointer(0x2000), by_hand::pointer(0x3000)],
    )
}

//! Tensors: memory on the device, and copies: `CLI-MEM-`.

use rpc_proto::{DataType, Packet, Syscall, TensorView, Value};

use super::by_hand;
use crate::case::{Case, Level, Tag};
use crate::roles::client::{Client, Host, Rig, Script};
use crate::roles::packets::Came;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-MEM-001", Level::Must, "9.11.1", up_and_down).about(
        "A client copies the elements of a tensor to the device and back, as they are.",
        "Results on wrong data are worse than none.",
    ),
    Case::client("CLI-MEM-002", Level::Must, "9.11.2", allocation).about(
        "A client allocates memory of the size of its tensor, and gives type and shape with it.",
        "Devices need them to lay the tensor out.",
    ),
    Case::client("CLI-MEM-003", Level::Should, "9.11.3", freed_once).about(
        "A client frees the memory that it allocated.",
        "A session that makes tensors for days would fill the device.",
    ),
    Case::client("CLI-MEM-004", Level::Must, "9.11.4", no_elements).about(
        "A client can make a tensor without elements, and read it.",
        "Programs compute shapes, and zero occurs.",
    ),
    Case::client("CLI-MEM-005", Level::Must, "9.11.1", large)
        .about(
            "A client copies tensors of many packets of the network.",
            "Weights have megabytes.",
        )
        .tags(&[Tag::Large]),
    Case::client("CLI-MEM-006", Level::Must, "9.11.5", ack_in_pieces).about(
        "A client takes the bytes of a tensor in pieces.",
        "Packets are cut where the network likes.",
    ),
    Case::client("CLI-MEM-007", Level::Should, "9.11.6", small_packets).about(
        "A client sends no packet that is longer than the server says that it takes.",
        "Microcontrollers have kilobytes.",
    ),
    Case::client("CLI-MEM-008", Level::Must, "9.11.7", allocation_fails).about(
        "A client tells its user when there is no memory for a tensor.",
        "Devices are small.",
    ),
    Case::client("CLI-MEM-009", Level::Must, "9.11.7", upload_fails).about(
        "A client tells its user when the server does not take the bytes of a tensor.",
        "The tensor holds something else then.",
    ),
    Case::client("CLI-MEM-010", Level::Must, "9.11.7", download_fails).about(
        "A client tells its user when the server does not give the bytes of a tensor.",
        "There is no result then.",
    ),
    Case::client("CLI-MEM-011", Level::Must, "9.11.8", ack_too_short)
        .about(
            "A client does not take fewer bytes than it asked for as a copy.",
            "The rest would be what was in memory before.",
        )
        .tags(&[Tag::Hostile]),
    Case::client("CLI-MEM-012", Level::Must, "9.11.8", ack_too_long)
        .about(
            "A client does not take more bytes than it asked for.",
            "They would overwrite what lies behind.",
        )
        .tags(&[Tag::Hostile]),
    Case::client(
        "CLI-MEM-013",
        Level::Must,
        "9.11.8",
        return_instead_of_bytes,
    )
    .about(
        "A client does not take a return packet as the answer to a copy from the device.",
        "There are no bytes in it.",
    )
    .tags(&[Tag::Hostile]),
];

/// The elements of the script's tensor: 0, 1, 2, …
fn elements(count: usize) -> Vec<u8> {
    (0..u16::try_from(count).unwrap_or(u16::MAX))
        .flat_map(|number| f32::from(number).to_le_bytes())
        .collect()
}

fn up_and_down(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("tensor"))?;
    let expected = elements(6);
    let came = host.until("copy-to", is_copy_to)?;
    let holds = came.payload == expected;
    let (right, found) = (hex::encode(&expected), hex::encode(&came.payload));
    client.stage.check("elements", holds, right, found)?;
    host.serve(&came)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn is_copy_to(_: &Host, packet: &Packet<'_>) -> bool {
    matches!(packet, Packet::CopyTo { .. })
}

fn is_copy_from(_: &Host, packet: &Packet<'_>) -> bool {
    matches!(packet, Packet::CopyFrom { .. })
}

fn is_allocation(_: &Host, packet: &Packet<'_>) -> bool {
    matches!(
        packet,
        Packet::Syscall(Syscall::AllocData { .. } | Syscall::AllocDataWithScope { .. })
    )
}

fn allocation(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("tensor"))?;
    let came = host.until("allocation", is_allocation)?;
    let holds = match &came.packet {
        Packet::Syscall(Syscall::AllocDataWithScope { tensor, .. }) => {
            let TensorView { dtype, shape, .. } = tensor;
            *dtype == DataType::FLOAT32 && **shape == [6]
        }
        Packet::Syscall(Syscall::AllocData { nbytes, dtype, .. }) => {
            *dtype == DataType::FLOAT32 && *nbytes == 24
        }
        _ => false,
    };
    let expected = "memory for six elements of float32";
    host.served
        .packets
        .came_check("for-the-tensor", holds, expected, None, &came)?;
    host.serve(&came)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn freed_once(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("tensor,call,give"))?;
    host.until_call(crate::roles::client::Name::Give)?;
    let (allocated, left) = (host.allocated, host.memory_left());
    let holds = allocated > 0 && left == 0;
    let found = format!("{left} of {allocated} pieces that are left");
    let expected = "all memory freed two steps later";
    client.stage.check("memory-freed", holds, expected, found)?;
    host.served
        .returned(&rpc_proto::Returned::Value(Value::Int(1)))?;
    host.until_end()?;
    rig.done().map(drop)
}

/// The whole step, with so many elements.
fn tensor_of(client: &Client, elements: usize, limit: Option<i64>) -> Outcome<(Rig, Host)> {
    let script = Script::steps("tensor").with_elements(elements);
    let (rig, mut host) = client.session(&script)?;
    host.packet_limit = limit;
    Ok((rig, host))
}

fn no_elements(client: &Client) -> Outcome {
    let (mut rig, mut host) = tensor_of(client, 0, None)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn large(client: &Client) -> Outcome {
    let (mut rig, mut host) = tensor_of(client, 60_000, None)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn ack_in_pieces(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("tensor,tensor,tensor"))?;
    let body = elements(6);
    let ack = by_hand::packet(rpc_proto::codes::PacketCode::COPY_ACK, &body);
    host.until("copy-from", is_copy_from)?;
    host.served.packets.wire.send_in_pieces(&ack, 1);
    for cut in [12, 20] {
        host.until("copy-from", is_copy_from)?;
        host.served.packets.wire.send_split(&ack, cut);
    }
    host.until_end()?;
    rig.done().map(drop)
}

fn small_packets(client: &Client) -> Outcome {
    const LIMIT: u32 = 1024;
    let (mut rig, mut host) = tensor_of(client, 1000, Some(LIMIT.into()))?;
    let mut longest = 0;
    let mut asked = 0;
    loop {
        let came = host.until("copies", |_, packet| {
            matches!(
                packet,
                Packet::CopyTo { .. } | Packet::CopyFrom { .. } | Packet::Shutdown
            )
        })?;
        if let Packet::CopyFrom { nbytes, .. } = came.packet {
            asked = asked.max(nbytes);
        } else {
            longest = longest.max(came.bytes.len());
        }
        if matches!(came.packet, Packet::Shutdown) {
            break;
        }
        host.serve(&came)?;
    }
    // The length field is not counted.
    let holds = longest <= LIMIT as usize + 8 && asked < LIMIT.into();
    let found =
        format!("a packet of {longest} bytes, and a copy of {asked} bytes that was asked for");
    let expected = format!("no packet of more than {LIMIT} bytes");
    client.stage.check("packets", holds, expected, found)?;
    host.abandoned()?;
    rig.done().map(drop)
}

/// Answers this request by an exception, and checks that the client says so and ends the session.
fn fails_at(client: &Client, wanted: impl Fn(&Host, &Packet<'_>) -> bool) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("tensor"))?;
    host.until("request", wanted)?;
    host.served.exception("no memory on this board")?;
    host.until_end()?;
    let line = rig.failed("tensor")?;
    let said = line.text.unwrap_or_default();
    let holds = said.contains("no memory on this board");
    client
        .stage
        .check("text-of-error", holds, "the text of the exception", said)
}

fn allocation_fails(client: &Client) -> Outcome {
    fails_at(client, is_allocation)
}

fn upload_fails(client: &Client) -> Outcome {
    fails_at(client, is_copy_to)
}

fn download_fails(client: &Client) -> Outcome {
    fails_at(client, is_copy_from)
}

/// Answers the copy from the device by these bytes, and checks that the client says that it failed.
fn answered_wrongly(client: &Client, answer: &[u8]) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("tensor"))?;
    let _: Came = host.until("copy-from", is_copy_from)?;
    host.served.packets.wire.send_whole(answer);
    host.abandoned()?;
    rig.failed("tensor").map(drop)
}

fn ack_of(count: usize) -> Vec<u8> {
    by_hand::packet(rpc_proto::codes::PacketCode::COPY_ACK, &elements(count))
}

fn ack_too_short(client: &Client) -> Outcome {
    answered_wrongly(client, &ack_of(5))
}

fn ack_too_long(client: &Client) -> Outcome {
    answered_wrongly(client, &ack_of(7))
}

fn return_instead_of_bytes(client: &Client) -> Outcome {
    answered_wrongly(client, &by_hand::returned(&[by_hand::none()]))
}

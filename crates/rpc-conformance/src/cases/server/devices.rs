//! Devices and streams: `SRV-DEV-`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{Device, DeviceAttr, DeviceType, OwnedValue, Syscall, Value};

use super::by_hand as hand;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-DEV-001", Level::Must, "7.1.1", processor_exists).about(
        "The processor (device type 1) exists, under any number.",
        "Clients look before they use a device.",
    ),
    Case::server("SRV-DEV-002", Level::Must, "7.1.2", others_exist_or_not).about(
        "Whether a device of another known type exists is answered by 1 or 0, never by an exception.",
        "That a device is missing is no failure when it was asked whether it is there.",
    ),
    Case::server("SRV-DEV-003", Level::Must, "7.1.3", attributes_of_missing).about(
        "Other attributes of a device that does not exist are answered by an exception, and the session goes on.",
        "A made-up number would be taken for that of a device.",
    ),
    Case::server("SRV-DEV-004", Level::Must, "7.1.4", attributes_of_processor).about(
        "Each attribute of the processor is answered by none, an integer or a text.",
        "Clients know no other answers.",
    ),
    Case::server("SRV-DEV-005", Level::Must, "7.1.5", unknown_attribute).about(
        "An attribute of no known number is answered by none or an exception, and the session goes on.",
        "New versions ask for more.",
    ),
    Case::server("SRV-DEV-006", Level::Should, "7.1.6", unknown_type)
        .about(
            "A device of no known type is answered by 0 or an exception, and the session goes on.",
            "New kinds of devices come with every version.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-DEV-007", Level::Must, "7.1.7", set_device).about(
        "The processor can be made current; a device that does not exist cannot.",
        "Clients do so before they measure.",
    ),
    Case::server("SRV-DEV-008", Level::Must, "7.1.8", total_memory).about(
        "The total memory of the processor is a positive integer, or none where it is not known.",
        "Clients choose by it what they send.",
    ),
    Case::server("SRV-DEV-009", Level::Must, "7.4.1", default_stream).about(
        "The default stream of the processor can be synchronized, as a null pointer and as none.",
        "Clients do so after each copy.",
    ),
    Case::server("SRV-DEV-010", Level::Must, "7.4.2", life_of_a_stream).about(
        "A stream can be made, made current, synchronized and freed.",
        "A null pointer is a stream, too, where a device has only one.",
    ),
    Case::server("SRV-DEV-011", Level::Must, "7.4.3", current_stream).about(
        "The current stream is a pointer.",
        "Clients put it back afterwards.",
    ),
    Case::server("SRV-DEV-012", Level::Must, "7.4.4", streams_of_missing).about(
        "Streams of a device that does not exist are answered by an exception, and the session goes on.",
        "Work on a stream that there is not never gets done.",
    ),
    Case::server("SRV-DEV-013", Level::Must, "7.1.9", wrong_arguments).about(
        "A device syscall with arguments of the wrong type is answered by an exception, and the session goes on.",
        "A client with a mistake must learn of it.",
    ),
];

fn attr(session: &mut Session, check: &str, device: Device, attr: i32) -> Outcome<OwnedValue> {
    let attr = DeviceAttr(attr);
    session.syscall(check, Syscall::GetAttr { device, attr })
}

fn processor_exists(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for id in [0, 1, 5] {
        let check = format!("cpu-{id}");
        let found = attr(&mut session, &check, Device::cpu(id), 0)?;
        let holds = found == Value::Int(1);
        session.stage().check(
            &format!("{check}-exists"),
            holds,
            "1",
            format_args!("{found:?}"),
        )?;
    }
    Ok(())
}

/// Kinds of devices that servers of every version know, but the processor.
const ASKED: [i32; 8] = [2, 4, 7, 8, 10, 12, 15, 16];

fn others_exist_or_not(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for kind in ASKED {
        let check = format!("type-{kind}");
        let found = attr(&mut session, &check, Device::new(DeviceType(kind), 0), 0)?;
        let holds = matches!(found, Value::Int(0 | 1));
        let name = format!("{check}-exists-or-not");
        session
            .stage()
            .check(&name, holds, "0 or 1", format_args!("{found:?}"))?;
    }
    Ok(())
}

/// A device that the server says it does not have.
pub(super) fn missing(session: &mut Session) -> Outcome<Device> {
    for kind in ASKED {
        let device = Device::new(DeviceType(kind), 0);
        if attr(session, "look-for-a-missing-device", device, 0)? == Value::Int(0) {
            return Ok(device);
        }
    }
    Err(crate::stage::Stop::Unsupported(
        "the server has every kind of device".to_owned(),
    ))
}

fn attributes_of_missing(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let device = missing(&mut session)?;
    for number in [1, 2, 5, 14] {
        let attr = DeviceAttr(number);
        let check = format!("attribute-{number}");
        session.expect_refused_syscall(&check, Syscall::GetAttr { device, attr })?;
    }
    Ok(())
}

fn attributes_of_processor(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for number in 1..=16 {
        let check = format!("attribute-{number}");
        let found = attr(&mut session, &check, Device::cpu(0), number)?;
        let holds = matches!(found, Value::None | Value::Int(_) | Value::Str(_));
        let name = format!("{check}-type");
        session.stage().check(
            &name,
            holds,
            "none, an integer or a text",
            format_args!("{found:?}"),
        )?;
    }
    Ok(())
}

/// Asks for an attribute, and takes one of these or an exception.
fn expect_attr(
    session: &mut Session,
    check: &str,
    device: (i32, i32),
    number: i64,
    allowed: &[Vec<u8>],
) -> Outcome {
    let args = [hand::device(device.0, device.1), hand::int(number)];
    session
        .packets
        .wire
        .send(&hand::syscall(PacketCode::DEV_GET_ATTR, &args));
    let came = session.packets.packet(check)?;
    let holds =
        matches!(came.packet, rpc_proto::Packet::Exception { .. }) || allowed.contains(&came.bytes);
    let words = "an exception, or an answer that says that there is nothing";
    session
        .packets
        .came_check(check, holds, words, None, &came)?;
    session.expect_goes_on(check)
}

fn unknown_attribute(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let none = [hand::returned(&[hand::none()])];
    for number in [77, 1000, -1, i64::from(i32::MAX)] {
        expect_attr(
            &mut session,
            &format!("attribute-{number}"),
            (1, 0),
            number,
            &none,
        )?;
    }
    Ok(())
}

fn unknown_type(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let zero = [hand::returned(&[hand::int(0)])];
    for kind in [99, 0, 127] {
        expect_attr(&mut session, &format!("type-{kind}"), (kind, 0), 0, &zero)?;
    }
    Ok(())
}

fn set_device(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.expect_done(
        "processor",
        Syscall::SetDevice {
            device: Device::cpu(0),
        },
    )?;
    let device = missing(&mut session)?;
    session
        .expect_refused_syscall("missing", Syscall::SetDevice { device })
        .map(drop)
}

fn total_memory(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let found = attr(&mut session, "attribute", Device::cpu(0), 14)?;
    let holds = matches!(found, Value::None | Value::Int(1..));
    let stage = session.stage();
    stage.check(
        "positive",
        holds,
        "a positive integer, or none",
        format_args!("{found:?}"),
    )
}

fn default_stream(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let device = Device::cpu(0);
    session.expect_done("as-pointer", Syscall::StreamSync { device, stream: 0 })?;
    let args = [hand::device(1, 0), hand::none()];
    session
        .packets
        .wire
        .send(&hand::syscall(PacketCode::DEV_STREAM_SYNC, &args));
    session.expect_void("as-none")?;
    session.expect_goes_on("as-none")
}

fn life_of_a_stream(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let device = Device::cpu(0);
    let stream = session.pointer("made", Syscall::CreateStream { device })?;
    session.expect_done("current", Syscall::SetStream { device, stream })?;
    session.expect_done("synchronized", Syscall::StreamSync { device, stream })?;
    session.expect_done("default-again", Syscall::SetStream { device, stream: 0 })?;
    session.expect_done("freed", Syscall::FreeStream { device, stream })?;
    session.expect_goes_on("freed")
}

fn current_stream(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let device = Device::cpu(0);
    let before = session.pointer("current", Syscall::GetCurrentStream { device })?;
    session.expect_done(
        "put-back",
        Syscall::SetStream {
            device,
            stream: before,
        },
    )?;
    let after = session.pointer("current-again", Syscall::GetCurrentStream { device })?;
    session
        .stage()
        .check("the-same", after == before, before, after)
}

fn streams_of_missing(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let device = missing(&mut session)?;
    let stream = 0;
    session.expect_refused_syscall("made", Syscall::CreateStream { device })?;
    session.expect_refused_syscall("current", Syscall::SetStream { device, stream })?;
    session.expect_refused_syscall("asked", Syscall::GetCurrentStream { device })?;
    session.expect_refused_syscall("synchronized", Syscall::StreamSync { device, stream })?;
    session
        .expect_refused_syscall("freed", Syscall::FreeStream { device, stream })
        .map(drop)
}

fn wrong_arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let text = || hand::raw(hand::RAW_STR, b"cpu");
    let requests = [
        (
            "integer-for-a-device",
            PacketCode::DEV_SET_DEVICE,
            vec![hand::int(1)],
        ),
        (
            "attribute-of-none",
            PacketCode::DEV_GET_ATTR,
            vec![hand::none(), hand::int(0)],
        ),
        (
            "text-for-an-attribute",
            PacketCode::DEV_GET_ATTR,
            vec![hand::device(1, 0), text()],
        ),
        (
            "text-for-a-stream",
            PacketCode::DEV_SET_STREAM,
            vec![hand::device(1, 0), text()],
        ),
        (
            "text-for-an-address",
            PacketCode::DEV_FREE_DATA,
            vec![hand::device(1, 0), text()],
        ),
        ("text-for-a-handle", PacketCode::FREE_HANDLE, vec![text()]),
        (
            "integer-for-a-handle",
            PacketCode::FREE_HANDLE,
            vec![hand::int(0)],
        ),
        (
            "integer-for-a-name",
            PacketCode::GET_GLOBAL_FUNC,
            vec![hand::int(5)],
        ),
        (
            "none-for-a-name",
            PacketCode::GET_GLOBAL_FUNC,
            vec![hand::none()],
        ),
    ];
    for (check, code, args) in requests {
        session.packets.wire.send(&hand::syscall(code, &args));
        session.expect_exception_only(check)?;
    }
    Ok(())
}

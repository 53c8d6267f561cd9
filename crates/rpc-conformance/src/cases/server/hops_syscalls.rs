//! Sessions on the next server: syscalls that pass: `SRV-HOP-10`.

use rpc_proto::{DataType, DeviceAttr, Packet, Syscall, TensorView, Value};

use super::by_hand as hand;
use super::hop::Hop;
use super::hops_traffic::{FAR, tensor};
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-HOP-104", Level::Must, "6.3.8", look_ups).about(
        "Look-ups reach the next server, and their answers the client, also null.",
        "Functions are those of the last server.",
    ),
    Case::server("SRV-HOP-105", Level::Must, "6.3.8", memory_syscalls).about(
        "Allocating and freeing reach the next server as they are.",
        "Memory is that of the last server.",
    ),
    Case::server("SRV-HOP-106", Level::Must, "6.3.8", stream_syscalls).about(
        "Syscalls on streams and on the current device reach the next server as they are.",
        "Devices are those of the last server.",
    ),
    Case::server("SRV-HOP-107", Level::Must, "6.3.8", attributes).about(
        "Attributes of devices are those that the next server tells: numbers, texts and none.",
        "Devices are those of the last server.",
    ),
];

fn look_ups(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    for (name, handle) in [
        ("far.function", 0x1230),
        ("no.such.function", 0),
        ("世界", 7),
    ] {
        let request = Packet::Syscall(Syscall::GetGlobalFunc { name: name.into() });
        hop.expect_passed(name, &request, &[])?;
        hop.next.value(Value::Pointer(handle))?;
        let exact = [hand::returned(&[hand::pointer(handle)])];
        hop.session
            .expect_bytes(&format!("{name}-answer"), "the same pointer", &exact)?;
    }
    Ok(())
}

/// Passes syscalls, which are answered by nothing or by a pointer.
fn expect_syscalls(
    server: &Server,
    syscalls: Vec<(&str, Syscall<'static>, Option<u64>)>,
) -> Outcome {
    let mut hop = Hop::new(server)?;
    for (check, syscall, pointer) in syscalls {
        hop.expect_passed(check, &Packet::Syscall(syscall), &[])?;
        let (answer, exact) = match pointer {
            Some(address) => (Value::Pointer(address), hand::pointer(address)),
            None => (Value::None, hand::none()),
        };
        hop.next.value(answer)?;
        let exact = [hand::returned(&[exact])];
        hop.session
            .expect_bytes(&format!("{check}-answer"), "the same answer", &exact)?;
    }
    Ok(())
}

fn memory_syscalls(server: &Server) -> Outcome {
    let allocate = Syscall::AllocData {
        device: FAR,
        nbytes: 1 << 33,
        alignment: 128,
        dtype: DataType::FLOAT32,
    };
    let empty = TensorView {
        data: 0,
        ..tensor()
    };
    let scoped = |scope: Option<&'static str>| Syscall::AllocDataWithScope {
        tensor: empty.clone(),
        scope: scope.map(Into::into),
    };
    let to = TensorView {
        data: 0x40,
        ..tensor()
    };
    let among = Syscall::CopyAmong {
        from: tensor(),
        to,
        stream: 9,
    };
    let syscalls = vec![
        ("bytes", allocate, Some(0x7000)),
        ("tensor", scoped(None), Some(0x8000)),
        (
            "tensor-with-scope",
            scoped(Some("global.texture")),
            Some(u64::MAX),
        ),
        ("copied-among", among, None),
        (
            "freed",
            Syscall::FreeData {
                device: FAR,
                data: 0x7000,
            },
            None,
        ),
    ];
    expect_syscalls(server, syscalls)
}

fn stream_syscalls(server: &Server) -> Outcome {
    let (device, stream) = (FAR, 0xbeef_0000_0001);
    let syscalls = vec![
        ("device-set", Syscall::SetDevice { device }, None),
        (
            "stream-made",
            Syscall::CreateStream { device },
            Some(stream),
        ),
        ("stream-set", Syscall::SetStream { device, stream }, None),
        (
            "stream-asked",
            Syscall::GetCurrentStream { device },
            Some(stream),
        ),
        (
            "stream-synchronized",
            Syscall::StreamSync { device, stream },
            None,
        ),
        ("stream-freed", Syscall::FreeStream { device, stream }, None),
    ];
    expect_syscalls(server, syscalls)
}

fn attributes(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let samples = [
        (0, Value::Int(1), hand::int(1)),
        (1, Value::Int(1024), hand::int(1024)),
        (
            5,
            Value::from("a far device"),
            hand::raw(hand::RAW_STR, b"a far device"),
        ),
        (
            8,
            Value::from("[1, 2]"),
            hand::raw(hand::RAW_STR, b"[1, 2]"),
        ),
        (13, Value::None, hand::none()),
    ];
    for (number, answer, exact) in samples {
        let attr = DeviceAttr(number);
        let check = format!("attribute-{number}");
        let request = Packet::Syscall(Syscall::GetAttr { device: FAR, attr });
        hop.expect_passed(&check, &request, &[])?;
        hop.next.value(answer.clone())?;
        let found = hop.session.value(&format!("{check}-answer"))?;
        let name = format!("{check}-as-it-is");
        let expected = format!("{answer:?}, as {}", hex::encode(&exact));
        hop.session
            .stage()
            .check(&name, found == answer, expected, format_args!("{found:?}"))?;
    }
    Ok(())
}

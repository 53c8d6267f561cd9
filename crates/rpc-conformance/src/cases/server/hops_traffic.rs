//! Sessions on the next server: what passes: `SRV-HOP-1`.

use rpc_proto::{
    DataType, Device, DeviceType, Packet, Returned, Shape, Syscall, TensorView, Value,
};

use super::by_hand as hand;
use super::exchange::pattern;
use super::hop::Hop;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::served::called;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-HOP-101", Level::Must, "6.3.6", arguments).about(
        "Arguments of every type reach the next server with the same values.",
        "A server in the middle knows nothing of what they mean at the far end.",
    ),
    Case::server("SRV-HOP-102", Level::Must, "6.3.6", results).about(
        "Results of every type reach the client with the same values.",
        "A server in the middle knows nothing of what they mean at the far end.",
    ),
    Case::server("SRV-HOP-103", Level::Must, "6.3.7", handles).about(
        "Handles are those of the last server, in both directions, and are given up there.",
        "Only the last server knows what they stand for.",
    ),
    Case::server("SRV-HOP-108", Level::Must, "6.3.9", copies).about(
        "Copies reach the next server with their bytes, and its bytes reach the client.",
        "Tensors are those of the last server.",
    ),
    Case::server("SRV-HOP-109", Level::Should, "6.3.10", copies_with_offsets).about(
        "A copy's byte offset reaches the next server.",
        "Pieces of a large tensor land in their places by it.",
    ),
    Case::server("SRV-HOP-110", Level::Must, "6.3.9", large_copies)
        .about(
            "Copies of four mebibytes pass in both directions.",
            "Tensors are as large.",
        )
        .tags(&[Tag::Large]),
    Case::server("SRV-HOP-111", Level::Must, "6.3.6", large_values)
        .about(
            "A text and bytes of a mebibyte pass in both directions.",
            "So files are sent.",
        )
        .tags(&[Tag::Large]),
    Case::server("SRV-HOP-112", Level::Must, "6.3.11", exceptions).about(
        "Exceptions of the next server reach the client with their text, and the session goes on.",
        "The text is all that the user sees of what happened on the device.",
    ),
    Case::server("SRV-HOP-113", Level::Quirk, "6.3.17", words_of_a_hop).about(
        "Before the text of the next server stands `RPCError: Error caught from RPC call:` and a line end.",
        "The reference's servers say so for each hop.",
    ),
    Case::server("SRV-HOP-114", Level::Must, "6.3.11", refused_copies).about(
        "A copy that the next server refuses is an exception for the client, in both directions.",
        "A client that takes it for done computes with other data.",
    ),
    Case::server("SRV-HOP-115", Level::Must, "6.3.7", tensors_of_next).about(
        "Tensors, as arguments and as results, keep address, device, type, shape and byte offset.",
        "They lie at the last server.",
    ),
];

/// A device that only the next server knows.
pub(super) const FAR: Device = Device::new(DeviceType(12), 3);

pub(super) fn tensor() -> TensorView {
    TensorView {
        data: 0x7fb1_5400_f480,
        device: FAR,
        dtype: DataType::FLOAT32,
        shape: Shape::from(&[2, 3][..]),
        byte_offset: 0,
    }
}

fn arguments(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let args = vec![
        Value::None,
        Value::Int(i64::MIN),
        Value::Bool(true),
        Value::Float(-0.1),
        Value::Pointer(0xdead_beef),
        Value::DataType(DataType::FLOAT32),
        Value::Device(FAR),
        Value::from(""),
        Value::from("short"),
        Value::from("longer than seven, 世界"),
        Value::from(vec![]),
        Value::from(vec![0, 255]),
        Value::from(vec![7; 100]),
        Value::Object(0x1110),
        Value::Module(0x2220),
        Value::Int(5),
    ];
    for (place, arg) in args.iter().enumerate() {
        let check = format!("argument-{place}");
        hop.session.send_call(0x1230, vec![arg.clone()])?;
        let came = hop.request(&check)?;
        let holds = called(&came) == Some((0x1230, vec![arg.clone()]));
        let words = format!("a call of 0x1230 with {arg:?}");
        hop.next
            .packets
            .came_check(&check, holds, &words, None, &came)?;
        hop.next.returned(&Returned::Value(Value::None))?;
        hop.session.returned("answered")?;
    }
    hop.session.send_call(0x1230, args.clone())?;
    let came = hop.request("all-at-once")?;
    let holds = called(&came) == Some((0x1230, args));
    hop.next
        .packets
        .came_check("all-in-order", holds, "all arguments", None, &came)?;
    hop.next.returned(&Returned::Value(Value::None))?;
    hop.session.returned("answered-at-last").map(drop)
}

fn results(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let object = |type_index| Returned::Object {
        type_index,
        handle: 0x1110,
    };
    let values = [
        Value::None,
        Value::Int(i64::MAX),
        Value::Bool(false),
        Value::Float(2.5),
        Value::Pointer(0xdead_beef),
        Value::DataType(DataType::FLOAT32),
        Value::Device(FAR),
        Value::from(""),
        Value::from("short"),
        Value::from("longer than seven, 世界"),
        Value::from(vec![]),
        Value::from(vec![0, 255]),
        Value::from(vec![7; 100]),
        Value::Function(0x2220),
        Value::Module(0x3330),
    ];
    let all = values
        .map(Returned::Value)
        .into_iter()
        .chain([object(69), object(71), object(224)]);
    for (place, returned) in all.enumerate() {
        let check = format!("result-{place}");
        hop.session.send_call(0x1230, vec![])?;
        hop.request("call")?;
        hop.next.returned(&returned)?;
        let found = hop.session.returned(&check)?;
        let name = format!("{check}-as-it-is");
        let expected = format!("{returned:?}");
        hop.session.stage().check(
            &name,
            found == returned,
            expected,
            format_args!("{found:?}"),
        )?;
    }
    Ok(())
}

fn handles(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    // As the last server would give them: small ones, addresses, and the greatest.
    for handle in [1, 0x559f_26c9_8550, u64::MAX - 1] {
        hop.session.send_call(handle, vec![Value::Object(handle)])?;
        let came = hop.request("call")?;
        let holds = called(&came) == Some((handle, vec![Value::Object(handle)]));
        let words = format!("a call of {handle:#x} with that object");
        hop.next
            .packets
            .came_check("same-handles", holds, &words, None, &came)?;
        hop.next
            .returned(&Returned::Value(Value::Function(handle)))?;
        let found = hop.session.returned("result")?;
        let expected = Returned::Value(Value::Function(handle));
        let holds = found == expected;
        hop.session
            .stage()
            .check("same-result", holds, handle, format_args!("{found:?}"))?;
        let free = Packet::Syscall(Syscall::FreeHandle { handle, kind: None });
        hop.expect_passed("given-up", &free, &[])?;
        hop.next.void()?;
        hop.session.expect_void("given-up-answered")?;
    }
    Ok(())
}

/// Passes one copy in each direction.
fn expect_copies(hop: &mut Hop, tensor: &TensorView, bytes: &[u8]) -> Outcome {
    let nbytes = bytes.len() as u64;
    let to = Packet::CopyTo {
        tensor: tensor.clone(),
        nbytes,
    };
    hop.expect_passed("to", &to, bytes)?;
    hop.next.void()?;
    hop.session.expect_void("to-answered")?;
    let from = Packet::CopyFrom {
        tensor: tensor.clone(),
        nbytes,
    };
    hop.expect_passed("from", &from, &[])?;
    hop.next.copy_ack(bytes)?;
    let came = hop.session.packets.packet("from-answered")?;
    let holds = matches!(came.packet, Packet::CopyAck { .. }) && came.payload == bytes;
    let words = format!("a copy ack with the {nbytes} bytes");
    hop.session
        .packets
        .came_check("from-bytes", holds, &words, None, &came)
}

fn copies(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    expect_copies(&mut hop, &tensor(), &pattern(24, 1))?;
    let processor = TensorView {
        device: Device::cpu(0),
        ..tensor()
    };
    expect_copies(&mut hop, &processor, &pattern(24, 2))
}

fn copies_with_offsets(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let piece = TensorView {
        byte_offset: 8,
        ..tensor()
    };
    expect_copies(&mut hop, &piece, &pattern(16, 3))
}

fn large_copies(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let len = (4 << 20) + 4;
    let large = TensorView {
        shape: Shape::from(&[len / 4][..]),
        ..tensor()
    };
    expect_copies(
        &mut hop,
        &large,
        &pattern(usize::try_from(len).unwrap_or_default(), 4),
    )
}

fn large_values(server: &Server) -> Outcome {
    const LEN: usize = (1 << 20) + 1;
    let mut hop = Hop::new(server)?;
    let text: String = ('a'..='z').cycle().take(LEN).collect();
    for value in [Value::from(text), Value::from(pattern(LEN, 5))] {
        hop.session.send_call(0x1230, vec![value.clone()])?;
        let came = hop.request("call")?;
        let holds = called(&came) == Some((0x1230, vec![value.clone()]));
        let stage = hop.session.stage();
        stage.check(
            "argument",
            holds,
            "all of it",
            format_args!("{} bytes", came.bytes.len()),
        )?;
        let returned = Returned::Value(value);
        hop.next.returned(&returned)?;
        let holds = hop.session.returned("result")? == returned;
        stage.check("result-as-it-is", holds, "all of it", "another value")?;
    }
    Ok(())
}

fn exceptions(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    for text in ["abc", "two\nlines, 世界", "RPCError: as said before"] {
        hop.session.send_call(0x1230, vec![])?;
        hop.request("call")?;
        hop.next.exception(text)?;
        let found = hop.session.expect_exception("of-a-call")?;
        hop.session
            .stage()
            .check("of-a-call-text", found.contains(text), text, found)?;
    }
    let device = FAR;
    hop.session
        .packets
        .send(&Packet::Syscall(Syscall::CreateStream { device }))?;
    hop.request("syscall")?;
    hop.next.exception("no stream")?;
    let found = hop.session.expect_exception("of-a-syscall")?;
    hop.session.stage().check(
        "of-a-syscall-text",
        found.contains("no stream"),
        "no stream",
        found,
    )?;
    hop.session.send_call(0x1230, vec![])?;
    hop.request("next-call")?;
    hop.next.returned(&Returned::Value(Value::Int(5)))?;
    let found = hop.session.returned("next-result")?;
    let holds = found == Returned::Value(Value::Int(5));
    hop.session
        .stage()
        .check("goes-on", holds, "5", format_args!("{found:?}"))
}

fn words_of_a_hop(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    hop.session.send_call(0x1230, vec![])?;
    hop.request("call")?;
    hop.next.exception("abc")?;
    let exact = [hand::exception(
        "RPCError: Error caught from RPC call:\nabc",
    )];
    hop.session
        .expect_bytes("text", "the reference's words and the text", &exact)
}

fn refused_copies(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let nbytes = 24;
    let to = Packet::CopyTo {
        tensor: tensor(),
        nbytes,
    };
    hop.expect_passed("to", &to, &pattern(24, 6))?;
    hop.next.exception("no room")?;
    let found = hop.session.expect_exception("to-told")?;
    hop.session
        .stage()
        .check("to-text", found.contains("no room"), "no room", found)?;
    let from = Packet::CopyFrom {
        tensor: tensor(),
        nbytes,
    };
    hop.expect_passed("from", &from, &[])?;
    hop.next.exception("not there")?;
    let found = hop.session.expect_exception("from-told")?;
    hop.session
        .stage()
        .check("from-text", found.contains("not there"), "not there", found)
}

fn tensors_of_next(server: &Server) -> Outcome {
    let mut hop = Hop::new(server)?;
    let scalar = TensorView {
        data: 0,
        dtype: DataType::INT8,
        shape: Shape::default(),
        ..tensor()
    };
    let view = TensorView {
        byte_offset: 16,
        ..tensor()
    };
    for tensor in [tensor(), scalar, view] {
        hop.session
            .send_call(0x1230, vec![Value::Tensor(tensor.clone())])?;
        let came = hop.request("call")?;
        let holds = called(&came) == Some((0x1230, vec![Value::Tensor(tensor.clone())]));
        let words = format!("{tensor:?}");
        hop.next
            .packets
            .came_check("argument", holds, &words, None, &came)?;
        let returned = Returned::Tensor {
            tensor,
            handle: 0x4440,
        };
        hop.next.returned(&returned)?;
        let found = hop.session.returned("result")?;
        let holds = found == returned;
        hop.session
            .stage()
            .check("result-as-it-is", holds, words, format_args!("{found:?}"))?;
    }
    Ok(())
}

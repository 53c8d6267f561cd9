//! Copies to and from the memory of a device: `SRV-COPY-0`.

use rpc_proto::{DataType, Packet, Shape, Syscall, TensorView};

use super::by_hand as hand;
use super::exchange::pattern;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-COPY-001", Level::Must, "7.3.1", every_size).about(
        "Bytes come back as they were sent, whatever their number: one, odd ones, powers of two and beside them.",
        "Buffers that are cut or rounded show at their edges.",
    ),
    Case::server("SRV-COPY-002", Level::Must, "7.3.2", no_bytes).about(
        "Copies of no bytes are answered like others.",
        "Tensors with a size of 0 are tensors.",
    ),
    Case::server("SRV-COPY-003", Level::Must, "7.3.1", sixteen_mebibytes)
        .about(
            "Sixteen mebibytes go both ways.",
            "A layer of a model is as large.",
        )
        .tags(&[Tag::Large]),
    Case::server("SRV-COPY-004", Level::Must, "7.3.3", offset_to).about(
        "A copy to the server begins at the byte offset, and changes nothing before and behind.",
        "Large tensors are sent in pieces.",
    ),
    Case::server("SRV-COPY-005", Level::Must, "7.3.3", offset_from).about(
        "A copy from the server begins at the byte offset.",
        "Large tensors are fetched in pieces.",
    ),
    Case::server("SRV-COPY-006", Level::Must, "7.3.4", part_of_a_tensor).about(
        "A copy may be of fewer bytes than the tensor has.",
        "Large tensors are copied in pieces.",
    ),
    Case::server("SRV-COPY-007", Level::Must, "7.3.5", exact_answers).about(
        "A copy to the server is answered by nothing, one from it by the bytes and nothing else.",
        "There is no length in the answer but that of the packet.",
    ),
    Case::server("SRV-COPY-008", Level::Must, "7.3.1", cut_in_pieces).about(
        "The bytes of a copy may come in pieces, cut anywhere.",
        "Where a stream is cut is not in the hands of who writes to it.",
    ),
    Case::server("SRV-COPY-009", Level::Must, "7.3.6", without_waiting).about(
        "Copies that are sent without waiting are done and answered in their order.",
        "Pieces of a large tensor are sent so.",
    ),
    Case::server("SRV-COPY-010", Level::Must, "7.3.7", missing_device).about(
        "A copy to or from a device that does not exist is answered by an exception, and the session goes on behind its bytes.",
        "What is left of a copy that was refused must not be taken for the next request.",
    ),
    Case::server("SRV-COPY-011", Level::Must, "7.3.8", of_returned_tensors)
        .about(
            "Tensors that a call returned can be copied from and to, at their address.",
            "So clients get at the outputs of a model.",
        )
        .functions(&["rpc.test.remote_return_nd"]),
    Case::server("SRV-COPY-012", Level::Must, "7.3.9", among_tensors).about(
        "A copy among tensors copies all of one into another.",
        "It saves the way over the network.",
    ),
    Case::server("SRV-COPY-013", Level::Must, "7.3.9", among_with_offsets).about(
        "A copy among tensors begins at the byte offset of each.",
        "Views into tensors are copied so.",
    ),
    Case::server("SRV-COPY-014", Level::Must, "7.3.10", among_sizes).about(
        "A copy among tensors of different sizes is answered by an exception, and changes nothing.",
        "The rest of the larger one would be read or overwritten.",
    ),
    Case::server("SRV-COPY-015", Level::Must, "7.3.9", among_shapes).about(
        "A copy among tensors of different shapes and the same size is done.",
        "A shape is only a way to look at memory.",
    ),
    Case::server("SRV-COPY-016", Level::Must, "7.3.9", among_without_stream).about(
        "A copy among tensors takes none for the default stream.",
        "Some clients send no stream.",
    ),
    Case::server("SRV-COPY-017", Level::Must, "7.3.1", every_type).about(
        "What is copied is bytes: they come back the same whatever the data type.",
        "A server that converts elements changes them, as NaNs that are not quiet.",
    ),
];

/// A tensor of bytes that looks at a part of another.
fn part(whole: &TensorView, offset: usize, len: usize) -> TensorView {
    TensorView {
        shape: Shape::from(&[i64::try_from(len).unwrap_or(i64::MAX)][..]),
        dtype: DataType::UINT8,
        byte_offset: offset as u64,
        ..whole.clone()
    }
}

fn bytes_tensor(session: &mut Session, bytes: &[u8]) -> Outcome<TensorView> {
    let len = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    session.filled(&[len], DataType::UINT8, bytes)
}

fn every_size(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for len in [
        1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096, 4097, 65_535, 65_536, 65_537,
    ] {
        let bytes = pattern(len, 1);
        let tensor = bytes_tensor(&mut session, &bytes)?;
        session.expect_content(&format!("{len}-bytes"), &tensor, &bytes)?;
        session.release("freed", &tensor)?;
    }
    session.shut_down()
}

fn no_bytes(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.filled(&[8], DataType::UINT8, &[7; 8])?;
    let nothing = part(&tensor, 0, 0);
    session.upload("to", &nothing, &[])?;
    session.expect_content("from", &nothing, &[])?;
    session.upload("to-part-of-more", &tensor, &[])?;
    session.expect_content("unchanged", &tensor, &[7; 8])
}

fn sixteen_mebibytes(server: &Server) -> Outcome {
    const LEN: usize = (16 << 20) + 3;
    let mut session = server.session()?;
    let bytes = pattern(LEN, 2);
    let tensor = bytes_tensor(&mut session, &bytes)?;
    session.expect_content("content", &tensor, &bytes)?;
    session.release("freed", &tensor)
}

fn offset_to(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let mut bytes = vec![0xee; 64];
    let tensor = bytes_tensor(&mut session, &bytes)?;
    for (offset, len) in [(8, 8), (1, 3), (63, 1), (32, 32), (0, 1)] {
        let new = pattern(len, 3);
        let at = TensorView {
            byte_offset: offset as u64,
            ..tensor.clone()
        };
        session.upload(&format!("to-{offset}"), &at, &new)?;
        bytes[offset..offset + len].copy_from_slice(&new);
        session.expect_content(&format!("after-{offset}"), &tensor, &bytes)?;
    }
    Ok(())
}

fn offset_from(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes = pattern(64, 4);
    let tensor = bytes_tensor(&mut session, &bytes)?;
    for (offset, len) in [(8, 8), (1, 3), (63, 1), (32, 32), (0, 64)] {
        let at = TensorView {
            byte_offset: offset as u64,
            ..tensor.clone()
        };
        session.expect_content(&format!("from-{offset}"), &at, &bytes[offset..offset + len])?;
        let check = format!("view-from-{offset}");
        session.expect_content(
            &check,
            &part(&tensor, offset, len),
            &bytes[offset..offset + len],
        )?;
    }
    Ok(())
}

fn part_of_a_tensor(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let mut bytes = pattern(24, 5);
    let tensor = session.filled(&[2, 3], DataType::FLOAT32, &bytes)?;
    session.expect_content("from", &tensor, &bytes[..10])?;
    session.upload("to", &tensor, &[1, 2, 3, 4, 5])?;
    bytes[..5].copy_from_slice(&[1, 2, 3, 4, 5]);
    session.expect_content("rest-unchanged", &tensor, &bytes)
}

fn exact_answers(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[4], DataType::UINT8)?;
    let nbytes = 4;
    let to = Packet::CopyTo {
        tensor: tensor.clone(),
        nbytes,
    };
    session.packets.send_with(&to, &[9, 8, 7, 6])?;
    let nothing = [hand::returned(&[hand::none()])];
    session.expect_bytes("to", "one value, none", &nothing)?;
    session.packets.send(&Packet::CopyFrom { tensor, nbytes })?;
    let ack = [hand::packet(
        rpc_proto::codes::PacketCode::COPY_ACK,
        &[9, 8, 7, 6],
    )];
    session.expect_bytes("from", "the four bytes", &ack)?;
    session.expect_goes_on("from")
}

fn cut_in_pieces(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[9], DataType::UINT8)?;
    let dialect = session.packets.dialect;
    for round in 0..3_u8 {
        let bytes = pattern(9, round);
        let to = Packet::CopyTo {
            tensor: tensor.clone(),
            nbytes: 9,
        };
        let message = crate::roles::packets::encode(&to, &bytes, dialect)?;
        match round {
            0 => session.packets.wire.send_in_pieces(&message, 1),
            // Between the head and the bytes, and inside of the bytes.
            1 => session.packets.wire.send_split(&message, message.len() - 9),
            _ => session.packets.wire.send_split(&message, message.len() - 4),
        }
        session.expect_void("to")?;
        session.expect_content(&format!("round-{round}"), &tensor, &bytes)?;
    }
    Ok(())
}

fn without_waiting(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[256], DataType::UINT8)?;
    let rounds = 20_u8;
    for round in 0..rounds {
        let to = Packet::CopyTo {
            tensor: tensor.clone(),
            nbytes: 256,
        };
        session.packets.send_with(&to, &pattern(256, round))?;
        session.packets.send(&Packet::CopyFrom {
            tensor: tensor.clone(),
            nbytes: 256,
        })?;
    }
    for round in 0..rounds {
        session.expect_void("to")?;
        let code = rpc_proto::codes::PacketCode::COPY_ACK;
        let ack = [hand::packet(code, &pattern(256, round))];
        session.expect_bytes(&format!("round-{round}"), "what was sent before", &ack)?;
    }
    Ok(())
}

fn missing_device(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let device = super::devices::missing(&mut session)?;
    let here = session.filled(&[16], DataType::UINT8, &[5; 16])?;
    let there = TensorView {
        device,
        ..here.clone()
    };
    let nbytes = 16;
    // The bytes look like requests to who reads them as such.
    let bytes = hand::packet(rpc_proto::codes::PacketCode::SHUTDOWN, &[0; 4]);
    let to = Packet::CopyTo {
        tensor: there.clone(),
        nbytes,
    };
    session.packets.send_with(&to, &bytes)?;
    session.expect_exception_only("to")?;
    session.packets.send(&Packet::CopyFrom {
        tensor: there,
        nbytes,
    })?;
    session.expect_exception_only("from")?;
    session.expect_content("memory-stays", &here, &[5; 16])
}

fn of_returned_tensors(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let maker = session.function("rpc.test.remote_return_nd")?;
    let get = session.function_of("get-tensor", maker, vec!["get_arr".into()])?;
    let (tensor, handle) = session.tensor_of("tensor", get, vec![])?;
    session.expect_content("ten-zeros", &tensor, &[0; 40])?;
    let bytes = pattern(40, 6);
    session.upload("written", &tensor, &bytes)?;
    session.expect_content("as-written", &tensor, &bytes)?;
    // It is the function's own tensor.
    let (again, second) = session.tensor_of("tensor-again", get, vec![])?;
    session.expect_content("same-tensor", &again, &bytes)?;
    session.free("freed", handle)?;
    session.free("freed-too", second)
}

fn among(from: &TensorView, to: &TensorView) -> Syscall<'static> {
    Syscall::CopyAmong {
        from: from.clone(),
        to: to.clone(),
        stream: 0,
    }
}

fn among_tensors(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes = pattern(1000, 7);
    let from = bytes_tensor(&mut session, &bytes)?;
    let to = bytes_tensor(&mut session, &[0; 1000])?;
    session.expect_done("copied", among(&from, &to))?;
    session.expect_content("there", &to, &bytes)?;
    session.expect_content("still-here", &from, &bytes)
}

fn among_with_offsets(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes = pattern(64, 8);
    let from = bytes_tensor(&mut session, &bytes)?;
    let to = bytes_tensor(&mut session, &[0; 64])?;
    session.expect_done("copied", among(&part(&from, 16, 8), &part(&to, 40, 8)))?;
    let mut expected = [0; 64];
    expected[40..48].copy_from_slice(&bytes[16..24]);
    session.expect_content("there-and-nothing-else", &to, &expected)?;
    session.expect_done("within-one", among(&part(&from, 0, 8), &part(&from, 56, 8)))?;
    let mut expected = bytes.clone();
    expected.copy_within(0..8, 56);
    session.expect_content("within-one-content", &from, &expected)
}

fn among_sizes(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let from = bytes_tensor(&mut session, &pattern(16, 9))?;
    let to = bytes_tensor(&mut session, &[3; 12])?;
    session.expect_refused_syscall("to-less", among(&from, &to))?;
    session.expect_refused_syscall("to-more", among(&to, &from))?;
    session.expect_content("unchanged", &to, &[3; 12])?;
    session.expect_content("unchanged-too", &from, &pattern(16, 9))
}

fn among_shapes(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes = pattern(24, 10);
    let from = session.filled(&[2, 3], DataType::FLOAT32, &bytes)?;
    let to = session.filled(&[6], DataType::FLOAT32, &[0; 24])?;
    session.expect_done("copied", among(&from, &to))?;
    session.expect_content("there", &to, &bytes)
}

fn among_without_stream(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let from = bytes_tensor(&mut session, &[1, 2, 3, 4])?;
    let to = bytes_tensor(&mut session, &[0; 4])?;
    let view = |tensor: &TensorView| {
        let bytes = hand::tensor(tensor.data, tensor.device, (1, 8, 1), &[4], 0);
        hand::value(hand::TENSOR_VIEW, &bytes)
    };
    let args = [view(&from), view(&to), hand::none()];
    let code = rpc_proto::codes::PacketCode::COPY_AMONG_REMOTE;
    session.packets.wire.send(&hand::syscall(code, &args));
    session.expect_void("copied")?;
    session.expect_content("there", &to, &[1, 2, 3, 4])
}

fn every_type(server: &Server) -> Outcome {
    let mut session = server.session()?;
    // A NaN that is not quiet, as float32 and at the same time as float16 and float64.
    let bytes = [1, 0x7c, 0xa0, 0x7f, 1, 0, 0xf4, 0x7f];
    let types = [
        (DataType::FLOAT32, 2),
        (DataType::FLOAT64, 1),
        (DataType::FLOAT16, 4),
        (DataType::BOOL, 8),
        (DataType::UINT64, 1),
    ];
    for (dtype, count) in types {
        let tensor = session.filled(&[count], dtype, &bytes)?;
        session.expect_content(&dtype.to_string(), &tensor, &bytes)?;
        session.release("freed", &tensor)?;
    }
    Ok(())
}

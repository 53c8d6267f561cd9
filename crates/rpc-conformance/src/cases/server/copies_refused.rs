//! Copies that must not be done: `SRV-COPY-1`.

use rpc_proto::{DataType, Device, Packet, Shape, Syscall, TensorView};

use super::exchange::pattern;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const WHY: &str =
    "What is copied beyond a tensor is somebody else's memory, and its loss shows much later.";

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-COPY-101", Level::Should, "7.3.11", too_many_to)
        .about("A copy to the server of more bytes than the tensor has is refused by an exception, and the session goes on.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-102", Level::Should, "7.3.11", too_many_from)
        .about("A copy from the server of more bytes than the tensor has is refused by an exception, and the session goes on.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-103", Level::Should, "7.3.12", beyond_to)
        .about("A copy into a tensor that is larger than the memory at its address is refused by an exception.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-104", Level::Should, "7.3.12", beyond_from)
        .about("A copy out of a tensor that is larger than the memory at its address is refused by an exception.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-105", Level::Should, "7.3.12", far_offsets)
        .about("Byte offsets that lead out of the memory are refused by an exception, also those that wrap.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-106", Level::Should, "7.3.13", null_addresses)
        .about("Copies at a null pointer are refused by an exception, and the session goes on.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-107", Level::Should, "7.3.13", made_up_addresses)
        .about("Copies at an address that was not given out are refused by an exception, and the session goes on.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-108", Level::Should, "7.3.13", freed_memory)
        .about("Copies at memory that was freed are refused by an exception, and the session goes on.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-109", Level::Should, "7.3.13", among_addresses)
        .about("A copy among tensors, one of which is nowhere, is refused by an exception, and the session goes on.", WHY)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-COPY-110", Level::Should, "7.3.13", argument_addresses)
        .about("A tensor argument that is nowhere is refused by an exception, and the session goes on.", WHY)
        .functions(&["rpc.test.remote_tensor_func"])
        .tags(&[Tag::Hostile]),
];

fn send_to(session: &mut Session, tensor: &TensorView, bytes: &[u8]) -> Outcome {
    let nbytes = bytes.len() as u64;
    let to = Packet::CopyTo {
        tensor: tensor.clone(),
        nbytes,
    };
    session.packets.send_with(&to, bytes)
}

fn send_from(session: &mut Session, tensor: &TensorView, nbytes: u64) -> Outcome {
    session.packets.send(&Packet::CopyFrom {
        tensor: tensor.clone(),
        nbytes,
    })
}

fn at(data: u64, len: i64) -> TensorView {
    TensorView {
        data,
        device: Device::cpu(0),
        dtype: DataType::UINT8,
        shape: Shape::from(&[len][..]),
        byte_offset: 0,
    }
}

/// Some memory with neighbours on both sides, as far as the server puts what is allocated in a row next
/// to each other.
struct Between {
    tensor: TensorView,
    others: [TensorView; 2],
    bytes: Vec<u8>,
}

impl Between {
    fn new(session: &mut Session) -> Outcome<Self> {
        let bytes = pattern(64, 1);
        let before = session.filled(&[64], DataType::UINT8, &bytes)?;
        let tensor = session.filled(&[64], DataType::UINT8, &bytes)?;
        let behind = session.filled(&[64], DataType::UINT8, &bytes)?;
        Ok(Self {
            tensor,
            others: [before, behind],
            bytes,
        })
    }

    fn expect_unchanged(&self, session: &mut Session) -> Outcome {
        session.expect_content("unchanged", &self.tensor, &self.bytes)?;
        for other in &self.others {
            session.expect_content("neighbour-unchanged", other, &self.bytes)?;
        }
        Ok(())
    }
}

fn too_many_to(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let memory = Between::new(&mut session)?;
    for len in [65, 4096, 1 << 20] {
        send_to(&mut session, &memory.tensor, &vec![0xdd; len])?;
        session.expect_exception_only(&format!("{len}-bytes"))?;
    }
    // Less than there is, but more than the tensor that is a part of it.
    let tensor = TensorView {
        shape: Shape::from(&[8][..]),
        ..memory.tensor.clone()
    };
    send_to(&mut session, &tensor, &[0xdd; 9])?;
    session.expect_exception_only("more-than-the-part")?;
    memory.expect_unchanged(&mut session)
}

fn too_many_from(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let memory = Between::new(&mut session)?;
    for nbytes in [65, 4096, 1 << 40, u64::MAX - 16] {
        send_from(&mut session, &memory.tensor, nbytes)?;
        session.expect_exception_only(&format!("{nbytes}-bytes"))?;
    }
    memory.expect_unchanged(&mut session)
}

fn beyond_to(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let memory = Between::new(&mut session)?;
    for len in [65_u16, 4096] {
        let tensor = at(memory.tensor.data, len.into());
        send_to(&mut session, &tensor, &vec![0xdd; len.into()])?;
        session.expect_exception_only(&format!("{len}-bytes"))?;
    }
    memory.expect_unchanged(&mut session)
}

fn beyond_from(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let memory = Between::new(&mut session)?;
    for len in [65_u16, 4096] {
        send_from(
            &mut session,
            &at(memory.tensor.data, len.into()),
            len.into(),
        )?;
        session.expect_exception_only(&format!("{len}-bytes"))?;
    }
    memory.expect_unchanged(&mut session)
}

fn far_offsets(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let memory = Between::new(&mut session)?;
    for offset in [
        57,
        64,
        1 << 40,
        u64::MAX,
        u64::MAX - 7,
        memory.tensor.data.wrapping_neg(),
    ] {
        let tensor = TensorView {
            byte_offset: offset,
            ..at(memory.tensor.data, 8)
        };
        send_from(&mut session, &tensor, 8)?;
        session.expect_exception_only(&format!("from-{offset:#x}"))?;
        send_to(&mut session, &tensor, &[0xdd; 8])?;
        session.expect_exception_only(&format!("to-{offset:#x}"))?;
    }
    memory.expect_unchanged(&mut session)
}

/// Copies both ways at this address are refused.
fn expect_no_copies(session: &mut Session, check: &str, data: u64) -> Outcome {
    send_from(session, &at(data, 8), 8)?;
    session.expect_exception_only(&format!("from-{check}"))?;
    send_to(session, &at(data, 8), &[0xdd; 8])?;
    session
        .expect_exception_only(&format!("to-{check}"))
        .map(drop)
}

fn null_addresses(server: &Server) -> Outcome {
    let mut session = server.session()?;
    expect_no_copies(&mut session, "null", 0)
}

fn made_up_addresses(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for data in [0x10, u64::MAX - 7, 1 << 63] {
        expect_no_copies(&mut session, &format!("{data:#x}"), data)?;
    }
    Ok(())
}

fn freed_memory(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[8], DataType::UINT8)?;
    session.release("freed", &tensor)?;
    expect_no_copies(&mut session, "freed", tensor.data)
}

fn among_addresses(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let here = session.filled(&[8], DataType::UINT8, &[1; 8])?;
    let nowhere = at(0, 8);
    for (check, from, to) in [("from-null", &nowhere, &here), ("to-null", &here, &nowhere)] {
        let (from, to) = (from.clone(), to.clone());
        let request = Syscall::CopyAmong {
            from,
            to,
            stream: 0,
        };
        session.expect_refused_syscall(check, request)?;
    }
    session.expect_content("unchanged", &here, &[1; 8])
}

fn argument_addresses(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let wants_ones = session.function("rpc.test.remote_tensor_func")?;
    let tensor = TensorView {
        dtype: DataType::FLOAT32,
        shape: Shape::from(&[3, 4][..]),
        ..at(0, 0)
    };
    session.send_call(wants_ones, vec![tensor.into()])?;
    session.expect_exception_only("null").map(drop)
}

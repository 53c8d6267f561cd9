//! Memory of a device: `SRV-MEM-`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{
    DataType, Device, DeviceType, Packet, Shape, Syscall, TensorView, TypeCode, Value,
};

use super::by_hand as hand;
use super::exchange::pattern;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::packets::encode;
use crate::roles::server::Session;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-MEM-001", Level::Must, "7.2.1", bytes_of_memory).about(
        "Memory of some bytes can be allocated, used and freed.",
        "Older clients allocate tensors so.",
    ),
    Case::server("SRV-MEM-002", Level::Must, "7.2.2", for_a_tensor).about(
        "Memory for a tensor can be allocated, used and freed, with no memory scope.",
        "Clients allocate all tensors so.",
    ),
    Case::server("SRV-MEM-003", Level::Must, "7.2.3", scopes).about(
        "The memory scopes `\"\"` and `\"global\"` are the ordinary memory.",
        "Compiled models name the scope of each tensor, and nearly always this one.",
    ),
    Case::server("SRV-MEM-004", Level::Must, "7.2.4", unknown_scope).about(
        "A memory scope that a device does not have is answered by an exception, and the session goes on.",
        "Data in other memory than was asked for is not found there.",
    ),
    Case::server("SRV-MEM-005", Level::Must, "7.2.5", nothing_to_allocate).about(
        "Memory of no bytes can be allocated and freed.",
        "Tensors with a size of 0 are tensors.",
    ),
    Case::server("SRV-MEM-006", Level::Must, "7.2.6", apart).about(
        "Pieces of memory that are allocated at the same time do not overlap.",
        "What is written to one tensor must not show in another.",
    ),
    Case::server("SRV-MEM-007", Level::Must, "7.2.7", aligned).about(
        "An address is a multiple of the alignment that was asked for.",
        "Vector instructions fail elsewhere.",
    ),
    Case::server("SRV-MEM-008", Level::Must, "7.2.8", missing_device).about(
        "Memory of a device that does not exist is refused by an exception, and the session goes on.",
        "Data on another device than was asked for is computed on there.",
    ),
    Case::server("SRV-MEM-009", Level::Should, "7.2.9", too_much)
        .about(
            "More memory than there is is refused by an exception, and the session goes on.",
            "A shape that is wrong by a factor is a common mistake.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-MEM-010", Level::Should, "7.2.9", impossible_shapes)
        .about(
            "Shapes that have no size are refused by an exception: negative ones, and products above 64 bits.",
            "A product that wraps allocates too little, and what is copied there overwrites other things.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-MEM-011", Level::Must, "7.2.2", shapes_and_types).about(
        "The size of a tensor follows from all its dimensions, its bits and its lanes, and is 1 element without dimensions.",
        "A server that counts otherwise allocates too little.",
    ),
    Case::server("SRV-MEM-012", Level::Should, "7.2.10", freed_twice)
        .about(
            "Memory that is freed a second time is answered by an exception, and the session goes on.",
            "Freed twice, it may be somebody else's by then.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-MEM-013", Level::Should, "7.2.10", freed_elsewhere)
        .about(
            "Freeing an address that was not allocated, or inside of memory, is answered by an exception, and the session goes on.",
            "A client with a mistake must learn of it, and the device must not be lost to others.",
        )
        .tags(&[Tag::Hostile]),
    Case::server("SRV-MEM-014", Level::Must, "7.2.11", null_is_freed).about(
        "Freeing a null pointer is answered, by nothing or by an exception, and the session goes on.",
        "Clients free what they have, and may have nothing.",
    ),
    Case::server("SRV-MEM-015", Level::Must, "7.2.6", many_pieces).about(
        "Five hundred pieces of memory can be allocated at a time, and keep what was written.",
        "A model has as many parameters.",
    ),
    Case::server("SRV-MEM-016", Level::Must, "7.2.1", again_and_again)
        .about(
            "What was freed can be allocated again: 64 times 16 MiB in turn.",
            "A tuner allocates and frees for each program it tries.",
        )
        .tags(&[Tag::Large]),
];

const CPU: Device = Device::cpu(0);

fn view(shape: &[i64], dtype: DataType) -> TensorView {
    TensorView {
        data: 0,
        device: CPU,
        dtype,
        shape: Shape::from(shape),
        byte_offset: 0,
    }
}

fn plain(nbytes: u64, alignment: u64) -> Syscall<'static> {
    Syscall::AllocData {
        device: CPU,
        nbytes,
        alignment,
        dtype: DataType::FLOAT32,
    }
}

fn scoped(tensor: TensorView, scope: Option<&'static str>) -> Syscall<'static> {
    let scope = scope.map(Into::into);
    Syscall::AllocDataWithScope { tensor, scope }
}

fn free(data: u64) -> Syscall<'static> {
    Syscall::FreeData { device: CPU, data }
}

/// An address that is not null.
fn address(session: &mut Session, check: &str, syscall: Syscall<'_>) -> Outcome<u64> {
    let found = session.pointer(check, syscall)?;
    let name = format!("{check}-address");
    session
        .stage()
        .check(&name, found != 0, "an address", found)?;
    Ok(found)
}

fn bytes_of_memory(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for nbytes in [1_u16, 7, 64, 1000] {
        let data = address(&mut session, "allocated", plain(nbytes.into(), 64))?;
        let bytes = pattern(nbytes.into(), 3);
        let tensor = TensorView {
            data,
            ..view(&[nbytes.into()], DataType::UINT8)
        };
        session.upload("written", &tensor, &bytes)?;
        session.expect_content(&format!("{nbytes}-bytes"), &tensor, &bytes)?;
        session.expect_done("freed", free(data))?;
    }
    session.shut_down()
}

fn for_a_tensor(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes = pattern(24, 5);
    let tensor = session.filled(&[2, 3], DataType::FLOAT32, &bytes)?;
    session.expect_content("content", &tensor, &bytes)?;
    session.release("freed", &tensor)?;
    session.shut_down()
}

fn scopes(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for (check, scope) in [
        ("none", None),
        ("empty", Some("")),
        ("global", Some("global")),
    ] {
        let mut tensor = view(&[16], DataType::UINT8);
        tensor.data = address(&mut session, check, scoped(tensor.clone(), scope))?;
        let bytes = pattern(16, 7);
        session.upload("written", &tensor, &bytes)?;
        session.expect_content("content", &tensor, &bytes)?;
        session.expect_done("freed", free(tensor.data))?;
    }
    Ok(())
}

fn unknown_scope(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for scope in ["conformance.no.such.scope", "global.texture"] {
        let request = scoped(view(&[16], DataType::UINT8), Some(scope));
        session.expect_refused_syscall(scope, request)?;
    }
    Ok(())
}

fn nothing_to_allocate(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let data = session.pointer("no-bytes", plain(0, 64))?;
    session.expect_done("no-bytes-freed", free(data))?;
    for shape in [&[0][..], &[0, 4], &[3, 0, 2]] {
        let check = format!("shape-{shape:?}");
        let data = session.pointer(&check, scoped(view(shape, DataType::FLOAT32), None))?;
        session.expect_done("freed", free(data))?;
    }
    session.expect_goes_on("afterwards")
}

fn apart(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let mut tensors = Vec::new();
    for seed in 0..20_u8 {
        let len = usize::from(seed) * 7 + 1;
        let bytes = pattern(len, seed);
        let shape = [i64::from(seed) * 7 + 1];
        tensors.push((session.filled(&shape, DataType::UINT8, &bytes)?, bytes));
    }
    for (tensor, bytes) in &tensors {
        session.expect_content("keeps-its-own", tensor, bytes)?;
    }
    for (tensor, _) in &tensors {
        session.release("freed", tensor)?;
    }
    Ok(())
}

fn aligned(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for alignment in [8, 64, 128, 4096] {
        let data = address(&mut session, "allocated", plain(100, alignment))?;
        let check = format!("multiple-of-{alignment}");
        let holds = data % alignment == 0;
        session.stage().check(
            &check,
            holds,
            "an aligned address",
            format_args!("{data:#x}"),
        )?;
        session.expect_done("freed", free(data))?;
    }
    Ok(())
}

fn missing_device(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let device = Device::new(DeviceType::CUDA, 0);
    let attr = rpc_proto::DeviceAttr::EXIST;
    if session.syscall("exists", Syscall::GetAttr { device, attr })? == Value::Int(1) {
        return Err(crate::stage::Stop::Unsupported(
            "the server has that device".to_owned(),
        ));
    }
    let bytes = Syscall::AllocData {
        device,
        nbytes: 64,
        alignment: 64,
        dtype: DataType::FLOAT32,
    };
    session.expect_refused_syscall("bytes", bytes)?;
    let tensor = TensorView {
        device,
        ..view(&[4], DataType::FLOAT32)
    };
    session.expect_refused_syscall("tensor", scoped(tensor, None))?;
    session
        .expect_refused_syscall("freed", Syscall::FreeData { device, data: 0 })
        .map(drop)
}

fn too_much(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.expect_refused_syscall("bytes", plain(1 << 60, 64))?;
    let tensor = view(&[1 << 30, 1 << 30], DataType::UINT8);
    session
        .expect_refused_syscall("tensor", scoped(tensor, None))
        .map(drop)
}

fn impossible_shapes(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let above = [1 << 32, 1 << 32];
    let much_above = [1 << 62, 4, 1 << 2];
    for shape in [&[-1][..], &[4, -4], &[i64::MIN], &above, &much_above] {
        let check = format!("shape-{shape:?}");
        let request = scoped(view(shape, DataType::UINT8), None);
        session.expect_refused_syscall(&check, request)?;
    }
    let args = [
        hand::device(1, 0),
        hand::int(-1),
        hand::int(64),
        hand::value(hand::DATA_TYPE, &[2, 32, 1, 0, 0, 0, 0, 0]),
    ];
    session
        .packets
        .wire
        .send(&hand::syscall(PacketCode::DEV_ALLOC_DATA, &args));
    session.expect_exception_only("minus-one-bytes").map(drop)
}

fn shapes_and_types(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let wide = DataType {
        code: TypeCode::FLOAT,
        bits: 32,
        lanes: 4,
    };
    let samples: [(&[i64], DataType, usize); 6] = [
        (&[], DataType::INT64, 8),
        (&[1, 1, 1, 1, 1, 5], DataType::UINT8, 5),
        (&[2, 3, 4], DataType::INT16, 48),
        (&[3], DataType::FLOAT64, 24),
        (&[2], wide, 32),
        (&[300, 2], DataType::FLOAT16, 1200),
    ];
    for (shape, dtype, len) in samples {
        let check = format!("{dtype}-{shape:?}");
        let bytes = pattern(len, 9);
        let tensor = session.filled(shape, dtype, &bytes)?;
        // A neighbour that would be hit if it was too small.
        let neighbour = session.filled(&[64], DataType::UINT8, &[0xee; 64])?;
        session.upload("written-again", &tensor, &bytes)?;
        session.expect_content(&check, &tensor, &bytes)?;
        session.expect_content("neighbour", &neighbour, &[0xee; 64])?;
        session.release("freed", &tensor)?;
        session.release("neighbour-freed", &neighbour)?;
    }
    Ok(())
}

fn freed_twice(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[16], DataType::UINT8)?;
    session.release("freed", &tensor)?;
    session
        .expect_refused_syscall("freed-again", free(tensor.data))
        .map(drop)
}

fn freed_elsewhere(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes = pattern(64, 11);
    let tensor = session.filled(&[64], DataType::UINT8, &bytes)?;
    session.expect_refused_syscall("inside", free(tensor.data.wrapping_add(16)))?;
    session.expect_refused_syscall("made-up", free(0x1000))?;
    session.expect_content("memory-stays", &tensor, &bytes)?;
    session.release("freed", &tensor)
}

fn null_is_freed(server: &Server) -> Outcome {
    let mut session = server.session()?;
    session.packets.send(&Packet::Syscall(free(0)))?;
    let came = session.packets.packet("answered")?;
    let void = Packet::void();
    let holds = came.packet == void || matches!(came.packet, Packet::Exception { .. });
    session
        .packets
        .came_check("answer", holds, "nothing, or an exception", None, &came)?;
    session.expect_goes_on("afterwards")
}

fn many_pieces(server: &Server) -> Outcome {
    const PIECES: u16 = 500;
    let mut session = server.session()?;
    let dialect = session.packets.dialect;
    let encode = |packet: Packet<'_>, payload: &[u8]| encode(&packet, payload, dialect);
    let allocate = encode(
        Packet::Syscall(scoped(view(&[2], DataType::UINT8), None)),
        &[],
    )?;
    session.send_together(&vec![allocate; PIECES.into()]);
    let (mut writes, mut reads, mut frees) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..PIECES {
        let found = session.value("allocated")?;
        let Value::Pointer(data) = found else {
            return Err(session
                .stage()
                .fail("address", "a pointer", format_args!("{found:?}")));
        };
        let tensor = TensorView {
            data,
            ..view(&[2], DataType::UINT8)
        };
        let (to, nbytes) = (tensor.clone(), 2);
        writes.push(encode(
            Packet::CopyTo { tensor: to, nbytes },
            &number.to_le_bytes(),
        )?);
        reads.push(encode(Packet::CopyFrom { tensor, nbytes }, &[])?);
        frees.push(encode(Packet::Syscall(free(data)), &[])?);
    }
    session.send_together(&writes);
    for _ in 0..PIECES {
        session.expect_void("written")?;
    }
    session.send_together(&reads);
    for number in 0..PIECES {
        let exact = [hand::packet(PacketCode::COPY_ACK, &number.to_le_bytes())];
        session.expect_bytes("keeps-its-own", "what was written there", &exact)?;
    }
    session.send_together(&frees);
    for _ in 0..PIECES {
        session.expect_void("freed")?;
    }
    Ok(())
}

fn again_and_again(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for _ in 0..64 {
        let tensor = session.allocate(&[16 << 20], DataType::UINT8)?;
        session.upload("written", &tensor, &[1; 4096])?;
        session.release("freed", &tensor)?;
    }
    session.shut_down()
}

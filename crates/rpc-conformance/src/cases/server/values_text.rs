//! Texts and bytes as arguments: `SRV-VAL-02` to `SRV-VAL-03`.

use rpc_proto::codes::PacketCode;
use rpc_proto::{Device, Value};

use super::by_hand::{self as hand, BYTES, RAW_BYTES, RAW_STR, SMALL_BYTES, SMALL_STR, STR};
use super::exchange::pattern;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const ECHO: &[&str] = &["testing.echo"];
const FILES: &[&str] = &["tvm.rpc.server.upload", "tvm.rpc.server.download"];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-VAL-020", Level::Must, "5.3.1", raw_texts)
        .about(
            "A text under index 8 arrives, of 0, 7, 8 and more bytes.",
            "So clients send the texts of calls.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-021", Level::Must, "5.3.1", text_objects)
        .about(
            "A text under index 65 with inner index 65 arrives, of any length.",
            "So texts come over a hop, and so constructors get their arguments.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-022", Level::Must, "5.3.1", small_texts)
        .about(
            "A text under index 11 with inner index 65 arrives, of 0 to 7 bytes.",
            "So clients send short texts to constructors.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-023", Level::Must, "5.3.2", raw_bytes)
        .about(
            "Bytes under index 9 arrive, of 0, 7, 8 and more bytes.",
            "Clients in other languages send them so.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-024", Level::Must, "5.3.2", bytes_objects)
        .about(
            "Bytes under index 66 with inner index 66 arrive, of any length.",
            "So clients send files.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-025", Level::Must, "5.3.2", small_bytes)
        .about(
            "Bytes under index 12 with inner index 66 arrive, of 0 to 7 bytes.",
            "So clients send short bytes.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-026", Level::Must, "5.3.3", beyond_ascii)
        .about(
            "Texts with characters of two, three and four bytes arrive, in each spelling.",
            "File names and messages are in the languages of their users.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-027", Level::Must, "5.3.4", every_byte)
        .about(
            "Bytes of every value arrive, also zeros and those that are no UTF-8, in each spelling.",
            "Compiled modules hold all of them.",
        )
        .functions(ECHO),
    Case::server("SRV-VAL-028", Level::Should, "5.3.5", text_with_zeros)
        .about(
            "A text under index 65 that has a NUL in it arrives whole.",
            "Text that ends in the middle is wrong without anyone noticing.",
        )
        .functions(FILES),
    Case::server("SRV-VAL-029", Level::Must, "5.3.6", mebibyte_of_text)
        .about(
            "A text of a mebibyte goes both ways, in each spelling.",
            "Models come with descriptions of that size.",
        )
        .functions(ECHO)
        .tags(&[Tag::Large]),
    Case::server("SRV-VAL-030", Level::Must, "5.3.6", mebibyte_of_bytes)
        .about(
            "A mebibyte of bytes goes both ways, in each spelling.",
            "So files are sent.",
        )
        .functions(ECHO)
        .tags(&[Tag::Large]),
    Case::server("SRV-VAL-031", Level::Must, "5.3.6", large_one_first)
        .about(
            "A large argument may stand before others.",
            "A server that reads large ones apart must not take what follows for more of them.",
        )
        .functions(&["rpc.test.strcat", "rpc.test.addone"])
        .tags(&[Tag::Large]),
    Case::server("SRV-VAL-032", Level::Must, "5.3.7", texts_in_syscalls).about(
        "A syscall takes a text in each spelling: the name of a function, a memory scope.",
        "Which one a client uses follows from how it holds its texts.",
    )
    .functions(&["testing.echo"]),
    Case::server("SRV-VAL-033", Level::Should, "5.3.8", bytes_for_a_text)
        .about(
            "A look-up takes the name as bytes, too.",
            "Languages without a type for texts have nothing else.",
        )
        .functions(ECHO),
];

const LENGTHS: [usize; 7] = [0, 1, 6, 7, 8, 9, 300];

/// Text of so many bytes.
fn letters(len: usize) -> String {
    ('a'..='z').cycle().take(len).collect()
}

fn echoes(
    server: &Server,
    lengths: &[usize],
    spell: impl Fn(&[u8]) -> Vec<u8>,
    expected: impl Fn(String) -> Value<'static>,
) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    for &len in lengths {
        let text = letters(len);
        let args = [spell(text.as_bytes())];
        let check = format!("{len}-bytes");
        session.expect_by_hand(&check, echo, &args, &expected(text))?;
    }
    Ok(())
}

fn as_bytes(text: String) -> Value<'static> {
    Value::from(text.into_bytes())
}

fn raw_texts(server: &Server) -> Outcome {
    echoes(
        server,
        &LENGTHS,
        |text| hand::raw(RAW_STR, text),
        Value::from,
    )
}

fn text_objects(server: &Server) -> Outcome {
    echoes(
        server,
        &LENGTHS,
        |text| hand::boxed(STR, STR, text),
        Value::from,
    )
}

fn small_texts(server: &Server) -> Outcome {
    let lengths = [0, 1, 2, 3, 4, 5, 6, 7];
    echoes(
        server,
        &lengths,
        |text| hand::boxed(SMALL_STR, STR, text),
        Value::from,
    )
}

fn raw_bytes(server: &Server) -> Outcome {
    echoes(
        server,
        &LENGTHS,
        |bytes| hand::raw(RAW_BYTES, bytes),
        as_bytes,
    )
}

fn bytes_objects(server: &Server) -> Outcome {
    echoes(
        server,
        &LENGTHS,
        |bytes| hand::boxed(BYTES, BYTES, bytes),
        as_bytes,
    )
}

fn small_bytes(server: &Server) -> Outcome {
    let lengths = [0, 1, 2, 3, 4, 5, 6, 7];
    echoes(
        server,
        &lengths,
        |bytes| hand::boxed(SMALL_BYTES, BYTES, bytes),
        as_bytes,
    )
}

fn beyond_ascii(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let texts = [
        "é",
        "世界",
        "🦀",
        "grüße, 世界 🦀",
        "a\u{301}",
        "\u{feff}bom",
    ];
    for (place, text) in texts.into_iter().enumerate() {
        for (spelling, arg) in hand::texts(text) {
            let check = format!("text-{place}-{spelling}");
            session.expect_by_hand(&check, echo, &[arg], &Value::from(text))?;
        }
    }
    Ok(())
}

fn every_byte(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let all: Vec<u8> = (0..=255).collect();
    for bytes in [
        all,
        vec![0],
        vec![0; 7],
        vec![0; 8],
        vec![0xff, 0xfe, 0],
        vec![0xc3],
    ] {
        for (spelling, arg) in hand::byte_strings(&bytes) {
            let check = format!("{}-bytes-{spelling}", bytes.len());
            let expected = Value::from(bytes.as_slice());
            session.expect_by_hand(&check, echo, &[arg], &expected)?;
        }
    }
    Ok(())
}

fn text_with_zeros(server: &Server) -> Outcome {
    let mut session = server.session()?;
    // What a file holds shows what arrived, whatever becomes of a text on its way back.
    let upload = session.function(FILES[0])?;
    let download = session.function(FILES[1])?;
    for text in ["ab\0cd, and more", "\0", "\0\0\0\0\0\0\0\0"] {
        let name = hand::raw(RAW_STR, b"zeros.bin");
        let text_arg = hand::boxed(STR, STR, text.as_bytes());
        session.expect_by_hand("upload", upload, &[name.clone(), text_arg], &Value::None)?;
        let expected = Value::from(text.as_bytes());
        let check = format!("whole-{}", text.len());
        session.expect_by_hand(&check, download, &[name], &expected)?;
    }
    Ok(())
}

const MEBIBYTE: usize = 1 << 20;

/// Sends each spelling of something large, and takes it back.
fn large(session: &mut Session, spelled: Vec<(&str, Vec<u8>)>, expected: &Value<'_>) -> Outcome {
    let echo = session.function("testing.echo")?;
    for (spelling, arg) in spelled {
        session.expect_by_hand(spelling, echo, &[arg], expected)?;
    }
    Ok(())
}

fn mebibyte_of_text(server: &Server) -> Outcome {
    let text = letters(MEBIBYTE + 1);
    let mut session = server.session()?;
    large(
        &mut session,
        hand::texts(&text),
        &Value::from(text.as_str()),
    )
}

fn mebibyte_of_bytes(server: &Server) -> Outcome {
    let bytes = pattern(MEBIBYTE + 1, 1);
    let mut session = server.session()?;
    large(
        &mut session,
        hand::byte_strings(&bytes),
        &Value::from(bytes.as_slice()),
    )
}

fn large_one_first(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let strcat = session.function("rpc.test.strcat")?;
    let text = letters(MEBIBYTE);
    let expected = Value::from(format!("{text}:7"));
    for (spelling, arg) in hand::texts(&text) {
        session.expect_by_hand(spelling, strcat, &[arg, hand::int(7)], &expected)?;
    }
    let addone = session.function("rpc.test.addone")?;
    session.expect_call("call-after-it", addone, vec![1.into()], &Value::Int(2))
}

fn texts_in_syscalls(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for (spelling, name) in hand::texts("testing.echo") {
        let request = hand::syscall(PacketCode::GET_GLOBAL_FUNC, &[name]);
        session.packets.wire.send(&request);
        let found = session.value(&format!("look-up-{spelling}"))?;
        let echo = match found {
            Value::Pointer(handle) => handle,
            _ => 0,
        };
        let check = format!("found-{spelling}");
        session
            .stage()
            .check(&check, echo != 0, "a handle", format_args!("{found:?}"))?;
        session.expect_call("called", echo, vec![5.into()], &Value::Int(5))?;
        session.free("freed", echo)?;
    }
    for scope in ["", "global"] {
        for (spelling, scope) in hand::texts(scope) {
            let tensor = hand::tensor(0, Device::cpu(0), (2, 32, 1), &[4], 0);
            let args = [hand::value(hand::TENSOR_VIEW, &tensor), scope];
            let request = hand::syscall(PacketCode::DEV_ALLOC_DATA_WITH_SCOPE, &args);
            session.packets.wire.send(&request);
            let found = session.value(&format!("scope-{spelling}"))?;
            let holds = matches!(found, Value::Pointer(address) if address != 0);
            let check = format!("allocated-{spelling}");
            session
                .stage()
                .check(&check, holds, "an address", format_args!("{found:?}"))?;
        }
    }
    Ok(())
}

fn bytes_for_a_text(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for (spelling, name) in hand::byte_strings(b"testing.echo") {
        let request = hand::syscall(PacketCode::GET_GLOBAL_FUNC, &[name]);
        session.packets.wire.send(&request);
        let found = session.value(&format!("look-up-{spelling}"))?;
        let holds = matches!(found, Value::Pointer(handle) if handle != 0);
        let check = format!("found-{spelling}");
        session
            .stage()
            .check(&check, holds, "a handle", format_args!("{found:?}"))?;
    }
    Ok(())
}

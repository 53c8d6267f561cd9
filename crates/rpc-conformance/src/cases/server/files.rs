//! Files of a session: `SRV-FILE-0`.

use rpc_proto::{Returned, Value};

use super::by_hand as hand;
use super::exchange::pattern;
use crate::case::{Case, Level, Tag};
use crate::roles::Server;
use crate::roles::server::Session;
use crate::stage::Outcome;

const UPLOAD: &str = "tvm.rpc.server.upload";
const DOWNLOAD: &str = "tvm.rpc.server.download";
const REMOVE: &str = "tvm.rpc.server.remove";
const WORK_PATH: &str = "tvm.rpc.server.workpath";
const LIST: &str = "tvm.rpc.server.listdir";
const BOTH: &[&str] = &[UPLOAD, DOWNLOAD];
const THREE: &[&str] = &[UPLOAD, DOWNLOAD, REMOVE];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-FILE-001", Level::Must, "10.1.1", up_and_down)
        .about(
            "A file that was uploaded is downloaded as it was, with bytes of every value.",
            "So modules get to the device.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-002", Level::Must, "10.1.1", exact_answers)
        .about(
            "An upload gives nothing, a download gives bytes.",
            "A client that gets a text in place of bytes cannot read it.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-003", Level::Must, "10.1.2", empty_file)
        .about(
            "An empty file is a file.",
            "Some builds have empty parts.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-004", Level::Must, "10.1.3", large_file)
        .about(
            "A file of eight mebibytes goes both ways.",
            "Compiled models are larger.",
        )
        .functions(BOTH)
        .tags(&[Tag::Large]),
    Case::server("SRV-FILE-005", Level::Must, "10.1.4", replaced)
        .about(
            "An upload replaces the file of that name, also by a shorter one.",
            "What is left of a longer module makes the shorter one unusable.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-006", Level::Must, "10.1.5", missing_file)
        .about(
            "A download of a file that there is not is answered by an exception, and the session goes on.",
            "An empty file would be taken for the file.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-007", Level::Must, "10.1.6", removed)
        .about(
            "A file that was removed is not there any more.",
            "Clients clean up after a measurement.",
        )
        .functions(THREE),
    Case::server("SRV-FILE-008", Level::Should, "10.1.7", removed_twice)
        .about(
            "To remove a file that there is not is no failure.",
            "Clients remove what they may have uploaded.",
        )
        .functions(THREE),
    Case::server("SRV-FILE-009", Level::Must, "10.1.8", spellings)
        .about(
            "A file's content may come as bytes in each spelling, and as text.",
            "Which one a client uses follows from its language.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-010", Level::Must, "10.1.9", odd_names)
        .about(
            "Names with blanks, several dots and characters beyond ASCII are names.",
            "Files are named by their users.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-011", Level::Must, "10.1.10", several)
        .about(
            "Files of different names are different files.",
            "A module is uploaded beside its parameters.",
        )
        .functions(THREE),
    Case::server("SRV-FILE-012", Level::Must, "10.1.11", work_path)
        .about(
            "The work path of a name is a text that ends in that name.",
            "It is handed to functions that take the path of a file.",
        )
        .functions(&[WORK_PATH]),
    Case::server("SRV-FILE-013", Level::Should, "10.1.12", upwards)
        .about(
            "Names that lead out of the work directory by `..` are refused by an exception.",
            "Whoever borrows a device must not overwrite what is on it.",
        )
        .functions(THREE)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-FILE-014", Level::Should, "10.1.12", absolute)
        .about(
            "Absolute names are refused by an exception.",
            "Whoever borrows a device must not read what is on it.",
        )
        .functions(BOTH)
        .tags(&[Tag::Hostile]),
    Case::server("SRV-FILE-015", Level::Should, "10.1.13", next_session)
        .about(
            "The next session does not see the files of the one before.",
            "What one user left must not be in reach of another, nor in its way.",
        )
        .functions(BOTH),
    Case::server("SRV-FILE-016", Level::Must, "10.1.14", wrong_arguments)
        .about(
            "Wrong arguments of these functions are answered by an exception, and the session goes on.",
            "A client with a mistake must learn of it.",
        )
        .functions(THREE),
    Case::server("SRV-FILE-017", Level::May, "10.1.15", listed)
        .about(
            "`listdir` gives the paths of the files, each with a comma behind it.",
            "Clients cut the text at its commas.",
        )
        .functions(&[UPLOAD, LIST]),
];

fn upload(session: &mut Session, check: &str, name: &str, bytes: &[u8]) -> Outcome {
    let function = session.function(UPLOAD)?;
    session.expect_call(
        check,
        function,
        vec![name.into(), bytes.into()],
        &Value::None,
    )?;
    session.free("upload-freed", function)
}

fn expect_file(session: &mut Session, check: &str, name: &str, bytes: &[u8]) -> Outcome {
    let function = session.function(DOWNLOAD)?;
    session.expect_call(check, function, vec![name.into()], &Value::from(bytes))?;
    session.free("download-freed", function)
}

/// Calls a function on this file, which is refused.
fn expect_refused(
    session: &mut Session,
    check: &str,
    function: &str,
    args: Vec<Value<'_>>,
) -> Outcome {
    let function = session.function(function)?;
    session.send_call(function, args)?;
    session.expect_exception_only(check)?;
    session.free("function-freed", function)
}

fn up_and_down(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    upload(&mut session, "uploaded", "every.bin", &bytes)?;
    expect_file(&mut session, "downloaded", "every.bin", &bytes)?;
    session.shut_down()
}

fn exact_answers(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let function = session.function(UPLOAD)?;
    for bytes in [&b"short"[..], b"longer than seven"] {
        session.send_call(function, vec!["exact.bin".into(), bytes.into()])?;
        let nothing = [hand::result(hand::NONE, hand::none())];
        session.expect_bytes("upload", "0, and none", &nothing)?;
        let function = session.function(DOWNLOAD)?;
        session.send_call(function, vec!["exact.bin".into()])?;
        let words = "a type index of bytes, and the bytes under 9";
        session.expect_bytes("download", words, &hand::bytes_results(bytes))?;
    }
    Ok(())
}

fn empty_file(server: &Server) -> Outcome {
    let mut session = server.session()?;
    upload(&mut session, "uploaded", "empty.bin", &[])?;
    expect_file(&mut session, "downloaded", "empty.bin", &[])
}

fn large_file(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let bytes = pattern((8 << 20) + 5, 1);
    upload(&mut session, "uploaded", "large.bin", &bytes)?;
    expect_file(&mut session, "downloaded", "large.bin", &bytes)
}

fn replaced(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for (check, len) in [
        ("first", 1000),
        ("shorter", 10),
        ("empty", 0),
        ("longer", 5000),
    ] {
        let bytes = pattern(len, 2);
        upload(&mut session, check, "replaced.bin", &bytes)?;
        expect_file(
            &mut session,
            &format!("{check}-content"),
            "replaced.bin",
            &bytes,
        )?;
    }
    Ok(())
}

fn missing_file(server: &Server) -> Outcome {
    let mut session = server.session()?;
    expect_refused(
        &mut session,
        "missing",
        DOWNLOAD,
        vec!["no-such-file.bin".into()],
    )?;
    upload(&mut session, "uploaded", "there.bin", b"there")?;
    expect_refused(
        &mut session,
        "still-missing",
        DOWNLOAD,
        vec!["no-such-file.bin".into()],
    )
}

fn remove(session: &mut Session, check: &str, name: &str) -> Outcome {
    let function = session.function(REMOVE)?;
    session.expect_call(check, function, vec![name.into()], &Value::None)?;
    session.free("remove-freed", function)
}

fn removed(server: &Server) -> Outcome {
    let mut session = server.session()?;
    upload(&mut session, "uploaded", "gone.bin", b"here")?;
    remove(&mut session, "removed", "gone.bin")?;
    expect_refused(&mut session, "gone", DOWNLOAD, vec!["gone.bin".into()])?;
    upload(&mut session, "uploaded-again", "gone.bin", b"back")?;
    expect_file(&mut session, "back", "gone.bin", b"back")
}

fn removed_twice(server: &Server) -> Outcome {
    let mut session = server.session()?;
    remove(&mut session, "never-there", "no-such-file.bin")?;
    upload(&mut session, "uploaded", "gone.bin", b"here")?;
    remove(&mut session, "removed", "gone.bin")?;
    remove(&mut session, "removed-again", "gone.bin")
}

fn spellings(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let function = session.function(UPLOAD)?;
    for content in ["short", "longer than seven bytes"] {
        let spelled = hand::byte_strings(content.as_bytes());
        for (spelling, bytes) in spelled.into_iter().chain(hand::texts(content)) {
            let name = format!("{spelling}.bin");
            let args = [hand::raw(hand::RAW_STR, name.as_bytes()), bytes];
            session.expect_by_hand(spelling, function, &args, &Value::None)?;
            let check = format!("{spelling}-content");
            expect_file(&mut session, &check, &name, content.as_bytes())?;
        }
    }
    Ok(())
}

fn odd_names(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let names = [
        "with blanks .bin",
        "a.b.c.tar.gz",
        "größe-世界.bin",
        ".hidden",
        "-dash",
        "x",
    ];
    for name in names {
        upload(&mut session, name, name, name.as_bytes())?;
    }
    for name in names {
        expect_file(
            &mut session,
            &format!("{name}-content"),
            name,
            name.as_bytes(),
        )?;
    }
    Ok(())
}

fn several(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for number in 0..10_u8 {
        let name = format!("file-{number}.bin");
        upload(&mut session, "uploaded", &name, &pattern(100, number))?;
    }
    remove(&mut session, "removed", "file-5.bin")?;
    for number in (0..10_u8).filter(|&number| number != 5) {
        let name = format!("file-{number}.bin");
        expect_file(&mut session, &name, &name, &pattern(100, number))?;
    }
    Ok(())
}

fn work_path(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let function = session.function(WORK_PATH)?;
    let found = session.call("path", function, vec!["some.bin".into()])?;
    let holds = matches!(&found, Returned::Value(Value::Str(path)) if path.ends_with("some.bin"));
    let expected = "a text that ends in some.bin";
    session
        .stage()
        .check("path-of-it", holds, expected, format_args!("{found:?}"))
}

fn upwards(server: &Server) -> Outcome {
    let mut session = server.session()?;
    // A name of its own, in case that it is written.
    let file = server.stage.key("upwards");
    for name in [format!("../{file}"), format!("a/../../{file}")] {
        let function = session.function(UPLOAD)?;
        session.send_call(function, vec![name.as_str().into(), (&b"x"[..]).into()])?;
        let written = session.expect_exception_only("upload");
        if written.is_err() {
            // It is not left there.
            let function = session.function(REMOVE)?;
            session.call("cleaned-up", function, vec![name.as_str().into()])?;
        }
        written?;
        expect_refused(&mut session, "remove", REMOVE, vec![name.as_str().into()])?;
    }
    let name = "../../../../../../../../etc/hostname";
    expect_refused(&mut session, "download", DOWNLOAD, vec![name.into()])
}

fn absolute(server: &Server) -> Outcome {
    let mut session = server.session()?;
    for name in ["/etc/hostname", "/etc/passwd", "//etc/passwd"] {
        expect_refused(&mut session, name, DOWNLOAD, vec![name.into()])?;
    }
    Ok(())
}

fn next_session(server: &Server) -> Outcome {
    let mut first = server.session()?;
    upload(&mut first, "uploaded", "left.bin", b"left behind")?;
    first.shut_down()?;
    drop(first);
    let mut second = server.session()?;
    expect_refused(&mut second, "not-seen", DOWNLOAD, vec!["left.bin".into()])
}

fn wrong_arguments(server: &Server) -> Outcome {
    let mut session = server.session()?;
    expect_refused(&mut session, "name-is-a-number", DOWNLOAD, vec![5.into()])?;
    expect_refused(&mut session, "name-is-none", REMOVE, vec![Value::None])?;
    let args = vec!["number.bin".into(), 5.into()];
    expect_refused(&mut session, "content-is-a-number", UPLOAD, args)
}

fn listed(server: &Server) -> Outcome {
    let mut session = server.session()?;
    upload(&mut session, "uploaded", "one.bin", b"1")?;
    upload(&mut session, "uploaded-too", "two.bin", b"2")?;
    let function = session.function(LIST)?;
    let found = session.call("list", function, vec!["".into()])?;
    let holds = match &found {
        Returned::Value(Value::Str(text)) => {
            let paths: Vec<_> = text.split_terminator(',').collect();
            let lists = |name| paths.iter().any(|path| path.ends_with(name));
            text.ends_with(',') && lists("/one.bin") && lists("/two.bin")
        }
        _ => false,
    };
    session
        .stage()
        .check("paths", holds, "both paths", format_args!("{found:?}"))
}

//! Files of any size, from readers and to writers that may fail.

use std::sync::mpsc;

use rpc_proto::{Packet, Value};
use rpc_session::SessionError;

use super::session::{finish, open};
use super::{bisync, twin_test};
use crate::support::carry::{Full, Gated, Torn};
use crate::support::{Server, Talk};

const UPLOAD: u64 = 11;
const DOWNLOAD: u64 = 12;
/// The client reads and writes in pieces of this many bytes.
const PIECE: usize = 256 << 10;

fn pattern(count: usize) -> Vec<u8> {
    (1..=251).cycle().take(count).collect()
}

/// Takes one upload, and gives back what arrived.
fn take_upload(talk: &mut Talk, name: &str) -> Vec<u8> {
    let request = talk.request();
    let Packet::Call { function, args, .. } = request.packet() else {
        panic!("{request:?}");
    };
    assert_eq!(function, UPLOAD);
    let [Value::Str(sent), Value::Bytes(bytes)] = &args[..] else {
        panic!("{args:?}");
    };
    assert_eq!(sent, name);
    talk.value(());
    bytes.to_vec()
}

fn give_download(talk: &mut Talk, name: &'static str, bytes: &[u8]) {
    talk.called(DOWNLOAD, [name.into()]);
    talk.value(bytes);
}

#[bisync]
#[twin_test]
async fn uploads_are_sent_as_they_are_read() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.upload", UPLOAD);
        let mut received = Vec::new();
        // Each function is looked up once in a session.
        for _ in 0..4 {
            received.push(take_upload(talk, "x"));
        }
        talk.goodbye();
        received
    });
    let session = open(&server).await;
    let files = session.files();
    let sizes = [0, 1, PIECE, 3 * PIECE + 5];
    for size in sizes {
        let bytes = pattern(size);
        let mut reader = &bytes[..];
        let mut told = Vec::new();
        let mut progress = |done, total| told.push((done, total));
        let nbytes = size as u64;
        let sent = files.upload_from("x", nbytes, &mut reader, &mut progress);
        sent.await.unwrap();
        let pieces = (1..=size.div_ceil(PIECE)).map(|count| (count * PIECE).min(size) as u64);
        assert!(told.into_iter().eq(pieces.map(|done| (done, nbytes))));
    }
    session.close().await;
    let received = finish(server).await;
    assert!(received.into_iter().eq(sizes.map(pattern)));
}

#[bisync]
#[twin_test]
async fn an_upload_is_not_held_in_memory() {
    let (tell, arrived) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("tvm.rpc.server.upload", UPLOAD);
        // Length, code, function and number of arguments; the name; type and length of the bytes.
        talk.read((8 + 4 + 8 + 4) + (4 + 8 + 1) + (4 + 4 + 8));
        let first = talk.read(PIECE);
        tell.send(()).unwrap();
        let rest = talk.read(1000);
        talk.value(());
        talk.goodbye();
        [first, rest].concat()
    });
    let session = open(&server).await;
    let bytes = pattern(PIECE + 1000);
    let (first, rest) = bytes.split_at(PIECE);
    let mut reader = Gated {
        first,
        arrived,
        rest,
    };
    let nbytes = bytes.len() as u64;
    let files = session.files();
    let mut silent = |_, _| {};
    let sent = files.upload_from("x", nbytes, &mut reader, &mut silent);
    sent.await.unwrap();
    session.close().await;
    assert!(finish(server).await == bytes);
}

#[bisync]
#[twin_test]
async fn a_reader_that_fails_or_ends_early_costs_its_upload_only() {
    const PROMISED: usize = 2 * PIECE;
    const THERE: usize = PIECE + 1000;
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.upload", UPLOAD);
        let received = [take_upload(talk, "x"), take_upload(talk, "x")];
        take_upload(talk, "y");
        talk.goodbye();
        received
    });
    let session = open(&server).await;
    let files = session.files();
    let bytes = pattern(THERE);

    let (mut torn, mut short) = (Torn(&bytes), &bytes[..]);
    let nbytes = PROMISED as u64;
    let mut silent = |_, _| {};
    let torn = files.upload_from("x", nbytes, &mut torn, &mut silent);
    let torn = torn.await.unwrap_err();
    let short = files.upload_from("x", nbytes, &mut short, &mut silent);
    let short = short.await.unwrap_err();
    for (error, word) in [(torn, "torn"), (short, "it ended before the 524288 bytes")] {
        let SessionError::File { source, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(source.to_string().contains(word), "{source}");
        assert!(!error.is_fatal());
    }

    files.upload("y", b"still works").await.unwrap();
    session.close().await;
    for received in finish(server).await {
        // The packet became as long as it was announced.
        assert_eq!(received.len(), PROMISED);
        assert!(received[..PIECE] == bytes[..PIECE]);
        assert!(received[THERE..].iter().all(|&byte| byte == 0));
    }
}

#[bisync]
#[twin_test]
async fn an_upload_that_the_server_refuses_costs_itself_only() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.upload", UPLOAD);
        for _ in 0..2 {
            talk.request();
            talk.exception("no room");
        }
        take_upload(talk, "y");
        talk.goodbye();
    });
    let session = open(&server).await;
    let files = session.files();
    let bytes = pattern(PIECE);
    let (mut reader, mut silent) = (&bytes[..], |_, _| {});
    let sent = files.upload_from("x", PIECE as u64, &mut reader, &mut silent);
    assert_eq!(sent.await.unwrap_err().remote().unwrap().text(), "no room");
    let sent = files.upload("x", &bytes).await;
    assert_eq!(sent.unwrap_err().remote().unwrap().text(), "no room");
    files.upload("y", b"").await.unwrap();
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn downloads_are_written_as_they_come() {
    let sizes = [0, 1, 70_000, 5 << 20];
    let server = Server::start(move |talk| {
        talk.function("tvm.rpc.server.download", DOWNLOAD);
        talk.chunk = 100_000;
        for size in sizes {
            give_download(talk, "x", &pattern(size));
        }
        talk.goodbye();
    });
    let session = open(&server).await;
    let files = session.files();
    for size in sizes {
        let mut written = Vec::new();
        let mut told = Vec::new();
        let mut progress = |done, total| told.push((done, total));
        let count = files.download_to("x", &mut written, &mut progress).await;
        assert_eq!(count.unwrap(), size as u64);
        assert!(written == pattern(size));
        assert_eq!(told.last(), Some(&(size as u64, size as u64)));
        assert!(told.is_sorted());
    }
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_writer_that_fails_costs_its_download_only() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.download", DOWNLOAD);
        for size in [5 << 20, 5 << 20, 10] {
            give_download(talk, "x", &pattern(size));
        }
        give_download(talk, "y", b"still works");
        talk.goodbye();
    });
    let session = open(&server).await;
    let files = session.files();
    for room in [0, PIECE + 1000, 5] {
        let mut writer = Full { room, taken: 0 };
        let written = files.download_to("x", &mut writer, &mut |_, _| {}).await;
        let error = written.unwrap_err();
        assert!(matches!(error, SessionError::File { .. }), "{error:?}");
        assert_eq!(writer.taken, room);
    }
    assert_eq!(files.download("y").await.unwrap(), b"still works");
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_download_that_is_no_bytes_is_told_and_freed() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.download", DOWNLOAD);
        talk.called(DOWNLOAD, ["x".into()]);
        talk.value(Value::Module(24));
        give_download(talk, "y", b"still works");
        talk.goodbye()
    });
    let session = open(&server).await;
    let files = session.files();
    let mut written = Vec::new();
    let error = files.download_to("x", &mut written, &mut |_, _| {}).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "expected bytes, the function returned a module"
    );
    assert_eq!(files.download("y").await.unwrap(), b"still works");
    session.close().await;
    assert_eq!(finish(server).await, [24]);
}

#[bisync]
#[twin_test]
async fn a_file_is_there_only_once_it_is_whole() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.download", DOWNLOAD);
        give_download(talk, "x", &pattern(100_000));
        talk.called(DOWNLOAD, ["x".into()]);
        talk.exception("cannot find file x");
        talk.goodbye();
    });
    let session = open(&server).await;
    let files = session.files();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let count = files.download_file("x", &path, &mut |_, _| {}).await;
    assert_eq!(count.unwrap(), 100_000);
    let missing = directory.path().join("y");
    let error = files.download_file("x", &missing, &mut |_, _| {}).await;
    assert!(error.unwrap_err().remote().is_some());
    session.close().await;
    finish(server).await;
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["x"]);
    assert!(std::fs::read(path).unwrap() == pattern(100_000));
}

#[bisync]
#[twin_test]
async fn a_server_without_files_is_told_as_such() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.upload", 0);
        talk.function("tvm.rpc.server.listdir", 0);
        talk.goodbye();
    });
    let session = open(&server).await;
    let files = session.files();
    for error in [
        files.upload("x", b"").await.unwrap_err(),
        files.list("").await.unwrap_err(),
    ] {
        assert!(
            matches!(error, SessionError::NoFunction { .. }),
            "{error:?}"
        );
    }
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn what_an_upload_returns_is_freed() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.upload", 5);
        for handle in [91, 92] {
            talk.request();
            talk.returned(&rpc_proto::Returned::Value(Value::Function(handle)));
        }
        talk.function("f", 6);
        talk.goodbye()
    });
    let session = open(&server).await;
    let files = session.files();
    let at_once = files.upload("x", b"abc").await;
    let read = files
        .upload_from("x", 3, &mut &b"abc"[..], &mut |_, _| ())
        .await;
    for odd in [at_once, read] {
        assert!(
            matches!(odd, Err(SessionError::WrongType { .. })),
            "{odd:?}"
        );
    }
    session.function("f").await.unwrap();
    session.close().await;
    assert_eq!(finish(server).await, [91, 92]);
}

/// What a file of tokio was given is there when it was flushed.
#[super::only_async]
#[twin_test]
async fn what_was_downloaded_is_there() {
    const ROUNDS: usize = 20;
    // As a payload, and within the answer.
    const SIZES: [usize; 2] = [3 << 18, 3000];
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.download", 5);
        for size in SIZES {
            for _ in 0..ROUNDS {
                talk.called(5, ["x".into()]);
                talk.value(&vec![7_u8; size][..]);
            }
        }
        talk.goodbye()
    });
    let session = open(&server).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for size in SIZES {
        for _ in 0..ROUNDS {
            let mut file = tokio::fs::File::create(&path).await.unwrap();
            let files = session.files();
            let nbytes = files.download_to("x", &mut file, &mut |_, _| ()).await;
            assert_eq!(nbytes.unwrap(), size as u64);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), size as u64);
        }
    }
    session.close().await;
    finish(server).await;
}

/// A pipe or a device is not replaced by a file.
#[cfg(unix)]
#[bisync]
#[twin_test]
async fn what_is_no_plain_file_is_written_to() {
    let server = Server::start(|talk| {
        talk.function("tvm.rpc.server.download", 5);
        talk.called(5, ["x".into()]);
        talk.value(&b"abc"[..]);
        talk.goodbye()
    });
    let session = open(&server).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let reading = std::thread::spawn({
        let path = path.clone();
        move || std::fs::read(path)
    });
    let files = session.files();
    let nbytes = files.download_file("x", &path, &mut |_, _| ()).await;
    assert_eq!(nbytes.unwrap(), 3);
    assert_eq!(reading.join().unwrap().unwrap(), b"abc");
    session.close().await;
    finish(server).await;
}

//! Files of a session: they go to and fro, and stay inside.

use std::fs;
use std::path::Path;

use rpc_proto::{BulkKind, Value};
use rpc_session::{Exception, FileFunction, Functions, LocalOptions, WorkDir};

use super::client::{Client, refused, value};
use super::{Session as _, bisync, twin_test};

const UPLOAD: &str = "tvm.rpc.server.upload";
const DOWNLOAD: &str = "tvm.rpc.server.download";
const REMOVE: &str = "tvm.rpc.server.remove";
const LIST: &str = "tvm.rpc.server.listdir";
const PATH: &str = "tvm.rpc.server.workpath";

/// A client, and its files.
fn open() -> (Client, WorkDir) {
    let files = WorkDir::temporary().unwrap();
    let client = Client::with(
        &Functions::new(),
        Some(files.clone()),
        LocalOptions::default(),
    );
    (client, files)
}

/// What is in a directory.
fn entries(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[bisync]
async fn upload(client: &mut Client, name: &str, bytes: &[u8]) -> Result<(), Exception> {
    let args = [Value::from(name), Value::from(bytes)];
    let done = client.call_named(UPLOAD, &args).await?;
    assert_eq!(value(done), Value::None);
    Ok(())
}

#[bisync]
async fn on_name(
    client: &mut Client,
    function: &str,
    name: &str,
) -> Result<Value<'static>, Exception> {
    client
        .call_named(function, &[Value::from(name)])
        .await
        .map(value)
}

#[bisync]
#[twin_test]
async fn files_come_back_as_they_went() {
    let (mut client, files) = open();
    for size in [0, 1, 3, 4096, 262_144, 262_145, 3_000_000] {
        let sent: Vec<u8> = (0..size)
            .map(|index: u32| (index * 31).to_be_bytes()[2])
            .collect();
        upload(&mut client, "dat.bin", &sent).await.unwrap();
        assert!(on_name(&mut client, DOWNLOAD, "dat.bin").await.unwrap() == Value::from(&sent[..]));
        // While it travels.
        let nbytes = sent.len() as u64;
        let args = [Value::from("far/away/dat.bin")];
        let done = client
            .call_bulk(UPLOAD, &args, BulkKind::Bytes, nbytes, &mut &sent[..])
            .await;
        assert_eq!(value(done.unwrap()), Value::None);
        assert!(fs::read(files.path().join("far/away/dat.bin")).unwrap() == sent);
    }
    // Bytes may be called text.
    let args = [Value::from("text"), Value::from("é")];
    client.call_named(UPLOAD, &args).await.unwrap();
    assert_eq!(
        on_name(&mut client, DOWNLOAD, "./text").await.unwrap(),
        Value::from("é".as_bytes())
    );
    assert_eq!(entries(files.path()), ["dat.bin", "far", "text"]);
    assert_eq!(client.session.memory(), 0);
}

#[bisync]
#[twin_test]
async fn what_is_not_there() {
    let (mut client, _files) = open();
    let missing = &["FileNotFoundError", "file \"nope\" of the work directory"];
    refused(on_name(&mut client, DOWNLOAD, "nope").await, missing);
    refused(on_name(&mut client, LIST, "nope").await, missing);
    refused(
        on_name(&mut client, LIST, "nope/nope").await,
        &["FileNotFoundError"],
    );
    assert_eq!(
        on_name(&mut client, REMOVE, "nope").await.unwrap(),
        Value::None
    );
    assert_eq!(
        on_name(&mut client, REMOVE, "nope/nope").await.unwrap(),
        Value::None
    );
    assert_eq!(
        on_name(&mut client, LIST, "").await.unwrap(),
        Value::from("")
    );
}

#[bisync]
#[twin_test]
async fn directories_are_made_and_listed() {
    let (mut client, files) = open();
    upload(&mut client, "a/b/x", b"x").await.unwrap();
    upload(&mut client, "a/y", b"y").await.unwrap();
    let base = files.path().display();
    for (name, listed) in [
        ("", format!("{base}/a,")),
        (".", format!("{base}/a,")),
        ("a", format!("{base}/a/b,{base}/a/y,")),
        ("a/b", format!("{base}/a/b/x,")),
        ("./a/./b", format!("{base}/a/b/x,")),
    ] {
        assert_eq!(
            on_name(&mut client, LIST, name).await.unwrap(),
            Value::from(listed),
            "{name}"
        );
    }
    let path = on_name(&mut client, PATH, "a/new").await.unwrap();
    assert_eq!(path, Value::from(format!("{base}/a/new")));
    on_name(&mut client, REMOVE, "a/b/x").await.unwrap();
    assert_eq!(
        on_name(&mut client, LIST, "a/b").await.unwrap(),
        Value::from("")
    );
    // A directory is no file.
    refused(upload(&mut client, "a", b"").await, &["not a file"]);
    refused(on_name(&mut client, DOWNLOAD, "a").await, &["not a file"]);
    on_name(&mut client, REMOVE, "a/b").await.unwrap_err();
    refused(
        on_name(&mut client, LIST, "a/y").await,
        &["file \"a/y\" of the work directory"],
    );
    refused(
        upload(&mut client, "a/y/z", b"").await,
        &["file \"a/y/z\" of the work directory"],
    );
}

#[bisync]
#[twin_test]
async fn no_name_leads_outside() {
    let (mut client, files) = open();
    upload(&mut client, "a/x", b"inside").await.unwrap();
    let outside = files.path().parent().unwrap().join("x-outside");
    for name in [
        "..",
        "../x-outside",
        "/x",
        "/",
        "a/../../x",
        "a/..",
        "a/../x",
        "./..",
        "../",
        "x\0",
        "\0",
        "//x",
        "/etc/passwd",
        "a/",
        "//",
        "./",
        "a/.././../x",
    ] {
        for function in [DOWNLOAD, REMOVE, LIST, PATH] {
            // These two are directories.
            if function == LIST && (name == "a/" || name == "./") {
                continue;
            }
            let parts = &["PermissionError", "work directory"];
            refused(on_name(&mut client, function, name).await, parts);
        }
        refused(
            upload(&mut client, name, b"x").await,
            &["PermissionError", "work directory"],
        );
        let args = [Value::from(name)];
        let bulk = client
            .call_bulk(UPLOAD, &args, BulkKind::Bytes, 1, &mut &b"x"[..])
            .await;
        refused(bulk, &["PermissionError"]);
    }
    for function in [DOWNLOAD, REMOVE] {
        refused(
            on_name(&mut client, function, "").await,
            &["not the name of a file"],
        );
    }
    refused(
        upload(&mut client, "", b"x").await,
        &["not the name of a file"],
    );
    assert!(!outside.exists());
    assert_eq!(entries(files.path()), ["a"]);
    assert_eq!(entries(&files.path().join("a")), ["x"]);
    let long = "n".repeat(100_000);
    refused(upload(&mut client, &long, b"x").await, &["work directory"]);
    assert_eq!(entries(files.path()), ["a"]);
}

#[cfg(unix)]
#[bisync]
#[twin_test]
async fn no_link_leads_outside() {
    use std::os::unix::fs::symlink;

    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    let (mut client, files) = open();
    upload(&mut client, "inside", b"inside").await.unwrap();
    upload(&mut client, "real/file", b"file").await.unwrap();
    let at = |name: &str| files.path().join(name);
    symlink(outside.path().join("secret"), at("file")).unwrap();
    symlink(outside.path(), at("dir")).unwrap();
    symlink(
        format!(
            "../{}",
            outside.path().file_name().unwrap().to_str().unwrap()
        ),
        at("up"),
    )
    .unwrap();
    symlink(outside.path().join("new"), at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("inside", at("good")).unwrap();
    symlink("real", at("good-dir")).unwrap();

    for name in [
        "file",
        "dir/secret",
        "up/secret",
        "dangling",
        "dir/new",
        "up/new",
        "dir/a/b",
        "loop",
    ] {
        refused(
            on_name(&mut client, DOWNLOAD, name).await,
            &["work directory"],
        );
        refused(
            upload(&mut client, name, b"overwritten").await,
            &["work directory"],
        );
        refused(on_name(&mut client, PATH, name).await, &["work directory"]);
    }
    for name in ["dir", "up", "dir/x"] {
        refused(on_name(&mut client, LIST, name).await, &["work directory"]);
    }
    for name in ["dir/secret", "up/secret"] {
        refused(
            on_name(&mut client, REMOVE, name).await,
            &["work directory"],
        );
    }
    assert_eq!(entries(outside.path()), ["secret"]);
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");

    // Links that stay inside are as good as what they lead to.
    assert_eq!(
        on_name(&mut client, DOWNLOAD, "good").await.unwrap(),
        Value::from(&b"inside"[..])
    );
    let name = "good-dir/file";
    assert_eq!(
        on_name(&mut client, DOWNLOAD, name).await.unwrap(),
        Value::from(&b"file"[..])
    );
    on_name(&mut client, REMOVE, "file").await.unwrap();
    assert!(
        outside.path().join("secret").exists(),
        "the link was removed"
    );
}

#[cfg(unix)]
#[bisync]
#[twin_test]
async fn what_is_no_file_is_neither_read_nor_replaced() {
    let (mut client, files) = open();
    let _socket = std::os::unix::net::UnixListener::bind(files.path().join("socket")).unwrap();
    refused(
        on_name(&mut client, DOWNLOAD, "socket").await,
        &["not a file"],
    );
    refused(upload(&mut client, "socket", b"x").await, &["not a file"]);
    assert_eq!(entries(files.path()), ["socket"]);
}

#[bisync]
#[twin_test]
async fn a_file_is_there_when_it_is_whole() {
    let (mut client, files) = open();
    upload(&mut client, "dat.bin", b"before").await.unwrap();
    for (name, nbytes) in [("dat.bin", 7), ("dat.bin", u64::MAX), ("new.bin", 1 << 40)] {
        let args = [Value::from(name)];
        let short = client
            .call_bulk(UPLOAD, &args, BulkKind::Bytes, nbytes, &mut &b"after"[..])
            .await;
        refused(short, &[&format!("{nbytes} bytes")]);
        assert_eq!(entries(files.path()), ["dat.bin"]);
    }
    assert_eq!(
        on_name(&mut client, DOWNLOAD, "dat.bin").await.unwrap(),
        Value::from(&b"before"[..])
    );
}

#[bisync]
#[twin_test]
async fn wrong_arguments_are_named() {
    let (mut client, files) = open();
    let (name, bytes, int) = (Value::from("x"), Value::from(&b"x"[..]), Value::Int(1));
    for (function, args, parts) in [
        (
            UPLOAD,
            vec![],
            &[
                "#0 of tvm.rpc.server.upload",
                "the name of a file",
                "no argument",
            ][..],
        ),
        (
            UPLOAD,
            vec![name.clone()],
            &["#1 of", "expected bytes, found no argument"],
        ),
        (
            UPLOAD,
            vec![name.clone(), int.clone()],
            &["#1 of", "expected bytes, found an integer"],
        ),
        (
            UPLOAD,
            vec![int.clone(), bytes.clone()],
            &["#0 of", "found an integer"],
        ),
        (
            UPLOAD,
            vec![name.clone(), bytes.clone(), int.clone()],
            &["#2 of", "expected no argument"],
        ),
        (DOWNLOAD, vec![], &["#0 of tvm.rpc.server.download"]),
        (DOWNLOAD, vec![bytes.clone()], &["#0 of", "found bytes"]),
        (
            REMOVE,
            vec![name.clone(), name.clone()],
            &["#1 of", "expected no argument, found a text"],
        ),
        (LIST, vec![Value::None], &["#0 of tvm.rpc.server.listdir"]),
        (PATH, vec![Value::None], &["#0 of tvm.rpc.server.workpath"]),
    ] {
        refused(client.call_named(function, &args).await, parts);
    }
    let mut data = &b"x"[..];
    let args = [name.clone()];
    let call = client
        .call_bulk(REMOVE, &args, BulkKind::Text, 1, &mut data)
        .await;
    refused(call, &["#1 of tvm.rpc.server.remove"]);
    let mut data = &b"x"[..];
    let call = client
        .call_bulk(DOWNLOAD, &[], BulkKind::Text, 1, &mut data)
        .await;
    refused(call, &["#0 of tvm.rpc.server.download"]);
    let mut data = &b"x"[..];
    let args = [name, bytes];
    let call = client
        .call_bulk(UPLOAD, &args, BulkKind::Bytes, 1, &mut data)
        .await;
    refused(call, &["#2 of tvm.rpc.server.upload"]);
    // Functions on files are called by clients, and not by other functions.
    let handle = client.function(UPLOAD).await;
    let args = [Value::Function(handle), Value::Int(1)];
    let function = client
        .call_named("tvm.contrib.random.random_fill", &args)
        .await;
    refused(function, &["is a function on files"]);
    assert!(entries(files.path()).is_empty());
}

#[bisync]
#[twin_test]
async fn a_session_may_have_no_files() {
    let mut client = Client::test();
    for name in [UPLOAD, DOWNLOAD, REMOVE, LIST, PATH] {
        assert_eq!(client.session.get_function(name).await.unwrap(), None);
        assert_eq!(FileFunction::named(name).unwrap().name(), name);
    }
    assert_eq!(FileFunction::named("tvm.rpc.server.load_module"), None);
}

#[bisync]
#[twin_test]
async fn absolute_names_work_where_they_are_allowed() {
    let outside = tempfile::tempdir().unwrap();
    let files = WorkDir::temporary().unwrap().with_absolute_paths(true);
    let mut client = Client::with(
        &Functions::new(),
        Some(files.clone()),
        LocalOptions::default(),
    );
    let base = outside.path().canonicalize().unwrap();
    let name = base.join("a/b/x").into_os_string().into_string().unwrap();
    upload(&mut client, &name, b"outside").await.unwrap();
    assert_eq!(fs::read(&name).unwrap(), b"outside");
    assert_eq!(
        on_name(&mut client, DOWNLOAD, &name).await.unwrap(),
        Value::from(&b"outside"[..])
    );
    let listed = on_name(&mut client, LIST, base.join("a/b").to_str().unwrap()).await;
    assert_eq!(listed.unwrap(), Value::from(format!("{name},")));
    assert_eq!(
        on_name(&mut client, PATH, &name).await.unwrap(),
        Value::from(name.as_str())
    );
    on_name(&mut client, REMOVE, &name).await.unwrap();
    on_name(&mut client, REMOVE, &name).await.unwrap();
    refused(
        on_name(&mut client, DOWNLOAD, &name).await,
        &["FileNotFoundError"],
    );
    // Relative ones still stay inside.
    refused(upload(&mut client, "../x", b"").await, &["work directory"]);
    upload(&mut client, "x", b"inside").await.unwrap();
    assert_eq!(entries(files.path()), ["x"]);
}

#[bisync]
#[twin_test]
async fn a_temporary_directory_goes_with_its_last_owner() {
    let (mut client, files) = open();
    upload(&mut client, "a/x", b"x").await.unwrap();
    let path = files.path().to_owned();
    drop(files);
    assert!(path.exists());
    drop(client);
    assert!(!path.exists());
}

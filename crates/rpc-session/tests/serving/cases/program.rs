//! Sessions over the pipes of a program that a client asks for.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rpc_proto::{OwnedValue, Packet, Returned, Value};
use tempfile::TempDir;

use super::StartProgram;
use super::server::{Options, Server};
use crate::support::stage::wait_until;
use crate::support::{Client, call, encoded_returned, init, init_with, look_up};

/// Takes an init packet and answers it, then a look-up of "f", then a call without arguments.
const PEER: &str = include_str!("../../shared/peer.sh");

fn server() -> Server {
    Server::with(Options {
        constructors: |constructors| constructors.with(StartProgram::NAME, StartProgram::default()),
        ..Options::default()
    })
}

fn start(program: impl Into<OwnedValue>) -> Packet<'static> {
    init_with(["rpc.PopenSession".into(), program.into()])
}

/// A folder for what a program leaves.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A program that writes down who it is, and then serves and does what `then` says.
    fn program(&self, then: &str) -> String {
        let folder = self.0.path().display();
        format!("#!/bin/sh\necho $$ > {folder}/pid\necho $0 > {folder}/name\n{PEER}\n{then}\n")
    }

    fn noted(&self, name: &str) -> String {
        let noted = fs::read_to_string(self.0.path().join(name)).unwrap();
        noted.trim().to_owned()
    }

    fn file(&self, text: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join("program");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// The program is gone, and nobody waits for it any more.
    fn wait_until_it_is_gone(&self) {
        let process = format!("/proc/{}", self.noted("pid"));
        if Path::new("/proc/self").exists() {
            wait_until("the program is gone", || !Path::new(&process).exists());
        }
    }
}

/// A client whose session runs in this program.
fn served(program: impl Into<OwnedValue>) -> (Server, Client) {
    let server = server();
    let mut client = server.stranger();
    client.asks(&start(program)).void();
    is_served(&mut client);
    (server, client)
}

fn is_served(client: &mut Client) {
    client.asks(&look_up("f")).pointer(10);
    let answer = encoded_returned(&Returned::Value(Value::Int(42)));
    client.asks(&call(10, [])).gets(&answer);
}

#[test]
fn a_program_of_the_server_serves() {
    let folder = Folder::new();
    let path = folder.file(&folder.program("take 12"), 0o755);
    let (server, mut client) = served(path.to_str().unwrap().to_owned());
    client.goodbye();
    server.finish().unwrap();
    folder.wait_until_it_is_gone();
    assert!(path.exists());
}

#[test]
fn a_program_of_the_client_serves_and_leaves_no_file() {
    let folder = Folder::new();
    let (server, mut client) = served(folder.program("take 12").into_bytes());
    client.goodbye();
    server.finish().unwrap();
    folder.wait_until_it_is_gone();
    let name = folder.noted("name");
    assert!(name.contains("rpc-program-"), "{name}");
    assert!(!Path::new(&name).exists(), "{name}");
}

#[test]
fn a_program_that_leaves_ends_its_session_only() {
    let folder = Folder::new();
    let (server, mut client) = served(folder.program("exit 3").into_bytes());
    for _ in 0..2 {
        client.asks(&call(10, []));
        let told = client.exception_text();
        assert!(told.contains("rpc-program-"), "{told}");
    }
    client.goodbye();
    server.finish().unwrap();
    folder.wait_until_it_is_gone();
}

#[test]
fn a_program_that_does_not_leave_is_ended() {
    let folder = Folder::new();
    let (server, client) = served(folder.program("exec sleep 1000").into_bytes());
    drop(client);
    server.finish().unwrap();
    folder.wait_until_it_is_gone();
}

#[test]
fn what_is_no_program_is_told_and_another_may_be_asked_for() {
    let folder = Folder::new();
    let here = folder.0.path().display().to_string();
    let server = server();
    let mut client = server.stranger();
    let missing = format!("{here}/missing");
    let told = client.asks(&start(missing.clone())).exception_text();
    assert!(
        told.starts_with(&format!("rpc.PopenSession: {missing} No such file")),
        "{told}"
    );
    client
        .asks(&start(here.clone()))
        .exception(&format!("rpc.PopenSession: {here} is not a file"));
    let path = folder.file("#!/bin/sh", 0o644).display().to_string();
    client
        .asks(&start(path.clone()))
        .exception(&format!("rpc.PopenSession: {path} is not executable"));
    for nothing in [&b""[..], b"\0\x01\x02"] {
        let told = client.asks(&start(nothing.to_vec())).exception_text();
        assert!(told.starts_with("cannot start "), "{told}");
    }
    client
        .asks(&init_with(["rpc.PopenSession".into()]))
        .exception(
            "rpc.PopenSession: expected the path of a program or its bytes, found no argument",
        );
    client.asks(&start(Value::Int(1))).exception(
        "rpc.PopenSession: expected the path of a program or its bytes, found an integer",
    );
    // One that says nothing.
    let told = client
        .asks(&start(b"#!/bin/sh\nexit 0\n".to_vec()))
        .exception_text();
    assert!(told.contains("rpc-program-"), "{told}");
    client.asks(&init()).void();
    client.is_served();
}

/// A program is written and started while others are started, too.
#[test]
fn many_programs_start_at_once() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let folder = Folder::new();
                    let server = server();
                    let mut client = server.stranger();
                    client
                        .asks(&start(folder.program("take 12").into_bytes()))
                        .void();
                    client.goodbye();
                    server.finish().unwrap();
                }
            });
        }
    });
}

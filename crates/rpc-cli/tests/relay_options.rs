//! `tvm-rpc relay`: where it records, what is wrong with its options, and what it does when it has no more room.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

#[allow(dead_code, reason = "of other tests")]
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::process::Signal;
use support::Service;
use tempfile::TempDir;

fn options<'a>(listen: &'a str, to: &'a str, file: &'a Path) -> [&'a str; 7] {
    let file = file.to_str().unwrap();
    ["relay", "--listen", listen, "--to", to, "--record", file]
}

/// What a relay says that does not even start.
fn refused(listen: &str, to: &str, file: &Path) -> (Option<i32>, String) {
    let output = support::tvm_rpc(&options(listen, to, file));
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A relay whose log goes to a file, and a connection through it.
fn logged(directory: &TempDir, more: &[&str]) -> (Service, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let file = directory.path().join("r.json");
    let log = format!("exec 2>'{}'", directory.path().join("log").display());
    let options = options("127.0.0.1:0", &to, &file);
    let relay = Service::start_limited(&log, &[&options[..], more].concat());
    let address: SocketAddr = relay.address().to_string().parse().unwrap();
    let client = TcpStream::connect(address).unwrap();
    let (server, _) = listener.accept().unwrap();
    (relay, client, server)
}

fn end(mut relay: Service) {
    relay.signal(Signal::INT);
    assert_eq!(relay.wait().code(), Some(0));
}

#[test]
fn what_is_no_file_is_left_alone() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink(at("socket"), at("link")).unwrap();
    symlink(at("nothing"), at("dangling")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    for (name, what) in [
        ("socket", "no regular file"),
        ("link", "no regular file"),
        ("dangling", "a link that leads nowhere"),
        ("directory", "a directory"),
    ] {
        let file = at(name);
        let before = fs::symlink_metadata(&file).unwrap().file_type();
        let expected = format!(
            "error: --record: {} is {what}; expected a file, or a name for one\n",
            file.display()
        );
        let said = refused("127.0.0.1:0", "127.0.0.1:1", &file);
        assert_eq!(said, (Some(2), expected));
        assert_eq!(fs::symlink_metadata(&file).unwrap().file_type(), before);
    }
    assert!(!at("nothing").exists());
}

#[test]
fn a_link_to_a_file_stays_one() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("target.json"), "old").unwrap();
    symlink("target.json", at("link.json")).unwrap();
    let relay = Service::start(&options("127.0.0.1:0", "127.0.0.1:1", &at("link.json")));
    end(relay);
    assert!(at("link.json").is_symlink());
    let written = fs::read_to_string(at("target.json")).unwrap();
    assert!(written.starts_with('{'), "{written}");
}

#[test]
fn who_cannot_listen_leaves_the_recording_alone() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("r.json");
    fs::write(&file, "of another relay").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let (status, said) = refused(&listen, "127.0.0.1:1", &file);
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "of another relay");
}

#[test]
fn a_host_that_is_unknown_is_wrong_usage() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("r.json");
    for (listen, to, option) in [
        ("no.such.invalid:0", "127.0.0.1:1", "--listen"),
        ("127.0.0.1:0", "no.such.invalid:1", "--to"),
    ] {
        let (status, said) = refused(listen, to, &file);
        assert_eq!(status, Some(2), "{said}");
        let expected = format!(
            "error: {option}: no host \"no.such.invalid\" is known; expected a name or an IP address: "
        );
        assert!(said.starts_with(&expected), "{said}");
    }
    assert!(!file.exists());
}

#[test]
fn a_full_recording_is_told_once_and_everything_is_passed_on() {
    const DATA: usize = 3 << 20;
    let directory = TempDir::new().unwrap();
    let (relay, mut client, mut server) = logged(&directory, &["--memory", "1", "--silent"]);
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        server.read_to_end(&mut all).unwrap();
        all.len()
    });
    let ack = [
        &(DATA as u64 + 4).to_le_bytes()[..],
        b"\x08\0\0\0",
        &vec![7; DATA],
    ]
    .concat();
    client
        .write_all(b"\x71\xf2\x0f\0\x09\0\0\0client:x1")
        .unwrap();
    for _ in 0..2 {
        client.write_all(&ack).unwrap();
    }
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(reading.join().unwrap(), 17 + 2 * (DATA + 12));
    // That the other side has ended, too, arrives when it is counted.
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    end(relay);
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(
        log.contains("the recording is full") && log.contains("--memory"),
        "{log}"
    );
    let recording = fs::read_to_string(directory.path().join("r.json")).unwrap();
    let recording: serde_json::Value = serde_json::from_str(&recording).unwrap();
    assert_eq!(recording["messages"].as_array().unwrap().len(), 1);
    // Two copies, and the ends of both directions.
    assert_eq!(recording["dropped"], 4);
}

#[test]
fn what_peers_say_steers_no_terminal() {
    let directory = TempDir::new().unwrap();
    let (relay, mut client, mut server) = logged(&directory, &["--verbose"]);
    // Once as JSON has it, and once as it must not be.
    for key in [
        &br#"[4, "\u001b[31m", "\u009b1m", 1]"#[..],
        b"[4, \"\x1b[31m\"]",
    ] {
        let length = u32::try_from(key.len()).unwrap().to_le_bytes();
        client
            .write_all(&[b"\x71\xf2\x02\0", &length[..], key].concat())
            .unwrap();
    }
    drop(client);
    let _ = server.read_to_end(&mut Vec::new());
    drop(server);
    end(relay);
    let file = directory.path().join("r.json");
    let steers = |text: &[u8]| {
        text.iter()
            .any(|byte| byte.is_ascii_control() && *byte != b'\n')
    };
    let log = fs::read(directory.path().join("log")).unwrap();
    assert!(!log.is_empty() && !steers(&log));
    for more in [&[][..], &["--brief"], &["--json"]] {
        let arguments = [&["decode", file.to_str().unwrap()], more].concat();
        let output = support::tvm_rpc(&arguments);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("[31m"), "{text}");
        assert!(!steers(text.as_bytes()), "{text:?}");
        assert!(!text.contains('\u{9b}') || more == ["--json"], "{text:?}");
        assert!(!steers(&output.stderr));
    }
}

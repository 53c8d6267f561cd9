//! `tvm-rpc relay` between peers: what it passes on, what it records, and what it takes.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

#[allow(dead_code, reason = "of other tests")]
mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use rpc_session::blocking::RemoteSession;
use rpc_session::{SessionOptions, args};
use rpc_transport::Address;
use rustix::process::Signal;
use support::{Service, wait_until};
use tempfile::TempDir;

/// A relay in front of `to`, and where it records.
struct Relay {
    service: Service,
    directory: TempDir,
}

impl Relay {
    fn start(to: impl ToString, more: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("recording.json");
        let to = to.to_string();
        let options = [
            &["relay", "--listen", "127.0.0.1:0", "--to", &to][..],
            &["--record", file.to_str().unwrap()],
            more,
        ];
        let service = Service::start(&options.concat());
        Self { service, directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("recording.json")
    }

    fn connect(&self) -> TcpStream {
        let address: SocketAddr = self.service.address().to_string().parse().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    fn recording(&self) -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(self.file()).unwrap()).unwrap()
    }

    /// The kinds of the messages in the recording.
    fn kinds(&self) -> Vec<String> {
        self.all("kind")
    }

    fn all(&self, member: &str) -> Vec<String> {
        let messages = self.recording()["messages"].clone();
        let messages = messages.as_array().unwrap().iter();
        messages
            .map(|message| message[member].as_str().unwrap().to_owned())
            .collect()
    }

    /// Ends it, as it should end.
    fn end(&mut self) {
        self.service.signal(Signal::TERM);
        assert_eq!(self.service.wait().code(), Some(0));
    }
}

/// A peer behind a relay, with the two ends of one connection through it.
fn pair(more: &[&str]) -> (Relay, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Relay::start(listener.local_addr().unwrap(), more);
    let client = relay.connect();
    let (server, _) = listener.accept().unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    (relay, client, server)
}

#[test]
fn a_session_is_recorded_and_explained() {
    let server = Service::start(&["server", "--port", "0", "--key", "x1", "--test-functions"]);
    let relay = Relay::start(server.address(), &[]);
    let address: &Address = relay.service.address();
    let session = RemoteSession::connect(address, "x1", &SessionOptions::default()).unwrap();
    let addone = session.function("rpc.test.addone").unwrap();
    let result: i64 = addone.call(args![41]).unwrap().try_into().unwrap();
    assert_eq!(result, 42);
    drop(addone);
    session.close();
    wait_until("the recording", || {
        relay.kinds().iter().filter(|kind| *kind == "close").count() == 2
    });

    let recording = relay.recording();
    assert_eq!(
        recording["connections"],
        serde_json::json!([{"id": 0, "link": "client-server", "proto": "rpc", "dialect": "ffi"}])
    );
    assert_eq!(recording["dialect"], "ffi");
    let notes = relay.all("note");
    assert!(
        notes.contains(&"return of a call: Int 42".to_owned()),
        "{notes:?}"
    );

    let file = relay.file();
    let explained = support::tvm_rpc(&["decode", "--brief", file.to_str().unwrap()]);
    assert_eq!(explained.status.code(), Some(0));
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(
        explained.contains("get global function(\"rpc.test.addone\")"),
        "{explained}"
    );
    assert_eq!(
        String::from_utf8_lossy(&explained.as_bytes()[..40])
            .lines()
            .next(),
        Some("connection 0: client-server rpc ffi")
    );
}

#[test]
fn each_direction_ends_by_itself() {
    let (mut relay, mut client, mut server) = pair(&[]);
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = String::new();
    server.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "question");
    server.write_all(b"answer").unwrap();
    drop(server);
    heard.clear();
    client.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "answer");
    relay.end();
    assert_eq!(relay.kinds(), ["raw", "close", "raw", "close"]);
    assert_eq!(relay.all("dir"), ["c2s", "c2s", "s2c", "s2c"]);
}

#[test]
fn a_connection_that_breaks_breaks_on_both_sides() {
    let (relay, mut client, server) = pair(&[]);
    client.write_all(b"never read").unwrap();
    wait_until("the bytes to arrive", || {
        server.peek(&mut [0; 64]).unwrap() == 10
    });
    // What was not read makes the end of this side a reset.
    drop(server);
    let error = client.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    wait_until("the recording", || {
        relay.kinds().contains(&"close".to_owned())
    });
}

#[test]
fn a_peer_that_is_gone_breaks_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut relay = Relay::start(address, &["--silent"]);
    let error = relay.connect().read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    relay.end();
    let recording = relay.recording();
    assert_eq!(recording["connections"].as_array().unwrap().len(), 1);
    assert_eq!(relay.kinds(), ["close", "close"]);
}

#[test]
fn nobody_is_read_from_faster_than_the_other_side_reads() {
    /// More than all buffers of the system between the two.
    const MUCH: usize = 128 << 20;
    let (relay, mut client, mut server) = pair(&[]);
    client.set_nonblocking(true).unwrap();
    let piece = [7; 64 << 10];
    let mut sent = 0;
    // All buffers are full when nothing more is taken for a while.
    let mut refused = 0;
    while refused < 20 {
        match client.write(&piece) {
            Ok(written) => {
                sent += written;
                refused = 0;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                refused += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert!(sent < MUCH, "{sent} bytes were taken that nobody reads");
    }
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = 0;
    let mut piece = vec![0; 64 << 10];
    loop {
        match server.read(&mut piece).unwrap() {
            0 => break,
            read => {
                assert!(piece[..read].iter().all(|byte| *byte == 7));
                received += read;
            }
        }
    }
    assert_eq!(received, sent);
    assert!(support::peak_memory(relay.service.id()) < 64 << 20);
}

#[test]
fn a_large_copy_takes_no_large_memory() {
    const DATA: usize = 128 << 20;
    let (mut relay, mut client, mut server) = pair(&["--keep", "1000"]);
    let handshake = b"\x71\xf2\x0f\0\0\0\0\0";
    client.write_all(handshake).unwrap();
    server.write_all(handshake).unwrap();
    // What is not read would make the end a reset.
    client.read_exact(&mut [0; 8]).unwrap();
    let reading = std::thread::spawn(move || {
        let mut piece = vec![0; 1 << 20];
        let mut read = 0;
        loop {
            match server.read(&mut piece).unwrap() {
                0 => return read,
                piece => read += piece,
            }
        }
    });
    let nbytes = DATA as u64 + 4;
    client.write_all(&nbytes.to_le_bytes()).unwrap();
    client.write_all(b"\x08\0\0\0").unwrap();
    let data = vec![1; 1 << 20];
    for _ in 0..DATA >> 20 {
        client.write_all(&data).unwrap();
    }
    drop(client);
    assert_eq!(reading.join().unwrap(), DATA + 8 + 12);
    assert!(support::peak_memory(relay.service.id()) < 64 << 20);
    relay.end();
    let message = &relay.recording()["messages"][2];
    assert_eq!(message["hex"].as_str().unwrap().len(), 2 * 1000);
    assert_eq!(message["omitted"], DATA + 12 - 1000);
}

#[test]
fn the_recording_is_whole_after_each_connection_and_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut relay = Relay::start(listener.local_addr().unwrap(), &[]);
    assert_eq!(relay.kinds(), [""; 0]);
    let talk = || {
        let mut client = relay.connect();
        let (mut server, _) = listener.accept().unwrap();
        for stream in [&mut client, &mut server] {
            stream.write_all(b"\x71\xf2\x02\0").unwrap();
        }
        (client, server)
    };
    const CONNECTIONS: usize = 50;
    let open: Vec<_> = (0..CONNECTIONS).map(|_| talk()).collect();
    for (mut client, server) in open {
        drop(server);
        let mut heard = Vec::new();
        // The four bytes, or a reset if they were not read on the other side.
        let _ = client.read_to_end(&mut heard);
    }
    wait_until("all ends to be recorded", || {
        relay.kinds().iter().filter(|kind| *kind == "close").count() == 2 * CONNECTIONS
    });
    let (client, server) = talk();
    let mut piece = [0; 4];
    (&client).read_exact(&mut piece).unwrap();
    (&server).read_exact(&mut piece).unwrap();
    (&client).write_all(b"\x03\0\0\0[").unwrap();
    wait_until("it to arrive", || server.peek(&mut [0; 8]).unwrap() == 5);
    relay.end();
    let kinds = relay.kinds();
    assert_eq!(kinds[kinds.len() - 3..], ["magic", "magic", "raw"]);
    let left: Vec<_> = std::fs::read_dir(relay.directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_at_the_start() {
    let failed = support::tvm_rpc(&[
        "relay",
        "--listen",
        "127.0.0.1:0",
        "--to",
        "127.0.0.1:1",
        "--record",
        "/nonexistent/r.json",
    ]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(
        said,
        "error: cannot write the recording: /nonexistent/r.json: \
         No such file or directory (os error 2)\n"
    );
}

#[test]
fn the_last_words_of_a_peer_that_stops_reading_arrive() {
    let (relay, mut client, mut server) = pair(&[]);
    client.write_all(b"a request").unwrap();
    server.read_exact(&mut [0; 9]).unwrap();
    server.write_all(b"the last answer").unwrap();
    drop(server);
    // What is sent now cannot be passed on any more.
    let _ = client.write_all(b"another request");
    let mut heard = [0; 15];
    client.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"the last answer");
    drop(client);
    wait_until("both ends", || {
        relay.kinds().iter().filter(|kind| *kind == "close").count() == 2
    });
}

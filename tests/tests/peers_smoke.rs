//! The test kit itself: its real peers start, speak the tracker protocol, end and restart.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rpc_tests::modules::{ANSWER, MATMUL, MODEL, VADD};
use rpc_tests::peers::{Server, Tracker};
use rpc_tests::wait_until;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(10);
const TRACKER_MAGIC: [u8; 4] = [0x71, 0xf2, 0x02, 0x00];

fn connect(tracker: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect_timeout(&tracker, LIMIT).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(&TRACKER_MAGIC).unwrap();
    let mut echo = [0; 4];
    stream.read_exact(&mut echo).unwrap();
    assert_eq!(echo, TRACKER_MAGIC);
    stream
}

fn summary(tracker: SocketAddr) -> Value {
    let mut stream = connect(tracker);
    stream.write_all(b"\x03\x00\x00\x00[6]").unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut body = vec![0; usize::try_from(i32::from_le_bytes(length)).unwrap()];
    stream.read_exact(&mut body).unwrap();
    let reply: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(reply[0], json!(0), "status of the summary {reply}");
    reply[1].clone()
}

#[test]
fn a_server_offers_itself_to_the_tracker() {
    let tracker = Tracker::start();
    let server = Server::builder()
        .key("smoke")
        .tracker(tracker.addr())
        .test_functions()
        .start();

    wait_until(LIMIT, "the server in the tracker's queue", || {
        summary(tracker.addr())["queue_info"]["smoke"] == json!({"free": 1, "pending": 0})
    });
    assert_eq!(
        summary(tracker.addr())["server_info"],
        json!([{"key": "server:smoke", "addr": ["127.0.0.1", server.addr().port()]}])
    );
}

#[test]
fn a_killed_server_leaves_the_tracker() {
    let tracker = Tracker::start();
    let mut server = Server::builder()
        .key("smoke")
        .tracker(tracker.addr())
        .custom_addr("device.test")
        .start();
    let listed =
        |addr: SocketAddr| json!([{"key": "server:smoke", "addr": ["device.test", addr.port()]}]);

    wait_until(LIMIT, "the server in the tracker's list", || {
        summary(tracker.addr())["server_info"] == listed(server.addr())
    });
    server.kill();
    wait_until(LIMIT, "the server to leave the tracker's list", || {
        summary(tracker.addr())["server_info"] == json!([])
    });
    TcpStream::connect(server.addr()).expect_err("nobody listens on the killed server's port");
}

#[test]
fn a_tracker_restarts_empty_on_its_port_and_the_server_returns() {
    let mut tracker = Tracker::start();
    let addr = tracker.addr();
    let _server = Server::builder().key("smoke").tracker(addr).start();
    wait_until(LIMIT, "the server in the tracker's queue", || {
        summary(addr)["queue_info"]["smoke"]["free"] == json!(1)
    });

    tracker.kill();
    TcpStream::connect(addr).expect_err("nobody listens on the killed tracker's port");
    tracker.restart_on_same_port();
    assert_eq!(tracker.addr(), addr);

    // The server asks every 2 seconds and tries a lost tracker again every 5.
    wait_until(3 * LIMIT, "the server in the new tracker's queue", || {
        summary(addr)["queue_info"]["smoke"]["free"] == json!(1)
    });
}

#[test]
fn the_compiled_modules_are_there() {
    for module in [VADD, MATMUL, ANSWER] {
        for path in [module.shared_library(), module.archive(), module.object()] {
            assert_ne!(path.metadata().unwrap().len(), 0, "{}", path.display());
        }
    }
    assert_ne!(MODEL.shared_library().metadata().unwrap().len(), 0);
}

//! Trackers and servers, ours and the reference's, and the reference's client.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;

/// A key may hold colons.
const KEYS: [&str; 2] = ["test_device", "127.0.0.1:5555"];

fn main_job(tracker: SocketAddr, key: &str) {
    client(
        "main_job",
        &["--tracker", &tracker.to_string(), "--key", key],
    );
}

fn times_out(tracker: SocketAddr, key: &str) {
    client(
        "session_timeout",
        &["--tracker", &tracker.to_string(), "--key", key],
    );
}

/// Host and port of the servers that a tracker lists for a key.
fn listed(tracker: SocketAddr, key: &str) -> Vec<(String, u64)> {
    let summary = summary(tracker);
    let servers = summary["summary"]["server_info"]
        .as_array()
        .expect("a list");
    let named = format!("server:{key}");
    let listed = servers.iter().filter(|server| server["key"] == *named);
    let address = |server: &Value| {
        let host = server["addr"][0].as_str().expect("a host");
        (host.to_owned(), server["addr"][1].as_u64().expect("a port"))
    };
    listed.map(address).collect()
}

#[test]
fn the_main_job_on_our_tracker_and_our_server() {
    for key in KEYS {
        let tracker = Tracker::start();
        let _server = Server::at_tracker(key, tracker.addr());
        main_job(tracker.addr(), key);
        times_out(tracker.addr(), key);
        wait_for_free(tracker.addr(), key, 1);
    }
}

#[test]
fn the_main_job_on_our_tracker_and_their_server() {
    for key in KEYS {
        let tracker = Tracker::start();
        let _server = peers::Server::builder()
            .key(key)
            .tracker(tracker.addr())
            .start();
        main_job(tracker.addr(), key);
        times_out(tracker.addr(), key);
        wait_for_free(tracker.addr(), key, 1);
    }
}

#[test]
fn the_main_job_on_their_tracker_and_our_server() {
    for key in KEYS {
        let tracker = peers::Tracker::start();
        let _server = Server::at_tracker(key, tracker.addr());
        main_job(tracker.addr(), key);
        times_out(tracker.addr(), key);
        wait_for_free(tracker.addr(), key, 1);
    }
}

#[test]
fn servers_come_and_go_at_our_tracker() {
    for key in KEYS {
        let tracker = Tracker::start();
        let address = tracker.addr().to_string();
        let at = ["--tracker", &address];
        let first = Server::start(key, &at);
        let second = Server::start(key, &[&at[..], &["--custom-addr", "test_addr"]].concat());
        wait_for_free(tracker.addr(), key, 2);
        let port = |server: &Server| u64::from(server.addr().port());
        let mut servers = listed(tracker.addr(), key);
        servers.sort();
        let expected = [
            ("127.0.0.1".to_owned(), port(&first)),
            ("test_addr".to_owned(), port(&second)),
        ];
        assert_eq!(servers, expected);

        drop(first);
        wait_for_free(tracker.addr(), key, 1);
        assert_eq!(listed(tracker.addr(), key), expected[1..]);
        drop(second);
        wait_for_free(tracker.addr(), key, 0);
        assert_eq!(listed(tracker.addr(), key), []);
        // The queue stays listed, as the reference's own tests want it.
        assert_eq!(queue(tracker.addr(), key), (Some(0), Some(0)));
    }
}

/// A client that was granted the device keeps it; the next one waits, and has it when the first goes.
#[test]
fn two_clients_share_a_device_one_after_the_other() {
    for key in KEYS {
        let tracker = Tracker::start();
        let _server = Server::at_tracker(key, tracker.addr());
        wait_for_free(tracker.addr(), key, 1);
        let mut first = holding_client(tracker.addr(), key, 1);
        granted(&mut first);
        let mut second = holding_client(tracker.addr(), key, 1);
        wait_until(SOON, "the second client to wait", || {
            queue(tracker.addr(), key) == (Some(0), Some(1))
        });
        end(first);
        granted(&mut second);
        assert_eq!(queue(tracker.addr(), key), (Some(0), Some(0)));
        end(second);
        wait_for_free(tracker.addr(), key, 1);
    }
}

/// A client of the reference that requests a device and keeps it. It ends with this process, whatever
/// happens.
fn holding_client(tracker: SocketAddr, key: &str, priority: i32) -> Child {
    let code = format!(
        "import sys; from tvm import rpc\n\
         session = rpc.connect_tracker('{}', {}).request('{key}', priority={priority})\n\
         print('granted', flush=True)\n\
         sys.stdin.read()",
        tracker.ip(),
        tracker.port()
    );
    Command::new(std::env::var_os("TVM_RPC_PYTHON").expect("run `cargo xtask interop`"))
        .args(["-B", "-c", &code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start a client")
}

/// Waits until the client has its device.
fn granted(client: &mut Child) {
    let mut line = String::new();
    let output = client.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "granted\n");
}

fn end(mut client: Child) {
    client.kill().expect("end a client");
    client.wait().expect("wait for a client");
}

/// Devices that are free, and requests that wait.
fn queue(tracker: SocketAddr, key: &str) -> (Option<u64>, Option<u64>) {
    let queue = &summary(tracker)["summary"]["queue_info"][key];
    (queue["free"].as_u64(), queue["pending"].as_u64())
}

#[test]
fn the_highest_priority_has_the_device_first() {
    let key = "board";
    let tracker = Tracker::start();
    let server = Server::at_tracker(key, tracker.addr());
    wait_for_free(tracker.addr(), key, 1);
    let mut holds = holding_client(tracker.addr(), key, 1);
    granted(&mut holds);
    let waiting = |count| {
        wait_until(SOON, "a client to wait", || {
            queue(tracker.addr(), key) == (Some(0), Some(count))
        });
    };
    let mut low = holding_client(tracker.addr(), key, 1);
    waiting(1);
    let mut high = holding_client(tracker.addr(), key, 5);
    waiting(2);
    end(holds);
    granted(&mut high);
    assert_eq!(queue(tracker.addr(), key), (Some(0), Some(1)));
    end(high);
    granted(&mut low);

    // A device that is lost is offered to nobody, and one that comes goes to who waits.
    let mut late = holding_client(tracker.addr(), key, 1);
    waiting(1);
    drop(server);
    let _another = Server::at_tracker(key, tracker.addr());
    granted(&mut late);
    end(low);
    end(late);
}

#[test]
fn a_tracker_that_restarts_is_found_again() {
    let mut tracker = Tracker::start();
    let _ours = Server::at_tracker("ours", tracker.addr());
    let _theirs = peers::Server::builder()
        .key("theirs")
        .tracker(tracker.addr())
        .start();
    for key in ["ours", "theirs"] {
        wait_for_free(tracker.addr(), key, 1);
    }
    tracker.restart_on_same_port();
    for key in ["ours", "theirs"] {
        wait_for_free(tracker.addr(), key, 1);
        main_job(tracker.addr(), key);
    }
}

#[test]
fn a_client_that_waits_outlives_its_tracker() {
    let key = "late";
    let mut tracker = Tracker::start();
    let address = tracker.addr().to_string();
    let waiting = tvm_rpc()
        .args(["call", "rpc.test.addone", "1"])
        .args(["--tracker", &address, "--key", key])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start our client");
    let queued = || queue(tracker.addr(), key).1 == Some(1);
    wait_until(SOON, "the client to wait", queued);
    tracker.restart_on_same_port();
    let _server = Server::at_tracker(key, tracker.addr());
    let output = waiting.wait_with_output().expect("wait for our client");
    assert!(output.status.success());
    assert_eq!(output.stdout, b"2\n");
}

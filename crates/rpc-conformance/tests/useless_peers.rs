//! Every case can fail: on peers that do nothing useful no case passes on all of them, and none takes
//! longer than its deadline.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rpc_conformance::{Options, Peer, Run, Status, Target, run};

/// What a useless peer does with a connection.
type Serve = fn(TcpStream);

/// Accepts and says nothing.
fn silent(mut stream: TcpStream) {
    while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
}

/// Closes at once.
fn closing(stream: TcpStream) {
    drop(stream);
}

/// Says what it was told.
fn echoing(mut stream: TcpStream) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        if stream.write_all(&piece[..read]).is_err() {
            break;
        }
    }
}

/// Answers everything by the same bytes: a success, for a tracker.
fn agreeing(mut stream: TcpStream) {
    let mut answer: &[u8] = &[0x71, 0xf2, 0x02, 0];
    while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {
        if stream.write_all(answer).is_err() {
            break;
        }
        answer = &[1, 0, 0, 0, b'0'];
    }
}

/// Accepts every handshake, and answers everything by a pointer: there is every function.
fn pointing(mut stream: TcpStream) {
    let mut answer = b"\x71\xf2\x0f\0\x0a\0\0\0server:key".to_vec();
    let pointer = b"\x14\0\0\0\0\0\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0\x07\0\0\0\0\0\0\0";
    while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {
        if stream.write_all(&answer).is_err() {
            break;
        }
        answer = pointer.to_vec();
    }
}

/// Starts a peer that serves for as long as the test runs.
fn start(serve: Serve) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    addr
}

/// Every case of the role on each of these peers: ids of cases that never failed.
fn unfailing(target: fn(Peer) -> Target, peers: &[(&str, Serve)]) -> BTreeSet<String> {
    let mut unfailing = BTreeSet::new();
    let mut failing = BTreeSet::new();
    std::thread::scope(|scope| {
        let runs: Vec<_> = peers
            .iter()
            .map(|&(name, serve)| scope.spawn(move || (name, all_cases(target, serve))))
            .collect();
        for handle in runs {
            let (name, run) = handle.join().unwrap();
            for case in run.cases {
                assert_ne!(
                    case.status,
                    Status::Error,
                    "{name}: {} {}",
                    case.id,
                    case.note
                );
                let seconds = Duration::from_millis(case.milliseconds).as_secs();
                assert!(seconds < 20, "{name}: {} took {seconds} s", case.id);
                // What may spoil a peer is not played on one that the suite cannot start again.
                let was_played = case.status != Status::Skipped;
                let failed = case.failed_check().is_some();
                if was_played && failed {
                    failing.insert(case.id);
                } else if was_played {
                    unfailing.insert(case.id);
                }
            }
        }
    });
    &unfailing - &failing
}

fn all_cases(target: fn(Peer) -> Target, serve: Serve) -> Run {
    let peer = Peer::Running(start(serve).to_string());
    let options = Options::default().with_slow(0.01).with_jobs(16);
    let began = Instant::now();
    let run = run(&target(peer), &options, &|_, _| ()).unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "{:?}",
        began.elapsed()
    );
    run
}

#[test]
fn every_case_for_trackers_can_fail() {
    let peers: [(&str, Serve); 4] = [
        ("silent", silent),
        ("closing", closing),
        ("echoing", echoing),
        ("agreeing", agreeing),
    ];
    let unfailing = unfailing(Target::Tracker, &peers);
    assert!(unfailing.is_empty(), "{unfailing:?}");
}

#[test]
fn every_case_for_servers_can_fail() {
    let peers: [(&str, Serve); 4] = [
        ("silent", silent),
        ("closing", closing),
        ("echoing", echoing),
        ("pointing", pointing),
    ];
    let target = |peer| Target::Server {
        peer,
        key: "key".to_owned(),
    };
    let unfailing = unfailing(target, &peers);
    assert!(unfailing.is_empty(), "{unfailing:?}");
}

#[test]
fn every_case_for_clients_can_fail() {
    // One that is done at once, one that fails at once, one that does nothing, and one that never stops
    // saying the same.
    let commands = ["true", "false", "sleep 100", "yes"];
    let options = Options::default().with_slow(0.01).with_jobs(8);
    for command in commands {
        let target = Target::Client {
            command: command.to_owned(),
        };
        let run = run(&target, &options, &|_, _| ()).unwrap();
        assert!(!run.cases.is_empty());
        for case in run.cases {
            assert!(
                case.failed_check().is_some(),
                "{command}: {} {:?} {}",
                case.id,
                case.status,
                case.note
            );
            assert!(case.milliseconds < 20_000, "{command}: {}", case.id);
        }
    }
}

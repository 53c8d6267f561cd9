//! The conformance suite finds what is broken: each of its broken peers, which are this program's own
//! peers with one defect, fails the cases that are there to find it, and without a defect passes them.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::net::SocketAddr;

use rpc_conformance::broken::{Defect, Relay, defects, healthy};
use rpc_conformance::{Options, Peer, Role, Run, Selection, Status, Target, run};
use support::Service;

fn addr(service: &Service) -> SocketAddr {
    service.address().to_string().parse().unwrap()
}

/// Plays these cases on a peer that is reached through a relay.
fn play(defect: &'static Defect, to: SocketAddr, cases: &[&str], slow: f64) -> Run {
    let relay = Relay::start(defect, to).unwrap();
    let peer = Peer::Running(relay.addr().to_string());
    let target = match defect.role {
        Role::Server => Target::Server {
            peer,
            key: "conformance".to_owned(),
        },
        _ => Target::Tracker(peer),
    };
    let only = cases.iter().map(ToString::to_string);
    let options = Options::default()
        .with_selection(Selection::all().with_only(only))
        .with_slow(slow);
    run(&target, &options, &|_, _| ()).unwrap()
}

/// Cases that missed a defect, in words.
fn missed(defect: &'static Defect, to: SocketAddr) -> Vec<String> {
    if defect.found_by.is_empty() {
        return vec![format!("{}: no case is there to find it", defect.name)];
    }
    let run = play(defect, to, defect.found_by, 0.2);
    assert_eq!(run.cases.len(), defect.found_by.len(), "{}", defect.name);
    let found = |status| matches!(status, Status::Fail | Status::Warn);
    let missed = run.cases.iter().filter(|case| !found(case.status));
    missed
        .map(|case| format!("{} {}: {} {}", defect.name, case.id, case.status, case.note))
        .collect()
}

/// Every defect of a role is found by each case that is there to find it. Each has a healthy peer of its
/// own behind it, so that nothing is found because others keep the peer busy.
fn all_are_found(role: Role, start: fn() -> Service) {
    const AT_A_TIME: usize = 4;
    let defects: Vec<_> = defects(role).collect();
    let missed: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_A_TIME)
            .map(|first| {
                let own: Vec<_> = defects.iter().skip(first).step_by(AT_A_TIME).collect();
                scope.spawn(move || {
                    let missed = own.into_iter().map(|defect| {
                        let service = start();
                        missed(defect, addr(&service))
                    });
                    missed.flatten().collect::<Vec<_>>()
                })
            })
            .collect();
        let missed = threads.into_iter().map(|thread| thread.join().unwrap());
        missed.flatten().collect()
    });
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The relay itself is no defect: what finds the defects passes through it.
fn nothing_is_found_in_a_healthy_one(role: Role, service: &Service) {
    let to = addr(service);
    let cases: Vec<_> = defects(role)
        .flat_map(|defect| defect.found_by)
        .copied()
        .collect();
    let none = Box::leak(Box::new(healthy(role)));
    let run = play(none, to, &cases, 1.0);
    let failed: Vec<_> = run
        .cases
        .iter()
        .filter(|case| case.status != Status::Pass)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn broken_trackers_are_found() {
    all_are_found(Role::Tracker, tracker);
}

#[test]
fn a_healthy_tracker_passes() {
    nothing_is_found_in_a_healthy_one(Role::Tracker, &tracker());
}

fn tracker() -> Service {
    Service::start(&["tracker", "--port", "0", "--silent"])
}

fn server() -> Service {
    Service::start(&[
        "server",
        "--port",
        "0",
        "--key",
        "conformance",
        "--test-functions",
        "--silent",
    ])
}

#[test]
fn broken_servers_are_found() {
    all_are_found(Role::Server, server);
}

#[test]
fn a_healthy_server_passes() {
    nothing_is_found_in_a_healthy_one(Role::Server, &server());
}

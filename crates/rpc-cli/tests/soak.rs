//! Soaks of our tracker and server: nothing is left of conversations that have ended.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use rpc_conformance::{Load, Options, Peer, Soaked, Target, soak};

const LOAD: Load = Load {
    connections: 8,
    cycles: 100,
};

fn peer(arguments: &str) -> Peer {
    let program = env!("CARGO_BIN_EXE_tvm-rpc");
    Peer::Command(format!("'{program}' {arguments}"))
}

fn soaked(target: &Target) -> Soaked {
    let soaked = soak(target, &Options::default(), LOAD).unwrap();
    assert_eq!((soaked.done, soaked.failed), (90, 0), "{soaked:#?}");
    assert!(soaked.median <= soaked.percentile_99 && soaked.percentile_99 <= soaked.longest);
    let (before, after) = soaked.used.unwrap();
    assert!(before.memory > 0 && after.files > 0);
    soaked
}

#[test]
fn a_tracker_keeps_nothing_of_who_has_gone() {
    let soaked = soaked(&Target::Tracker(peer("tracker --port 0")));
    let left = soaked.left.unwrap();
    assert_eq!((left.free, left.pending, left.servers), (0, 0, 0));
}

#[test]
fn a_server_serves_one_session_after_the_other() {
    let soaked = soaked(&Target::Server {
        peer: peer("server --port 0 --key {key}"),
        key: "k".to_owned(),
    });
    assert_eq!(soaked.left, None);
}

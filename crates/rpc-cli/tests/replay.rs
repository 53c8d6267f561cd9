//! Conversations that were recorded between the reference's peers, played again with ours.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::path::Path;

use rpc_conformance::{Options, Peer, Role, Status, Target, replay, run};
use support::Service;

fn recorded(scenario: &str) -> std::path::PathBuf {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    vectors.join(format!("traces/apache-tvm-0.27.0.post1/{scenario}.json"))
}

fn expect_pass(target: &Target, scenario: &str) {
    let case = replay(&recorded(scenario), target.role()).unwrap();
    let options = Options::default().with_replays([case]);
    let run = run(target, &options, &|_, _| ()).unwrap();
    let [case] = &run.cases[..] else {
        panic!("{run:?}")
    };
    assert_eq!(case.status, Status::Pass, "{case:#?}");
}

#[test]
fn our_tracker_answers_as_the_reference() {
    for scenario in ["tracker_basic", "tracker_custom_addr", "tracker_nonascii"] {
        // What was recorded, was on a new tracker.
        let tracker = Service::start(&["tracker", "--port", "0"]);
        let peer = Peer::Running(tracker.address().to_string());
        expect_pass(&Target::Tracker(peer), scenario);
    }
}

#[test]
fn our_server_answers_as_the_reference() {
    let server = Service::start(&["server", "--port", "0", "--key", "k", "--test-functions"]);
    let target = Target::Server {
        peer: Peer::Running(server.address().to_string()),
        key: "k".to_owned(),
    };
    for scenario in [
        "handshake_success",
        "session_alloc_scope",
        "session_get_current_stream",
        "session_init_noargs",
        "session_shutdown",
        "session_streams",
        "session_syscalls_hand",
        "session_version_mismatch",
    ] {
        expect_pass(&target, scenario);
    }
}

#[test]
fn a_difference_is_found() {
    let tracker = Service::start(&["tracker", "--port", "0"]);
    let peer = Peer::Running(tracker.address().to_string());
    // Its counts have a client that has gone, which ours have not.
    let case = replay(&recorded("tracker_priority"), Role::Tracker).unwrap();
    let options = Options::default().with_replays([case]);
    let run = run(&Target::Tracker(peer), &options, &|_, _| ()).unwrap();
    assert_eq!(run.cases[0].failed_check().unwrap().name, "message-17");
}

//! Recorded conversations of the reference's peers keep the specification, but where they were made to
//! break it, and that is found.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::path::Path;

use rpc_conformance::{Finding, observe};
use rpc_recording::Conversation;

fn findings(peer: &str, scenario: &str) -> Vec<Finding> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/traces");
    let file = traces.join(format!("{peer}/{scenario}.json"));
    observe(&Conversation::read(&file).unwrap())
}

#[test]
fn real_peers_keep_the_specification() {
    for scenario in [
        "handshake_success",
        "session_alloc_scope",
        "session_call_args",
        "session_call_returns",
        "session_chunked_copy",
        "session_device_attrs",
        "session_exceptions",
        "session_files",
        "session_get_global_func",
        "session_init_constructor",
        "session_init_multihop",
        "session_module",
        "session_objects",
        "session_return_tensor",
        "session_streams",
        "session_tensor_copy",
        "session_timeout",
        "session_timeout_busy",
        "tracker_basic",
        "tracker_custom_addr",
        "tracker_priority",
        "tracker_real_server_client",
    ] {
        for peer in ["apache-tvm-0.27.0.post1", "hhb-tvm-3.2.3"] {
            assert_eq!(findings(peer, scenario), [], "{peer} {scenario}");
        }
    }
}

#[test]
fn what_was_broken_by_hand_is_found() {
    let clauses = |scenario| {
        let found = findings("apache-tvm-0.27.0.post1", scenario);
        found
            .into_iter()
            .map(|finding| finding.clause)
            .collect::<Vec<_>>()
    };
    assert!(clauses("malformed_packets").contains(&"4.3"));
    assert!(clauses("malformed_packets").contains(&"4.3.2"));
    assert!(clauses("tracker_errors").contains(&"2.2"));
    assert!(clauses("fake_server_replies").contains(&"4.2.1"));
}

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
    assert!(clauses("tracker_errors").contains(&"2.3"));
    assert!(clauses("fake_server_replies").contains(&"4.2.1"));
}

/// Who is said to have done what, of messages on one connection: who sent each, what it is, and its bytes.
fn blamed(proto: &str, messages: &[(&str, &str, &str)]) -> Vec<(String, &'static str)> {
    let messages: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(i, (dir, kind, hex))| {
            format!(r#"{{"i": {i}, "conn": 0, "dir": "{dir}", "kind": "{kind}", "hex": "{hex}"}}"#)
        })
        .collect();
    let text = format!(
        r#"{{"connections": [{{"id": 0, "proto": "{proto}"}}], "messages": [{}]}}"#,
        messages.join(",")
    );
    let conversation = Conversation::parse(text.as_bytes()).unwrap();
    let findings = observe(&conversation).into_iter();
    let findings = findings.map(|finding| (format!("{:?}", finding.by), finding.clause));
    findings.collect()
}

const EXCEPTION: &str = "17000000000000000500000001000000080000000300000000000000616263";
const GET_FUNCTION: &str = "2300000000000000090000000100000008000000\
                            0f000000000000007270632e746573742e6164646f6e65";
const HANDLE: &str = "14000000000000000400000001000000040000005024ce269f550000";
const FREE: &str = "14000000000000000a00000001000000040000005024ce269f550000";
const NULL: &str = "0c00000000000000040000000100000000000000";

#[test]
fn who_answers_a_malformed_request_is_not_to_blame() {
    let client = |clause| vec![("C2s".to_owned(), clause)];
    // A call without a number of values, and its exception.
    let call = ("c2s", "packet", "040000000000000003000000");
    let refused = ("s2c", "packet", EXCEPTION);
    assert_eq!(blamed("rpc", &[call, refused]), client("4.3"));
    // What is no message may be several requests.
    let raw = ("c2s", "raw", "ffff");
    assert_eq!(blamed("rpc", &[raw, refused, refused]), client("4.3"));
    // So may be a reply in place of a request.
    let reply = ("c2s", "packet", NULL);
    assert_eq!(blamed("rpc", &[reply, refused]), client("4.3.2"));
    // To a tracker: [ alone, and its answer 1.
    let frame = ("c2s", "json", "010000005b");
    let answer = ("s2c", "json", "0100000031");
    assert_eq!(blamed("tracker", &[frame, answer]), client("2.3"));
    assert_eq!(blamed("tracker", &[answer]), [("S2c".to_owned(), "2.2.1")]);
    assert_eq!(blamed("rpc", &[refused]), [("S2c".to_owned(), "4.2.3")]);
}

#[test]
fn who_was_cut_off_is_not_to_blame() {
    let ask = ("c2s", "packet", GET_FUNCTION);
    // The recording ended when this much of the reply had passed.
    let half = ("s2c", "raw", &HANDLE[..30]);
    assert_eq!(blamed("rpc", &[ask, half]), []);
    let close = ("c2s", "close", "");
    assert_eq!(blamed("rpc", &[ask, half, close]), []);
    // Where somebody goes on, nothing was cut off.
    let on = blamed("rpc", &[ask, half, ask]);
    assert_eq!(on, [("S2c".to_owned(), "4.3")]);
    // No reply begins so: a length of four bytes, and other bytes behind them than a code.
    let nonsense = ("s2c", "raw", "0400000000000000ffffffffff");
    assert_eq!(blamed("rpc", &[ask, nonsense]), [("S2c".to_owned(), "4.3")]);
}

#[test]
fn who_gives_up_what_was_given_unreadably_is_not_to_blame() {
    let ask = ("c2s", "packet", GET_FUNCTION);
    let free = ("c2s", "packet", FREE);
    let freed = ("s2c", "packet", NULL);
    let given = [ask, ("s2c", "packet", HANDLE), free, freed];
    assert_eq!(blamed("rpc", &given), []);
    let twice = [&given[..], &[free, freed]].concat();
    assert_eq!(blamed("rpc", &twice), [("C2s".to_owned(), "9.9.1")]);
    // The reply ends in the middle of the handle.
    let cut = "10000000000000000400000001000000040000005024ce26";
    let unreadable = [ask, ("s2c", "packet", cut), free, freed];
    assert_eq!(blamed("rpc", &unreadable), [("S2c".to_owned(), "4.3")]);
}

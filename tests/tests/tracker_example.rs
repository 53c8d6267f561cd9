//! The example of `docs/tracker-example.md`: a tracker in Python, written from the specification alone,
//! keeps all of it.

use rpc_conformance::{Chunking, Options, Peer, Status, Target, run};

#[test]
fn it_passes_every_case_however_messages_are_cut() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/tracker.py");
    let peer = Peer::Command(format!("python3 '{program}' {{port}}"));
    let options = Options::default().with_chunkings(Chunking::ALL);
    let run = run(&Target::Tracker(peer), &options, &|_, _| ()).expect("python3 starts");
    let missed: Vec<_> = run
        .cases
        .iter()
        .filter(|case| case.status != Status::Pass)
        .map(|case| format!("{} {}: {}", case.id, case.chunking, case.status))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

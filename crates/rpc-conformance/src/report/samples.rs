//! A run that was made up, with every outcome in it.

use std::collections::BTreeMap;

use crate::case::{Level, Role};
use crate::results::{FORMAT, PeerInfo, Played, Run, Status};
use crate::stage::{Check, Chunking};
use crate::transcript::{Direction, End, Event, What};

/// A case that passes.
pub(crate) const PASSING: &str = "TRK-PUT-001";
/// A MUST that fails.
pub(crate) const FAILING: &str = "TRK-PUT-002";
/// At this check.
pub(crate) const FAILED_CHECK: &str = "code";

pub(crate) fn run() -> Run {
    let skipped = "may spoil a peer that the suite cannot start again";
    Run {
        format: FORMAT,
        suite: "0.1.0".to_owned(),
        role: Role::Tracker,
        set: None,
        of: 70,
        is_whole: false,
        peer: PeerInfo {
            command: Some("./tracker --port {port}".to_owned()),
            probed: BTreeMap::from([("queues".to_owned(), "0".to_owned())]),
            ..PeerInfo::default()
        },
        seed: 7,
        slow: 1.0,
        began: 1_700_000_000,
        milliseconds: 1234,
        failure: None,
        cases: vec![
            case(PASSING, Level::Must, Status::Pass),
            failing(),
            Played {
                checks: vec![missed("order", "two before one", "one before two")],
                ..case("TRK-REQUEST-001", Level::Should, Status::Warn)
            },
            Played {
                note: "it need not".to_owned(),
                checks: vec![missed("answer", "an answer", "nothing within 5.0s")],
                ..case("TRK-REQUEST-002", Level::May, Status::Unsupported)
            },
            Played {
                note: skipped.to_owned(),
                ..case("TRK-STOP-001", Level::Must, Status::Skipped)
            },
            Played {
                note: "cannot connect to 127.0.0.1:9: refused".to_owned(),
                ..case("TRK-STOP-002", Level::Must, Status::Error)
            },
        ],
        stale: Vec::new(),
    }
}

/// A run that did not begin.
pub(crate) fn not_run() -> Run {
    let why = "the tracker under test: nobody answers at 127.0.0.1:9";
    Run {
        failure: Some(why.to_owned()),
        cases: vec![Played {
            note: why.to_owned(),
            ..case(PASSING, Level::Must, Status::NotRun)
        }],
        ..run()
    }
}

/// A case that sends a greeting and a frame in pieces, and gets a wrong answer.
pub(crate) fn failing() -> Played {
    let expected = b"\x01\0\0\0".map(|byte| byte);
    let found = b"\x01\0\0\x001";
    let mut check = missed(FAILED_CHECK, "0", "1 <and> \"more\"");
    check.expected_hex = Some(hex::encode([&expected[..], b"0"].concat()));
    check.found_hex = Some(hex::encode(found));
    let holds = Check {
        holds: true,
        ..missed("greeting", "", "")
    };
    let sent = |at, bytes: &[u8]| event(at, Direction::Sent, What::Bytes(bytes.to_vec()));
    let received = |at, what| event(at, Direction::Received, what);
    Played {
        checks: vec![holds, check],
        transcript: vec![
            event(
                0.0,
                Direction::Sent,
                What::Connected("suite to 127.0.0.1:9190".to_owned()),
            ),
            sent(0.001, b"\x71\xf2\x02\0"),
            received(0.002, What::Bytes(b"\x71\xf2\x02\0".to_vec())),
            sent(0.003, b"\x1d\0\0\0[3, \"k\", "),
            sent(0.004, b"[9090, \"k:0\"], null]"),
            received(0.005, What::Bytes(found.to_vec())),
            received(0.006, What::Ended(End::Fin)),
            event(
                0.007,
                Direction::Sent,
                What::Note("could not be sent: broken pipe".to_owned()),
            ),
        ],
        stderr: vec!["panic: \x1b[31mno\x1b[0m".to_owned()],
        chunking: Chunking::Random,
        ..case(FAILING, Level::Must, Status::Fail)
    }
}

fn event(at: f64, direction: Direction, what: What) -> Event {
    Event {
        at,
        connection: 0,
        direction,
        what,
        omitted: 0,
    }
}

fn missed(name: &str, expected: &str, found: &str) -> Check {
    Check {
        name: name.to_owned(),
        holds: false,
        expected: expected.to_owned(),
        found: found.to_owned(),
        expected_hex: None,
        found_hex: None,
    }
}

fn case(id: &str, level: Level, status: Status) -> Played {
    Played {
        id: id.to_owned(),
        chunking: Chunking::Whole,
        level,
        clause: "2.4.1".to_owned(),
        what: format!("A tracker does what {id} looks at."),
        why: "Servers & clients wait for it.".to_owned(),
        status,
        note: String::new(),
        excused: None,
        tries: Vec::new(),
        scored: true,
        checks: Vec::new(),
        transcript: Vec::new(),
        stderr: Vec::new(),
        milliseconds: 12,
    }
}

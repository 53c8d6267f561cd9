//! How a connection to a tracker begins: `TRK-HELLO-`.

use rpc_proto::codes::TRACKER_MAGIC;
use serde_json::json;

use crate::case::{Case, Level, Tag};
use crate::roles::Tracker;
use crate::roles::tracker::frame;
use crate::stage::Outcome;

const MAGIC: [u8; 4] = TRACKER_MAGIC.to_le_bytes();

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-HELLO-001", Level::Must, "2.1.1", magic_is_echoed).about(
        "The tracker answers its magic with the same four bytes.",
        "Every peer waits for them before its first message.",
    ),
    Case::tracker("TRK-HELLO-002", Level::Must, "2.1.2", wrong_magic)
        .about(
            "A connection that begins with another word is closed without an answer.",
            "Who came to the wrong port has to notice it, and must not be taken for a peer.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-HELLO-003", Level::Should, "2.1.3", magic_in_pieces).about(
        "The magic may come in two pieces, cut anywhere.",
        "Where a stream is cut is not in the hands of who writes to it.",
    ),
    Case::tracker("TRK-HELLO-004", Level::Should, "2.1.3", magic_with_frame).about(
        "The first frame may come together with the magic.",
        "A peer that knows what it wants saves a round trip.",
    ),
    Case::tracker("TRK-HELLO-005", Level::Must, "2.1.4", silent_ones).about(
        "Connections that say nothing do not keep others from being served.",
        "One forgotten connection must not stop a farm.",
    ),
    Case::tracker("TRK-HELLO-006", Level::Must, "2.1.4", half_a_magic).about(
        "Connections that say half of the magic do not keep others from being served.",
        "One slow peer must not stop a farm.",
    ),
    Case::tracker("TRK-HELLO-007", Level::Must, "2.3.5", gone_at_once)
        .about(
            "Connections that end before, in and after the greeting harm nobody.",
            "Port scans and health checks do just that.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-HELLO-008", Level::Must, "2.1.1", many_at_once).about(
        "Sixty-four connections that come together are all greeted.",
        "A tuning job opens its connections in one go.",
    ),
];

fn magic_is_echoed(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.connect()?;
    connection.wire.send_whole(&MAGIC);
    connection.greeting("magic")?;
    connection.send(&json!([1]));
    connection.expect("ping", &json!(0))
}

fn wrong_magic(tracker: &Tracker) -> Outcome {
    // Another word, the magic of a server, its own with the bytes the other way round, and HTTP.
    for first in [
        [0x78, 0x56, 0x34, 0x12],
        [0x71, 0xf2, 0x0f, 0],
        [0, 2, 0xf2, 0x71],
        *b"GET ",
    ] {
        let mut connection = tracker.connect()?;
        connection.wire.send_whole(&first);
        connection.expect_end("closed")?;
    }
    Ok(())
}

fn magic_in_pieces(tracker: &Tracker) -> Outcome {
    for cut in 1..MAGIC.len() {
        let mut connection = tracker.connect()?;
        connection.wire.send_split(&MAGIC, cut);
        connection.greeting(&format!("magic-cut-at-{cut}"))?;
    }
    Ok(())
}

fn magic_with_frame(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.connect()?;
    connection
        .wire
        .send_whole(&[&MAGIC[..], &frame(b"[1]")].concat());
    connection.greeting("magic")?;
    connection.expect("ping", &json!(0))
}

fn silent_ones(tracker: &Tracker) -> Outcome {
    let silent: Vec<_> = (0..8)
        .map(|_| tracker.connect())
        .collect::<Result<_, _>>()?;
    tracker.expect_alive("others-are-served")?;
    drop(silent);
    tracker.expect_alive("others-are-served-after")
}

fn half_a_magic(tracker: &Tracker) -> Outcome {
    let mut slow = tracker.connect()?;
    slow.wire.send_whole(&MAGIC[..2]);
    tracker.expect_alive("others-are-served")
}

fn gone_at_once(tracker: &Tracker) -> Outcome {
    drop(tracker.connect()?);
    tracker.connect()?.wire.reset();
    let mut in_magic = tracker.connect()?;
    in_magic.wire.send_whole(&MAGIC[..3]);
    drop(in_magic);
    let mut before_answer = tracker.connect()?;
    before_answer.wire.send_whole(&MAGIC);
    before_answer.wire.reset();
    drop(tracker.greeted()?);
    tracker.expect_alive("others-are-served")
}

fn many_at_once(tracker: &Tracker) -> Outcome {
    let mut all: Vec<_> = (0..64)
        .map(|_| tracker.connect())
        .collect::<Result<_, _>>()?;
    for connection in &mut all {
        connection.wire.send_whole(&MAGIC);
    }
    for connection in &mut all {
        connection.greeting("magic")?;
    }
    Ok(())
}

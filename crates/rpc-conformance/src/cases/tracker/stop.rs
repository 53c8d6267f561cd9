//! The request that ends a tracker: `TRK-STOP-`.

use serde_json::json;

use crate::case::{Case, Level, Tag};
use crate::roles::{Reaction, Tracker};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-STOP-001", Level::Must, "2.9.1", wrong_key)
        .about(
            "A stop request with a wrong key is refused, and the tracker goes on.",
            "Otherwise everybody can end a farm.",
        )
        .tags(&[Tag::Alone]),
    Case::tracker("TRK-STOP-002", Level::Must, "2.9.1", odd_keys)
        .about(
            "A stop request with an empty key, null, true or a number is refused, and the tracker goes on.",
            "A comparison that is not strict takes one of them for the right one.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-STOP-003", Level::Quirk, "2.9.1", stays_connected).about(
        "The answer to a wrong key is -1, and the connection goes on.",
        "The reference does so.",
    ),
];

fn wrong_key(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.send(&json!([2, "tracker:0.1"]));
    connection.expect_refusal("refused")?;
    tracker.expect_alive("goes-on")
}

fn odd_keys(tracker: &Tracker) -> Outcome {
    for key in [json!(""), json!(null), json!(true), json!(0), json!([])] {
        let mut connection = tracker.greeted()?;
        connection.send(&json!([2, key]));
        connection.expect_refusal("refused")?;
        tracker.expect_alive("goes-on")?;
    }
    Ok(())
}

fn stays_connected(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.send(&json!([2, "tracker:0.1"]));
    connection.expect_one_of("refused", &[Reaction::Answer(json!(-1))])?;
    connection.send(&json!([1]));
    connection.expect("ping", &json!(0))
}

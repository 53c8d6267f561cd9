//! What is no request: `TRK-BAD-`.

use serde_json::json;

use crate::case::{Case, Level, Tag};
use crate::roles::Tracker;
use crate::roles::tracker::frame;
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-BAD-001", Level::Must, "2.3.1", unknown_codes)
        .about(
            "Codes that no request has are refused.",
            "A peer of a later version has to learn that this tracker does not know its request.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-002", Level::Must, "2.3.2", not_an_array)
        .about(
            "JSON that is no array is refused.",
            "A peer that waits for an answer must not wait for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-003", Level::Must, "2.3.2", no_code)
        .about(
            "An array without a code, or with a text in its place, is refused.",
            "A peer that waits for an answer must not wait for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-004", Level::Must, "2.3.2", short_requests)
        .about(
            "Requests with too few elements are refused.",
            "A tracker that fails half-way may already have changed its queues.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-005", Level::Must, "2.3.2", put_without_a_match_key)
        .about(
            "A put whose address is no pair of port and match key is refused.",
            "Who is granted such a device cannot use it.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-006", Level::Should, "2.3.9", keys_of_other_types)
        .about(
            "Keys and match keys that are no texts are refused.",
            "A key that no text equals is a queue that nobody can reach.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-007", Level::Must, "2.3.3", not_json)
        .about(
            "Frames that are not JSON are refused.",
            "A peer that waits for an answer must not wait for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-008", Level::Should, "2.3.4", not_utf8)
        .about(
            "A frame that is not UTF-8 is refused.",
            "A peer that waits for an answer must not wait for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-009", Level::Must, "2.3.3", very_deep)
        .about(
            "JSON with a hundred thousand opening brackets is refused.",
            "A parser that calls itself for each of them ends with its process.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-010", Level::Should, "2.3.8", half_a_pair)
        .about(
            "A key with half of a surrogate pair does not stand in the answers to others.",
            "It cannot be written as UTF-8, so that strict peers cannot read any summary from then on.",
        )
        .tags(&[Tag::Hostile, Tag::Spoils]),
    Case::tracker(
        "TRK-BAD-011",
        Level::Must,
        "2.5.12",
        priorities_that_are_none,
    )
    .about(
        "Priorities that are texts, null or arrays are refused.",
        "One that cannot be compared breaks the queue for those who wait already.",
    )
    .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-012", Level::Should, "2.5.13", not_a_number)
        .about(
            "NaN as priority is refused.",
            "It is neither greater nor smaller than others: the queue has no order any more.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-013", Level::Must, "2.3.5", waiting_ones_survive)
        .about(
            "Who waits for a device still gets it after others sent nonsense.",
            "The queue is everybody's.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-BAD-014", Level::Must, "2.3.5", unusable_info)
        .about(
            "An update info that is no object, or without a key, harms nobody: summaries go on.",
            "The summary shows what all peers said of themselves.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker(
        "TRK-BAD-015",
        Level::Must,
        "2.3.5",
        answers_that_nobody_reads,
    )
    .about(
        "A peer that asks and never reads keeps nobody else from being served.",
        "A tracker that waits for it to read stops the farm.",
    )
    .tags(&[Tag::Hostile, Tag::Large]),
    Case::tracker("TRK-BAD-016", Level::Should, "2.3.10", code_that_is_a_bool)
        .about(
            "`[true]` is refused.",
            "It is no number, although some languages take it for 1.",
        )
        .tags(&[Tag::Hostile]),
];

/// Refused by an end, by -1, or by -1 with a reason.
fn refused(tracker: &Tracker, check: &str, text: &[u8]) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.wire.send_whole(&frame(text));
    connection.expect_refusal(check)
}

fn all_refused(tracker: &Tracker, texts: &[&str]) -> Outcome {
    for text in texts {
        refused(tracker, text, text.as_bytes())?;
    }
    Ok(())
}

fn unknown_codes(tracker: &Tracker) -> Outcome {
    all_refused(
        tracker,
        &["[0]", "[8]", "[99]", "[-1]", "[2147483648]", "[1e30]"],
    )
}

fn not_an_array(tracker: &Tracker) -> Outcome {
    all_refused(tracker, &[r#"{"a": 1}"#, "1", r#""ping""#, "null", "true"])
}

fn no_code(tracker: &Tracker) -> Outcome {
    all_refused(tracker, &["[]", r#"["1"]"#, "[null]", "[[1]]"])
}

fn short_requests(tracker: &Tracker) -> Outcome {
    all_refused(
        tracker,
        &[
            "[2]",
            "[3]",
            r#"[3, "k"]"#,
            "[4]",
            r#"[4, "k"]"#,
            r#"[4, "k", "u"]"#,
            "[5]",
        ],
    )
}

fn put_without_a_match_key(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    for value in ["[9090]", "[]", "9090", "null"] {
        let text = format!(r#"[3, "{key}", {value}, null]"#);
        refused(tracker, value, text.as_bytes())?;
    }
    tracker.expect_counts("nothing-was-put", &key, 0, 0)
}

fn keys_of_other_types(tracker: &Tracker) -> Outcome {
    all_refused(
        tracker,
        &[
            r#"[3, null, [9090, "m"], null]"#,
            r#"[3, ["k"], [9090, "m"], null]"#,
            r#"[3, "k", [9090, 7], null]"#,
            r#"[4, null, "", 1]"#,
            r#"[4, {}, "", 1]"#,
        ],
    )
}

fn not_json(tracker: &Tracker) -> Outcome {
    all_refused(
        tracker,
        &["[1", "ping", "[1] [1]", "[1,]", "'[1]'", "\u{0}", "     "],
    )
}

fn not_utf8(tracker: &Tracker) -> Outcome {
    refused(tracker, "not-utf8", b"[4, \"\xff\xfe\", \"\", 1]")
}

fn very_deep(tracker: &Tracker) -> Outcome {
    refused(tracker, "very-deep", &vec![b'['; 100_000])
}

fn half_a_pair(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut odd = tracker.greeted()?;
    // Taken or refused: both are right. What counts is what others see.
    odd.send_text(r#"[3, "\ud83d", [9090, "\ud83d"], null]"#);
    odd.send_text(r#"[5, {"key": "server:\ud83d", "addr": [null, 1]}]"#);
    odd.send_text("[7]");
    odd.wire.read_to_end_of_step();
    let mut server = tracker.device(&key, 9090, "m")?;
    tracker.expect_counts("summary-of-others", &key, 1, 0)?;
    server.send(&json!([7]));
    server.expect("pending-of-others", &json!(["m"]))
}

fn priorities_that_are_none(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut waiting = tracker.asking(&key, 1)?;
    tracker.until_counts("one-waits", &key, 0, 1)?;
    for priority in [r#""high""#, "null", "[1]", "{}"] {
        let text = format!(r#"[4, "{key}", "", {priority}]"#);
        refused(tracker, priority, text.as_bytes())?;
    }
    let _server = tracker.device(&key, 9090, "m")?;
    waiting.expect_grant("who-waited-is-served", "m")
}

fn not_a_number(tracker: &Tracker) -> Outcome {
    let text = format!(r#"[4, "{}", "", NaN]"#, tracker.key("dev"));
    refused(tracker, "nan", text.as_bytes())
}

fn waiting_ones_survive(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut waiting = tracker.asking(&key, 1)?;
    tracker.until_counts("one-waits", &key, 0, 1)?;
    for text in ["[99]", "nonsense", r#"[3, "k"]"#] {
        let mut odd = tracker.greeted()?;
        odd.send_text(text);
        odd.expect_refusal("refused")?;
    }
    let _server = tracker.device(&key, 9090, "m")?;
    waiting.expect_grant("who-waited-is-served", "m")
}

fn unusable_info(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let infos = [
        "7",
        "null",
        "[]",
        "{}",
        r#"{"key": 7}"#,
        r#"{"key": "k", "addr": 7}"#,
        r#"{"key": "server:k", "addr": []}"#,
        r#"{"key": "server:k", "addr": [null]}"#,
    ];
    let mut odd = Vec::new();
    for info in infos {
        let mut connection = tracker.greeted()?;
        connection.send_text(&format!("[5, {info}]"));
        // Taken or refused: both are right. What counts is what others see.
        connection.wire.read_to_end_of_step();
        odd.push(connection);
    }
    let _server = tracker.device(&key, 9090, "m")?;
    tracker.expect_counts("summary", &key, 1, 0)
}

fn answers_that_nobody_reads(tracker: &Tracker) -> Outcome {
    const ANSWERS: usize = 20_000;
    let mut deaf = tracker.greeted()?;
    deaf.wire
        .send_without_waiting(&frame(b"[6]").repeat(ANSWERS));
    tracker.expect_alive("others-are-served")
}

fn code_that_is_a_bool(tracker: &Tracker) -> Outcome {
    refused(tracker, "true", b"[true]")
}

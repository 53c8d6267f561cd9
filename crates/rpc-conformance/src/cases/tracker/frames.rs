//! Frames, and the text in them: `TRK-FRAME-`.

use serde_json::{Value, json};

use crate::case::{Case, Level, Tag};
use crate::roles::tracker::{frame, spaced};
use crate::roles::{Reaction, Tracker};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::tracker("TRK-FRAME-001", Level::Must, "2.3.7", ping).about(
        "A ping is answered by 0, as often as it is sent.",
        "It is how a peer sees that the tracker is alive.",
    ),
    Case::tracker("TRK-FRAME-002", Level::Must, "2.2.2", cut_everywhere).about(
        "A frame may be cut into two pieces at every byte.",
        "Where a stream is cut is not in the hands of who writes to it.",
    ),
    Case::tracker("TRK-FRAME-003", Level::Must, "2.2.2", byte_by_byte).about(
        "A frame may come byte by byte.",
        "Some peers write lengths and texts in small pieces.",
    ),
    Case::tracker("TRK-FRAME-004", Level::Must, "2.2.3", two_in_one).about(
        "Two frames may come in one piece; each is answered, in order.",
        "A peer need not wait for an answer that it does not need.",
    ),
    Case::tracker("TRK-FRAME-005", Level::Must, "2.2.1", a_hundred_in_one).about(
        "A hundred requests in one piece get a hundred answers, in order.",
        "A lost or doubled answer puts every later one in the wrong place.",
    ),
    Case::tracker("TRK-FRAME-006", Level::Must, "2.2.3", one_and_a_half).about(
        "A piece may end in the middle of the second frame.",
        "The rest of a frame comes when it comes.",
    ),
    Case::tracker("TRK-FRAME-007", Level::Should, "2.2.4", zero_length)
        .about(
            "A frame of no bytes ends the connection.",
            "It can hold no request, and a tracker that waits for one waits for ever.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-FRAME-008", Level::Should, "2.2.4", negative_length)
        .about(
            "A frame of a negative length ends the connection.",
            "A length that is taken for a large one makes a tracker wait or grow.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-FRAME-009", Level::Should, "2.2.5", huge_length)
        .about(
            "The announcement of two gigabytes ends the connection.",
            "Four bytes must not be enough to fill a tracker's memory.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-FRAME-010", Level::Must, "2.2.6", frame_of_64_kib)
        .about(
            "A frame of 64 KiB is read.",
            "Long keys and user names are odd, but no reason to break off.",
        )
        .tags(&[Tag::Large]),
    Case::tracker("TRK-FRAME-011", Level::Should, "2.2.7", frame_of_1_mib)
        .about(
            "A frame of 1 MiB is read.",
            "It is what the reference takes.",
        )
        .tags(&[Tag::Large]),
    Case::tracker("TRK-FRAME-012", Level::Must, "2.2.8", blanks).about(
        "Blanks and line ends between the tokens of a request mean nothing.",
        "Each JSON library has its own habits.",
    ),
    Case::tracker("TRK-FRAME-013", Level::Must, "2.2.8", no_blanks).about(
        "A request without any blanks is read.",
        "Each JSON library has its own habits.",
    ),
    Case::tracker("TRK-FRAME-014", Level::Must, "2.2.8", both_spellings).about(
        "A key is the same written with escapes and as plain UTF-8.",
        "Python writes escapes, C++ and Rust write UTF-8; they share devices.",
    ),
    Case::tracker("TRK-FRAME-015", Level::Must, "2.2.8", beyond_the_plane).about(
        "A character beyond the basic plane is the same as a pair of escapes and as UTF-8.",
        "Python writes two escapes for one character.",
    ),
    Case::tracker("TRK-FRAME-016", Level::Must, "2.2.9", naked_zero).about(
        "The answer 0 is one byte, without blanks.",
        "Servers in C++ and Java compare the text and do not parse it.",
    ),
    Case::tracker("TRK-FRAME-017", Level::Must, "2.2.10", plain_match_keys).about(
        "Match keys of plain characters stand in answers as they are.",
        "Servers in C++ look for their match key in the text of the answer.",
    ),
    Case::tracker("TRK-FRAME-018", Level::Should, "2.2.11", ascii_answers).about(
        "Answers are ASCII; other characters are escaped.",
        "Simple peers count characters where bytes are meant, which ASCII forgives.",
    ),
    Case::tracker("TRK-FRAME-019", Level::May, "2.3.6", code_with_a_point).about(
        "A code may be written 1.0.",
        "Some languages have one kind of number only.",
    ),
    Case::tracker("TRK-FRAME-020", Level::Must, "2.3.5", end_in_a_frame)
        .about(
            "A connection that ends in the middle of a frame harms nobody.",
            "Processes are killed while they write.",
        )
        .tags(&[Tag::Hostile]),
    Case::tracker("TRK-FRAME-021", Level::Must, "2.1.4", slow_frame).about(
        "A frame that does not end keeps nobody else from being served.",
        "One stalled peer must not stop a farm.",
    ),
    Case::tracker(
        "TRK-FRAME-022",
        Level::Must,
        "2.3.7",
        ping_while_waiting_elsewhere,
    )
    .about(
        "A ping is answered while requests wait for devices on other connections.",
        "Waiting may take hours.",
    ),
];

fn ping(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    for _ in 0..3 {
        connection.send(&json!([1]));
        connection.expect("ping", &json!(0))?;
    }
    Ok(())
}

/// A put of this key, whose answer is 0, as the bytes of a frame.
fn a_put(key: &str) -> Vec<u8> {
    frame(spaced(&json!([3, key, [9090, format!("{key}:0.5")], null])).as_bytes())
}

fn cut_everywhere(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    let bytes = a_put(&tracker.key("dev"));
    for cut in 1..bytes.len() {
        connection.wire.send_split(&bytes, cut);
        connection.expect(&format!("put-cut-at-{cut}"), &json!(0))?;
    }
    Ok(())
}

fn byte_by_byte(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.wire.send_in_pieces(&frame(b"[1]"), 1);
    connection.expect("ping", &json!(0))?;
    connection
        .wire
        .send_in_pieces(&a_put(&tracker.key("dev")), 1);
    connection.expect("put", &json!(0))
}

fn two_in_one(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut connection = tracker.greeted()?;
    connection.put(&key, 9090, "first")?;
    let both = [frame(b"[7]"), frame(b"[1]")].concat();
    connection.wire.send_whole(&both);
    connection.expect("pending", &json!(["first"]))?;
    connection.expect("ping", &json!(0))
}

fn a_hundred_in_one(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    let frames: Vec<_> = (0..50)
        .flat_map(|_| [frame(b"[1]"), frame(b"[7]")])
        .collect();
    connection.wire.send_whole(&frames.concat());
    for round in 0..50 {
        connection.expect(&format!("ping-{round}"), &json!(0))?;
        connection.expect(&format!("pending-{round}"), &json!([]))?;
    }
    connection.expect_quiet("no-more-answers")
}

fn one_and_a_half(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    let both = [frame(b"[1]"), frame(b"[7]")].concat();
    for cut in [8, 9, 11, 13] {
        connection.wire.send_whole(&both[..cut]);
        connection.expect("first", &json!(0))?;
        connection.wire.send_whole(&both[cut..]);
        connection.expect("second", &json!([]))?;
    }
    Ok(())
}

fn ends_after(tracker: &Tracker, length: i32) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.wire.send_whole(&length.to_le_bytes());
    connection.expect_end("closed")
}

fn zero_length(tracker: &Tracker) -> Outcome {
    ends_after(tracker, 0)
}

fn negative_length(tracker: &Tracker) -> Outcome {
    ends_after(tracker, -1)?;
    ends_after(tracker, i32::MIN)
}

fn huge_length(tracker: &Tracker) -> Outcome {
    ends_after(tracker, i32::MAX)
}

/// A request for a summary that is so many bytes long, most of them blanks.
fn padded(len: usize) -> Vec<u8> {
    let mut text = vec![b' '; len];
    text[len - 3..].copy_from_slice(b"[7]");
    frame(&text)
}

fn frame_of_64_kib(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.wire.send_whole(&padded(64 << 10));
    connection.expect("pending", &json!([]))
}

fn frame_of_1_mib(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.wire.send_whole(&padded(1 << 20));
    connection.expect("pending", &json!([]))
}

fn blanks(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    for text in [" [ 1 ] \n", "\t[\r\n1\r\n]", "\n\n[1]"] {
        connection.send_text(text);
        connection.expect("ping", &json!(0))?;
    }
    Ok(())
}

fn no_blanks(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut connection = tracker.greeted()?;
    connection.send_text(&format!(
        r#"[5,{{"key":"server:{key}","addr":[null,9090]}}]"#
    ));
    connection.expect("update-info", &json!(0))?;
    connection.send_text(&format!(r#"[3,"{key}",[9090,"m"],null]"#));
    connection.expect("put", &json!(0))?;
    connection.send_text(&format!(r#"[4,"{key}","",1]"#));
    connection.expect_grant("grant", "m")
}

/// A device that is put under a key in one spelling is got under the other.
fn in_both_spellings(tracker: &Tracker, plain: &str, escaped: &str) -> Outcome {
    let own = tracker.key("dev");
    for (put, asked) in [(plain, escaped), (escaped, plain)] {
        let mut server = tracker.greeted()?;
        server.send_text(&format!(r#"[3, "{own}{put}", [9090, "{put}:1"], null]"#));
        server.expect("put", &json!(0))?;
        let mut client = tracker.greeted()?;
        client.send_text(&format!(r#"[4, "{own}{asked}", "", 1]"#));
        client.expect_grant("grant", &format!("{plain}:1"))?;
    }
    Ok(())
}

fn both_spellings(tracker: &Tracker) -> Outcome {
    in_both_spellings(tracker, "ключ", r"\u043a\u043b\u044e\u0447")
}

fn beyond_the_plane(tracker: &Tracker) -> Outcome {
    in_both_spellings(tracker, "📱", r"\ud83d\udcf1")
}

fn naked_zero(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut connection = tracker.greeted()?;
    let requests = [
        json!([1]),
        json!([5, {"key": format!("server:{key}"), "addr": [null, 9090]}]),
        json!([3, key, [9090, "m"], null]),
    ];
    for request in requests {
        connection.send(&request);
        let text = connection.answer_text("answer")?;
        tracker.stage.check(
            "answer-text",
            text == "0",
            "the text 0",
            format_args!("{text:?}"),
        )?;
    }
    Ok(())
}

fn plain_match_keys(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let match_key = "rasp4b_v1.2:0.07190703221859829";
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, match_key)?;
    server.send(&json!([7]));
    let listed = server.answer_text("pending")?;
    let quoted = format!("\"{match_key}\"");
    let stage = &tracker.stage;
    stage.check(
        "listed-as-it-is",
        listed.contains(&quoted),
        &quoted,
        &listed,
    )?;
    let mut client = tracker.asking(&key, 1)?;
    let grant = client.answer_text("grant")?;
    stage.check("granted-as-it-is", grant.contains(&quoted), &quoted, &grant)
}

fn ascii_answers(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let mut server = tracker.greeted()?;
    server.put(&key, 9090, "größe:1")?;
    server.send(&json!([7]));
    let listed = server.answer_text("pending")?;
    let value = serde_json::from_str::<Value>(&listed).unwrap_or_default();
    let stage = &tracker.stage;
    stage.check(
        "listed",
        value == json!(["größe:1"]),
        "the match key",
        &listed,
    )?;
    stage.check("ascii", listed.is_ascii(), "ASCII alone", &listed)
}

fn code_with_a_point(tracker: &Tracker) -> Outcome {
    let mut connection = tracker.greeted()?;
    connection.send_text("[1.0]");
    connection.expect_one_of("ping", &[Reaction::Answer(json!(0))])
}

fn end_in_a_frame(tracker: &Tracker) -> Outcome {
    let bytes = a_put(&tracker.key("dev"));
    for cut in [1, 3, 4, 5, bytes.len() - 1] {
        let mut connection = tracker.greeted()?;
        connection.wire.send_whole(&bytes[..cut]);
        if cut % 2 == 0 {
            connection.wire.reset();
        }
    }
    tracker.expect_alive("others-are-served")?;
    tracker.expect_counts("nothing-was-put", &tracker.key("dev"), 0, 0)
}

fn slow_frame(tracker: &Tracker) -> Outcome {
    let mut slow = tracker.greeted()?;
    slow.wire.send_whole(&frame(b"[1]")[..5]);
    tracker.expect_alive("others-are-served")?;
    slow.wire.send_whole(&frame(b"[1]")[5..]);
    slow.expect("then-it-is-served", &json!(0))
}

fn ping_while_waiting_elsewhere(tracker: &Tracker) -> Outcome {
    let key = tracker.key("dev");
    let waiting: Vec<_> = (0..8)
        .map(|_| tracker.asking(&key, 1))
        .collect::<Result<_, _>>()?;
    tracker.until_counts("they-wait", &key, 0, 8)?;
    tracker.expect_alive("ping")?;
    drop(waiting);
    Ok(())
}

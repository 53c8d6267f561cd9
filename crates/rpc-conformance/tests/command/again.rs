//! What is played again: failures, and recorded conversations.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rpc_conformance::{Chunking, Direction, Played, Run, Status, What, report as written};

use super::support::{FAILING, Folder, PASSING, answering, expect, play, report, run, tracker};

#[test]
fn what_failed_is_played_again_with_the_same_seed() {
    let folder = Folder::new();
    let json = folder.name("last.json");
    let axis = ["--axis", "chunking=whole,bytes", "--seed", "5"];
    let first = [&["--report", "json", "--out", &json], &axis[..]].concat();
    expect(
        &play(&format!("{PASSING},{FAILING}"), &first),
        1,
        "4 selected",
    );
    let again = play("*", &["--rerun-failed", &json]);
    expect(&again, 1, "2 selected");
    expect(&again, 1, "seed 5");
    let passed = folder.name("passed.json");
    play(PASSING, &["--report", "json", "--out", &passed]);
    expect(
        &play("*", &["--rerun-failed", &passed]),
        2,
        "nothing that did not pass",
    );
}

/// The pairs of a report.
fn pairs(run: &Run) -> Vec<(&str, Chunking)> {
    let cases = run.cases.iter();
    cases
        .map(|case| (case.id.as_str(), case.chunking))
        .collect()
}

#[test]
fn just_what_failed_is_played_again_and_as_slowly() {
    let folder = Folder::new();
    let (last, now) = (folder.name("last.json"), folder.name("now.json"));
    let both = format!("{PASSING},{FAILING}");
    let first = [
        "--report",
        "json",
        "--out",
        &last,
        "--axis",
        "chunking=whole,bytes",
    ];
    play(&both, &first);
    let mut before = report(&folder.path("last.json"));
    for case in &mut before.cases {
        let failed = [(PASSING, Chunking::Bytes), (FAILING, Chunking::Whole)];
        case.status = match failed.contains(&(case.id.as_str(), case.chunking)) {
            true => Status::Fail,
            false => Status::Pass,
        };
    }
    let failed = [(PASSING, Chunking::Bytes), (FAILING, Chunking::Whole)];
    before.slow = 0.25;
    fs::write(&last, written::json(&before)).unwrap();
    let addr = tracker();
    let again = ["tracker", "--addr", &addr, "--rerun-failed", &last];
    let again = [&again[..], &["--report", "json", "--out", &now]].concat();
    expect(&run(&again), 1, "2 selected");
    let after = report(&folder.path("now.json"));
    assert_eq!(pairs(&after), failed);
    assert!((after.slow - 0.25).abs() < f64::EPSILON);
    assert_eq!(after.seed, before.seed);
    // What is asked for counts more than what was.
    let other = [&again[..], &["--slow", "0.5", "--axis", "chunking=random"]].concat();
    run(&other);
    let after = report(&folder.path("now.json"));
    let ways: Vec<_> = after.cases.iter().map(|case| case.chunking).collect();
    assert_eq!((after.slow, ways), (0.5, vec![Chunking::Random; 2]));
    before.slow = 0.0;
    fs::write(&last, written::json(&before)).unwrap();
    expect(&run(&again), 2, "has the factor 0");
}

/// The line of a text report that plays its case again, as arguments.
fn replay_line(stdout: &[u8]) -> Vec<String> {
    let text = String::from_utf8(stdout.to_vec()).unwrap();
    let line = text.lines().find_map(|line| {
        let line = line.strip_prefix("  replay    tvm-rpc-conformance ");
        line.map(str::to_owned)
    });
    shlex::split(&line.unwrap_or_else(|| panic!("{text}"))).unwrap()
}

/// The first bytes that were sent behind the greeting.
fn sent(case: &Played) -> Vec<u8> {
    let bytes = case
        .transcript
        .iter()
        .filter_map(|event| match &event.what {
            What::Bytes(bytes) if event.direction == Direction::Sent => Some(bytes.clone()),
            _ => None,
        });
    bytes.skip(1).flatten().collect()
}

#[test]
fn a_flaky_case_is_played_again_with_the_seed_of_the_try_that_failed() {
    static PUTS: AtomicUsize = AtomicUsize::new(0);
    let addr = answering(|frame| match frame.starts_with(b"[3") {
        // The second put is refused.
        true if PUTS.fetch_add(1, Ordering::Relaxed) == 1 => b"1",
        _ => b"0",
    });
    let folder = Folder::new();
    let flaky = folder.file("flaky", &format!("{FAILING}: now and then\n"));
    let html = folder.name("page.html");
    let json = folder.name("run.json");
    let reports = [format!("html={html}"), format!("json={json}")];
    let played = [
        "tracker", "--addr", &addr, "--only", FAILING, "--flaky", &flaky,
    ];
    let reports = ["--report", &reports[0], "--report", &reports[1]];
    expect(&run(&[&played[..], &reports].concat()), 0, "passed 2 of 3");
    let first = report(Path::new(&json));
    let page = fs::read_to_string(html).unwrap();
    let (_, line) = page.split_once("--seed ").unwrap();
    let seed = line.split(['<', '\n']).next().unwrap();
    assert_ne!(seed, first.seed.to_string());
    // The same conversation, with the same keys.
    let addr = tracker();
    let again = [
        "tracker", "--addr", &addr, "--only", FAILING, "--seed", seed,
    ];
    run(&[&again[..], &["--report", "json", "--out", &json]].concat());
    let second = report(Path::new(&json));
    let [first, second] = [&first, &second].map(|run| sent(&run.cases[0]));
    assert!(first.len() > 20);
    assert_eq!(first, second);
}

#[test]
fn a_spoilt_peer_is_spoilt_again() {
    let spoilt = ["--broken", "magic-reversed", "--patience", "5"];
    let output = play(PASSING, &spoilt);
    expect(&output, 1, "fail   TRK-HELLO-001");
    let again = replay_line(&output.stdout);
    assert!(again.ends_with(&spoilt.map(str::to_owned)), "{again:?}");
    let again: Vec<_> = again.iter().map(String::as_str).collect();
    expect(&run(&again), 1, "fail   TRK-HELLO-001");
}

/// A recording of a greeting.
const TALK: &str = r#"{"scenario": "../talk", "description": "\u001b[2Jgreets",
    "connections": [{"id": 0, "proto": "tracker"}],
    "messages": [{"i": 0, "conn": 0, "dir": "c2s", "kind": "magic", "hex": "71f20200"},
                 {"i": 1, "conn": 0, "dir": "s2c", "kind": "magic", "hex": "71f20201"}]}"#;

#[test]
fn a_recording_that_failed_is_played_again() {
    let folder = Folder::new();
    let talk = folder.file("my talk.json", TALK);
    let addr = tracker();
    let records = folder.name("records");
    let arguments = ["tracker", "--addr", &addr, "--replay", &talk];
    let output = run(&[&arguments[..], &["--record", &records, "--slow", "0.2"]].concat());
    expect(&output, 1, "fail   REPLAY-___talk: \\u{1b}[2Jgreets");
    assert!(folder.path("records/REPLAY-___talk.json").exists());
    let again = replay_line(&output.stdout);
    assert!(again.contains(&talk), "{again:?}");
    let again: Vec<_> = again.iter().map(String::as_str).collect();
    expect(&run(&again), 1, "fail   REPLAY-___talk");
    // Two of the same name are two cases.
    let twice = run(&[&arguments[..], &["--replay", &talk]].concat());
    expect(&twice, 1, "REPLAY-___talk_2");
}

#[test]
fn what_is_no_message_has_its_recorded_length() {
    let folder = Folder::new();
    let raw = TALK.replace(
        r#""magic", "hex": "71f20201""#,
        r#""raw", "hex": "71f20200""#,
    );
    let talk = folder.file("talk.json", &raw);
    let addr = tracker();
    let output = run(&["tracker", "--addr", &addr, "--replay", &talk]);
    expect(&output, 0, "1 pass");
}

#[test]
fn a_recording_has_to_be_one_of_the_peer() {
    let folder = Folder::new();
    let talk = folder.file("talk.json", TALK);
    let nothing = folder.file("nothing.json", r#"{"connections": [], "messages": []}"#);
    let addr = tracker();
    let arguments = ["tracker", "--addr", &addr, "--replay", &nothing];
    expect(&run(&arguments), 2, "there is nothing to play");
    let arguments = ["server", "--addr", &addr, "--replay", &talk];
    expect(&run(&arguments), 2, "there is nothing to play");
    let arguments = ["client", "--cmd", "true", "--replay", &talk];
    expect(&run(&arguments), 2, "a client cannot be told what to say");
    // Nobody is there: the report has no case that was never asked for.
    let json = folder.name("none.json");
    let nobody = ["tracker", "--addr", "127.0.0.1:1", "--patience", "0.1"];
    let replay = ["--replay", &talk, "--report", "json", "--out", &json];
    let output = run(&[&nobody[..], &replay].concat());
    expect(&output, 3, "nobody answers");
    assert_eq!(report(Path::new(&json)).cases, []);
    for senseless in [
        &["--only", PASSING][..],
        &["--level", "must"],
        &["--rerun-failed", "x"],
        &["--axis", "chunking=bytes"],
        &["--exhaustive"],
        &["--known-failures", "x"],
        &["--write-known-failures", "x"],
        &["--flaky", "x"],
        &["--set", "2026.1"],
        &["--list"],
    ] {
        let arguments = ["tracker", "--addr", &addr, "--replay", &talk];
        let output = run(&[&arguments[..], senseless].concat());
        expect(&output, 2, "cannot be used with");
    }
}

#[test]
fn a_tracker_may_refuse_in_another_way_than_the_recorded_one() {
    let folder = Folder::new();
    let talk = |name, kind, hex| {
        let text = format!(
            r#"{{"connections": [{{"id": 0, "proto": "tracker"}}],
            "messages": [{{"i": 0, "conn": 0, "dir": "c2s", "kind": "magic", "hex": "71f20200"}},
                         {{"i": 1, "conn": 0, "dir": "s2c", "kind": "magic", "hex": "71f20200"}},
                         {{"i": 2, "conn": 0, "dir": "c2s", "kind": "json", "hex": "040000005b39395d"}},
                         {{"i": 3, "conn": 0, "dir": "s2c", "kind": "{kind}", "hex": "{hex}"}}]}}"#
        );
        folder.file(name, &text)
    };
    let reason = talk("reason.json", "json", "080000005b2d312c2278225d");
    let end = talk("end.json", "close", "");
    for (answer, status) in [
        (&b"-1"[..], 0),
        (b"[-1, \"no\"]", 0),
        (b"0", 1),
        (b"[0]", 1),
    ] {
        for recorded in [&reason, &end] {
            let addr = answering(move |_| answer);
            let output = run(&["tracker", "--addr", &addr, "--replay", recorded]);
            expect(&output, status, "1 selected");
        }
    }
}

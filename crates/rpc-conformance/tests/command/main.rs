//! The command: its exit statuses, its lists, and what it writes.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

mod again;
mod ends;
mod support;

use std::fs;
use std::net::{Ipv4Addr, TcpListener};

use rpc_conformance::{Run, Status, Verdict};

use support::{FAILING, Folder, PASSING, expect, play, report, run, tracker};

#[test]
fn as_required_is_0_and_one_line() {
    let output = play(PASSING, &[]);
    expect(&output, 0, "tracker: incomplete. 1 selected of ");
    assert_eq!(
        output.stdout.iter().filter(|&&byte| byte == b'\n').count(),
        1
    );
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_failure_is_1_and_told_at_once() {
    let output = play(FAILING, &[]);
    expect(&output, 1, "tracker: not conformant. 1 selected of ");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("first failure: TRK-PUT-001: "),
        "{stderr}"
    );
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("--only TRK-PUT-001 --seed "), "{stdout}");
    assert!(!stdout.contains('\x1b'), "{stdout}");
    assert!(play(FAILING, &["--quiet"]).stderr.is_empty());
}

#[test]
fn a_soak_ends_at_the_first_conversation_that_fails() {
    let addr = tracker();
    let output = run(&["soak", "tracker", "--addr", &addr, "--cycles", "100"]);
    expect(
        &output,
        1,
        "tracker: 0 conversations, 16 at a time, 1 failed",
    );
    expect(
        &output,
        1,
        "update-info: expected the answer 0, found the answer 1",
    );
    let output = run(&["soak", "tracker", "--addr", &addr, "--json"]);
    expect(&output, 1, "\"failed\": 1");
    expect(&run(&["soak", "tracker"]), 2, "--addr HOST:PORT or --cmd");
    let client = ["soak", "client", "--cmd", "true"];
    expect(&run(&client), 2, "a soak is for a tracker or a server");
    let nobody = [
        "soak",
        "tracker",
        "--addr",
        "127.0.0.1:1",
        "--patience",
        "0.1",
    ];
    expect(&run(&nobody), 3, "nobody answers at 127.0.0.1:1");
}

#[test]
fn wrong_usage_and_nothing_selected_are_2() {
    let folder = Folder::new();
    expect(&run(&["tracker"]), 2, "--addr HOST:PORT or --cmd COMMAND");
    expect(&run(&["client"]), 2, "--cmd COMMAND");
    for wrong in [
        ["--level", "most"],
        ["--tag", "odd"],
        ["--axis", "dialect=ffi"],
        ["--axis", "chunking=odd"],
        ["--slow", "0"],
        ["--slow", "-1"],
        ["--slow", "nan"],
        ["--slow", "1e-9"],
        ["--slow", "1001"],
        ["--patience", "0.001"],
        ["--jobs", "0"],
        ["--report", "pdf"],
        ["--set", "1999.1"],
        ["--known-failures", "not/there"],
    ] {
        expect(&play(PASSING, &wrong), 2, "error: ");
    }
    let json = folder.name("nothing.json");
    let nothing = play("TRK-NONE-*", &["--report", "json", "--out", &json]);
    expect(&nothing, 2, "no case of the role tracker is selected");
    // The report is there all the same, and says that it is worth nothing.
    let report = report(&folder.path("nothing.json"));
    assert_eq!(
        (report.cases.len(), report.verdict()),
        (0, Verdict::Incomplete)
    );
    assert!(report.failure.is_some());
}

#[test]
fn no_peer_is_3() {
    let folder = Folder::new();
    let json = folder.name("none.json");
    let report_to = format!("json={json}");
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let arguments = [
        "tracker", "--cmd", "false", "--only", PASSING, "--report", &report_to,
    ];
    expect(&run(&arguments), 3, "\"false\" ended");
    let cases = report(&folder.path("none.json")).cases;
    assert_eq!(
        cases.iter().map(|case| case.status).collect::<Vec<_>>(),
        [Status::NotRun]
    );
    let missing = ["client", "--cmd", "not/there {tracker} {key}"];
    expect(&run(&missing), 3, "there is no program not/there");
    let addr = gone.to_string();
    let arguments = ["tracker", "--addr", &addr, "--patience", "0.1"];
    expect(&run(&arguments), 3, "nobody answers at");
}

#[test]
fn what_cannot_be_written_is_4() {
    let output = play(PASSING, &["--report", "junit=/not/there.xml"]);
    expect(&output, 4, "/not/there.xml");
}

#[test]
fn several_reports_in_one_run() {
    let folder = Folder::new();
    let formats = ["text", "json", "junit", "markdown", "html", "tap", "badge"];
    let wanted: Vec<_> = formats
        .iter()
        .map(|format| format!("{format}={}", folder.name(format)))
        .collect();
    let more: Vec<_> = wanted
        .iter()
        .flat_map(|report| ["--report", report])
        .collect();
    expect(&play(FAILING, &more), 1, "tracker: not conformant.");
    for (format, begins) in formats.iter().zip([
        "TRK-PUT (1 fail)\n",
        "{\n",
        "<?xml",
        "# Conformance of a tracker\n",
        "<!DOCTYPE html>\n",
        "TAP version 14\n1..1\n",
        "{\n",
    ]) {
        let text = fs::read_to_string(folder.path(format)).unwrap();
        assert!(text.starts_with(begins), "{format}: {text}");
    }
    // One may go to standard output, with the summary beside it.
    let output = play(PASSING, &["--report", "json"]);
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run.cases[0].id, PASSING);
    expect(&output, 0, "tracker: incomplete. 1 selected of ");
    expect(
        &play(PASSING, &["--report", "json", "--report", "tap"]),
        2,
        "only one report",
    );
}

#[test]
fn known_failures_do_not_count_and_stale_ones_do() {
    let folder = Folder::new();
    let both = format!("{PASSING},{FAILING}");
    let known = format!("{FAILING}: refuses everything\n");
    let stale = format!("{FAILING}: x\n{PASSING}: y\n");
    let dead = format!("{FAILING}: x\nTRK-NONE-001: y\n");
    let twice = format!("{FAILING}: x\n{FAILING}: y\n");
    for (list, status, said) in [
        (&known, 0, "known: refuses everything"),
        (&stale, 1, "stale TRK-HELLO-001 passes"),
        (&dead, 1, "no case has the id TRK-NONE-001"),
        (&twice, 2, "line 2: TRK-PUT-001 is in line 1"),
    ] {
        let list = folder.file("list", list);
        expect(&play(&both, &["--known-failures", &list]), status, said);
    }
    let known = folder.file("known", &known);
    let contradiction = ["--known-failures", &known, "--flaky", &known];
    expect(&play(&both, &contradiction), 2, "is a known failure too");
}

#[test]
fn a_written_list_is_a_list() {
    let folder = Folder::new();
    let list = folder.name("known");
    expect(
        &play("TRK-PUT-*", &["--write-known-failures", &list]),
        1,
        "not conformant",
    );
    expect(
        &play("TRK-PUT-*", &["--known-failures", &list]),
        0,
        "excused",
    );
}

#[test]
fn a_list_is_written_over_and_keeps_what_it_says() {
    let folder = Folder::new();
    let text = format!("{FAILING}.put until 9: so it is\nCLI-EXC-001: later\n");
    let list = folder.file("known", &text);
    let write = ["--write-known-failures", &list, "--exhaustive"];
    play("TRK-PUT-00*", &write);
    let written = fs::read_to_string(folder.path("known")).unwrap();
    for line in text.lines() {
        assert!(written.contains(line), "{written}");
    }
    let known = ["--known-failures", &list, "--exhaustive"];
    expect(&play("TRK-PUT-00*", &known), 0, "excused");
    // What is no list is not written over.
    let other = folder.file("other", "a tracker\n");
    let write = ["--write-known-failures", &other];
    expect(&play(FAILING, &write), 2, "line 1: an entry is ID: REASON");
    assert_eq!(fs::read(folder.path("other")).unwrap(), b"a tracker\n");
}

#[test]
fn a_flaky_case_is_played_three_times() {
    let folder = Folder::new();
    let flaky = folder.file(
        "flaky",
        &format!("{FAILING}: now and then\n{PASSING}: too\n"),
    );
    let output = play(&format!("{PASSING},{FAILING}"), &["--flaky", &flaky]);
    expect(&output, 0, "flaky: passed 0 of 3: now and then");
    expect(&output, 0, "flaky: passed 3 of 3");
}

#[test]
fn cases_outside_of_the_set_do_not_count() {
    let output = play(PASSING, &["--set", "2026.1"]);
    expect(&output, 0, "(set 2026.1)");
}

#[test]
fn recordings_are_conversations() {
    let folder = Folder::new();
    let recordings = folder.name("recordings");
    expect(&play(PASSING, &["--record", &recordings]), 0, "1 pass");
    let file = folder.path("recordings").join(format!("{PASSING}.json"));
    let conversation = rpc_recording::Conversation::read(&file).unwrap();
    let notes: Vec<_> = conversation
        .messages
        .iter()
        .map(|message| &message.note)
        .collect();
    assert_eq!(notes[..2], ["greeting of a tracker"; 2]);
}

#[test]
fn lists_say_what_there_is() {
    let output = run(&["server", "--list", "--level", "must", "--only", "SRV-*"]);
    expect(&output, 0, " MUST ");
    assert!(
        !String::from_utf8(output.stdout)
            .unwrap()
            .contains(" SHOULD ")
    );
    let folder = Folder::new();
    let file = format!("json={}", folder.name("list.json"));
    let both = run(&["tracker", "--list", "--report", &file, "--report", "text"]);
    expect(&both, 0, "TRK-HELLO-001");
    assert!(
        run(&["tracker", "--list", "--report", &file])
            .stdout
            .is_empty()
    );
    let text = fs::read(folder.path("list.json")).unwrap();
    let written: Vec<serde_json::Value> = serde_json::from_slice(&text).unwrap();
    let wrong = run(&["tracker", "--list", "--report", "tap=x"]);
    expect(&wrong, 2, "a list is text or json");
    let output = run(&["tracker", "--list", "--report", "json"]);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(list.len() > 50);
    assert_eq!(list, written);
    assert_eq!(list[0]["role"], "tracker");
    expect(
        &run(&["tracker", "--list", "--only", "none"]),
        2,
        "is selected",
    );
    expect(
        &run(&["tracker", "--list", "--clause", "2.1", "--tag", "hostile"]),
        0,
        "hostile",
    );
}

#[test]
fn reports_are_compared() {
    let folder = Folder::new();
    let (old, new) = (folder.name("old.json"), folder.name("new.json"));
    let both = format!("{PASSING},{FAILING}");
    play(&both, &["--report", "json", "--out", &old]);
    let mut run_of_it = report(&folder.path("old.json"));
    run_of_it.cases[0].status = Status::Fail;
    fs::write(
        folder.path("new.json"),
        rpc_conformance::report::json(&run_of_it),
    )
    .unwrap();
    expect(&run(&["diff", &old, &old]), 0, "0 regressions");
    expect(&run(&["diff", &old, &new]), 1, "TRK-HELLO-001: pass → fail");
    expect(&run(&["diff", &new, &old]), 0, "1 fixes");
    expect(&run(&["diff", &old, "not/there"]), 2, "not/there");
    let notes = folder.file("notes", &format!("{FAILING}: it refuses all\n"));
    let columns = [format!("one={old}"), format!("two={new}")];
    let output = run(&["matrix", &columns[0], &columns[1], "--notes", &notes]);
    expect(&output, 0, "| one | two | explanation |");
    expect(&output, 0, "it refuses all");
    expect(&output, 0, "without an explanation: TRK-HELLO-001");
}

#[test]
fn a_set_is_written() {
    let folder = Folder::new();
    expect(&run(&["write-set", &folder.name("set")]), 0, "");
    let text = fs::read_to_string(folder.path("set")).unwrap();
    assert!(text.lines().any(|line| line == PASSING), "{text}");
}

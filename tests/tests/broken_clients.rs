//! The conformance suite finds broken clients: both of ours, each with one defect in its way, fail the
//! cases that are there to find it, and without a defect pass them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rpc_conformance::broken::{Defect, defects, healthy};
use rpc_conformance::{Options, Role, Run, Selection, Status, Target, run};

fn play(twin: &str, defect: &'static Defect, cases: &[&str], slow: f64) -> Run {
    let client = env!("CARGO_BIN_EXE_conformance_client");
    let target = Target::Client {
        command: format!("{client} {twin} {{tracker}} {{key}}"),
    };
    let only = cases.iter().map(ToString::to_string);
    let options = Options::default()
        .with_selection(Selection::all().with_only(only))
        .with_defect(defect)
        .with_jobs(2)
        .with_slow(slow);
    run(&target, &options, &|_, _| ()).unwrap()
}

/// Every case that is there to find a defect finds it.
fn all_are_found(twin: &str) {
    let mut missed = Vec::new();
    for defect in defects(Role::Client) {
        // A fifth of the usual deadlines: what hangs is found sooner, and nothing else takes seconds.
        let run = play(twin, defect, defect.found_by, 0.2);
        assert_eq!(run.cases.len(), defect.found_by.len(), "{}", defect.name);
        let found = |status| matches!(status, Status::Fail | Status::Warn);
        for case in run.cases.iter().filter(|case| !found(case.status)) {
            missed.push(format!(
                "{} {}: {} {}",
                defect.name, case.id, case.status, case.note
            ));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The relays themselves are no defect.
fn nothing_is_found(twin: &str) {
    let cases: Vec<_> = defects(Role::Client)
        .flat_map(|defect| defect.found_by)
        .copied()
        .collect();
    let none = Box::leak(Box::new(healthy(Role::Client)));
    let run = play(twin, none, &cases, 1.0);
    let failed: Vec<_> = run
        .cases
        .iter()
        .filter(|case| case.status != Status::Pass)
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn broken_blocking_clients_are_found() {
    all_are_found("--blocking");
}

#[test]
fn broken_async_clients_are_found() {
    all_are_found("--async");
}

#[test]
fn healthy_clients_pass() {
    nothing_is_found("--blocking");
    nothing_is_found("--async");
}

//! The whole job, with nothing but this command.
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

use std::process::Command;

use serde_json::Value;

fn demo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tvm-rpc"))
        .arg("demo")
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr, "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn for_people() {
    let printed = demo(&[]);
    let said: Vec<_> = printed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let steps = [
        "tracker", "server", "queue", "session", "queue", "file", "call", "timing", "mean",
        "costs", "queue",
    ];
    assert_eq!(said, steps, "{printed}");
    let queues: Vec<_> = printed
        .lines()
        .filter(|line| line.starts_with("queue"))
        .collect();
    assert_eq!(
        queues,
        [
            "queue      key demo: 1 in all, 1 free, 0 waiting",
            "queue      key demo: 1 in all, 0 free, 0 waiting",
            "queue      key demo: 1 in all, 1 free, 0 waiting",
        ]
    );
}

#[test]
fn for_programs() {
    let report: Value = serde_json::from_str(&demo(&["--json"])).unwrap();
    for (when, free) in [("before", 1), ("during", 0), ("after", 1)] {
        assert_eq!(report[when]["queue_info"]["demo"]["free"], free, "{when}");
        assert_eq!(report[when]["server_info"][0]["key"], "server:demo");
    }
    assert_eq!(report["file"]["bytes"], 16 << 20);
    assert_eq!(report["call"]["elements"], 65536);
    assert_eq!(report["timing"]["number"], 10);
    let costs = report["timing"]["costs"].as_array().unwrap();
    assert_eq!(costs.len(), 3);
    assert!(costs.iter().all(|cost| cost.as_f64().unwrap() > 0.0));
}

#[test]
fn the_backend_is_told() {
    let printed = demo(&["--runtime", "none"]);
    assert!(
        printed.contains("functions in Rust, without a TVM runtime"),
        "{printed}"
    );
}

#[cfg(unix)]
#[test]
fn the_runtime_is_looked_for_once() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let [python, asked] = ["python3", "asked"].map(|name| folder.path().join(name));
    let script = format!("#!/bin/sh\necho once >>'{}'\n", asked.display());
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tvm-rpc"))
        .args(["demo", "--runtime", "auto"])
        .env("PATH", folder.path())
        .env_remove("TVM_RPC_RUNTIME")
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("DYLD_LIBRARY_PATH")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(fs::read_to_string(asked).unwrap(), "once\n");
}

#[test]
fn a_compiled_module_needs_a_runtime() {
    let empty = tempfile::tempdir().unwrap();
    let folder = empty.path().to_str().unwrap();
    for (runtime, told) in [
        ("none", "--lib needs TVM's runtime, and --runtime is none"),
        (folder, folder),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tvm-rpc"))
            .args(["demo", "--lib", "vadd.so", "--runtime", runtime])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
        assert_eq!(output.stdout, b"");
    }
}

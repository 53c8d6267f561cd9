//! The demo with a compiled module.

use rpc_tests::modules::VADD;
use rpc_tests::ours::{runtime_folder, tvm_rpc};
use serde_json::Value;

fn demo(arguments: &[&str]) -> String {
    let output = tvm_rpc()
        .arg("demo")
        .args(["--runtime", runtime_folder()])
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A module with one of its functions, and what it is called with: c = 0 + 1, 1 + 1, 2 + 1, …
fn vadd(library: &str) -> Vec<&str> {
    let mut arguments = vec!["--lib", library, "--func", VADD.function];
    for argument in [
        "float32[1024]=arange",
        "float32[1024]=ones",
        "float32[1024]=zeros",
    ] {
        arguments.extend(["--arg", argument]);
    }
    arguments
}

#[test]
fn a_module_is_run_and_timed() {
    let library = VADD.shared_library();
    let printed = demo(&vadd(library.to_str().unwrap()));
    assert!(printed.contains("the TVM runtime in "), "{printed}");
    assert!(printed.contains("min 1 max 1024 mean 512.5"), "{printed}");
    assert!(printed.contains("3 × 10 runs, each run took"), "{printed}");
}

#[test]
fn programs_get_a_document() {
    let archive = VADD.archive();
    let mut arguments = vadd(archive.to_str().unwrap());
    arguments.extend(["--time", "number=5,repeat=2", "--json"]);
    let report: Value = serde_json::from_str(&demo(&arguments)).unwrap();
    assert!(report["backend"].as_str().unwrap().contains("TVM runtime"));
    assert_eq!(report["run"]["function"], VADD.function);
    assert_eq!(report["run"]["outputs"][0]["max"], 1024.0);
    assert_eq!(report["run"]["timing"]["number"], 5);
    let costs = report["run"]["timing"]["costs"].as_array().unwrap();
    assert_eq!(costs.len(), 2);
}

//! The example of `docs/vectors.md`: a decoder in Python against the vectors.

use std::path::Path;
use std::process::Command;

#[test]
fn the_example_finds_the_vectors_right() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = tests.join("../docs/examples/check_vectors.py");
    let output = Command::new("python3")
        .arg(example)
        .arg(tests.join("vectors"))
        .output()
        .expect("python3 starts");
    let said = String::from_utf8(output.stdout).unwrap();
    let failed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{failed}");
    let page = std::fs::read_to_string(tests.join("../docs/vectors.md")).unwrap();
    assert!(page.contains(&said), "the page shows {said:?}");
    assert!(page.contains("{{#include examples/check_vectors.py}}"));
}

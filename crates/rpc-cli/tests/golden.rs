//! What `tvm-rpc` prints without a peer: `tests/cmd/*.trycmd`.
//!
//! `TRYCMD=overwrite cargo test -p rpc-cli --test golden` writes what it prints now.

#[test]
fn transcripts() {
    let cases = trycmd::TestCases::new();
    cases.case("tests/cmd/*.trycmd");
    // Not those of whoever runs the tests.
    for variable in [
        "TVM_TRACKER_HOST",
        "TVM_TRACKER_PORT",
        "TVM_TRACKER_KEY",
        "TVM_RPC_LOG",
    ] {
        cases.env(variable, "");
    }
}

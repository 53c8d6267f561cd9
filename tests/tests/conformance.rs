//! Both our clients pass every case of the conformance suite, and each case is a test.

use std::process::ExitCode;

use rpc_conformance::Target;
use rpc_conformance::harness::Harness;

fn main() -> ExitCode {
    let client = |twin: &str| {
        let program = env!("CARGO_BIN_EXE_conformance_client");
        let command = format!("'{program}' {twin} {{tracker}} {{key}}");
        Target::Client { command }
    };
    Harness::default()
        .and("blocking", client("--blocking"))
        .and("async", client("--async"))
        .strict()
        .main()
}

//! Our tracker and our server pass every case of the conformance suite, and each case is a test.

use std::process::ExitCode;

/// Elsewhere there is no server that gives each session a process.
#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use rpc_conformance::harness::Harness;
    use rpc_conformance::{Peer, Target};

    let command = |service: &str| {
        let program = env!("CARGO_BIN_EXE_tvm-rpc");
        Peer::Command(format!("'{program}' {service} --host {{host}} --port 0"))
    };
    let server = Target::Server {
        peer: command("server --test-functions --key {key}"),
        key: "conformance".to_owned(),
    };
    Harness::default()
        .and("tracker", Target::Tracker(command("tracker")))
        .and("server", server)
        .strict()
        .main()
}

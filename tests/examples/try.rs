//! `cargo xtask try`: starts the reference's tracker and server, then does the main job with the
//! `tvm-rpc` command, as one would type it.
#![forbid(unsafe_code)]

use std::env;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rpc_tests::peers::{Server, Tracker};
use rpc_tests::{modules, wait_until};

fn main() -> ExitCode {
    println!("Starting TVM's tracker and server on this machine…");
    let tracker = Tracker::start();
    let _server = Server::builder()
        .key("demo")
        .tracker(tracker.addr())
        .start();
    let tracker = tracker.addr().to_string();
    let (host, port) = tracker.rsplit_once(':').unwrap_or_default();

    let query = ["query", "--host", host, "--port", port];
    wait_until(Duration::from_secs(30), "the server to register", || {
        let output = tvm_rpc(&query).output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("server:demo"))
    });
    let library = modules::VADD.shared_library();
    let library = library.to_string_lossy();
    let run = [
        &["run", &library, "--tracker", &tracker, "--key", "demo"][..],
        &[
            "--func",
            modules::VADD.function,
            "--arg",
            "float32[1024]=random",
        ],
        &[
            "--arg",
            "float32[1024]=ones",
            "--arg",
            "float32[1024]=zeros",
        ],
        &["--time", "number=10,repeat=3"],
    ]
    .concat();
    for arguments in [&query[..], &run] {
        println!("\n$ tvm-rpc {}\n", arguments.join(" "));
        match tvm_rpc(arguments).status() {
            Ok(status) if status.success() => {}
            Ok(status) => {
                eprintln!("tvm-rpc failed: {status}");
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("tvm-rpc cannot be started: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn tvm_rpc(arguments: &[&str]) -> Command {
    let program = env::var_os("TVM_RPC_BIN").expect("run `cargo xtask try`");
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

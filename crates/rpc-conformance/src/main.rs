//! The command `tvm-rpc-conformance`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;

mod command;

fn main() -> ExitCode {
    command::run(command::Arguments::parse())
}

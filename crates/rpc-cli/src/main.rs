//! `tvm-rpc`: what a person does with Apache TVM's RPC at a terminal.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`args`] | the options |
//! | [`commands`] | one module for each command |
//! | [`tracker`], [`open`] | from options to a tracker, and to a session |
//! | [`scalar`], [`argspec`], [`timespec`] | the grammars of what is passed to functions |
//! | [`element`], [`tensor`], [`npy`] | tensors on this side |
//! | [`value`], [`report`] | results, for people and as JSON |
//! | [`stdio`], [`progress`] | what the terminal sees |
//! | [`service`], [`served`] | what the commands that go on running have in common; what they offer |
//! | [`farm`] | a tracker and a server inside this command |
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage.
#![forbid(unsafe_code)]
// The comments of arguments are the text of --help.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

use std::process::ExitCode;

use clap::Parser;

mod args;
mod argspec;
mod commands;
mod element;
mod farm;
mod npy;
mod open;
mod progress;
mod report;
mod scalar;
mod served;
mod service;
mod stdio;
mod tensor;
mod timespec;
mod tracker;
mod usage;
mod value;

use args::Cli;
use usage::UsageError;

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match stdio::start_logs(cli.verbose, cli.command.usual_log())
        .and_then(|()| commands::run(cli.command))
    {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has enough of it.
        Err(error) if stdio::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            stdio::error(&error);
            match error.is::<UsageError>() {
                true => WRONG_USAGE.into(),
                false => FAILED.into(),
            }
        }
    }
}

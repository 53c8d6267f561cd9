//! The project's own tasks: `cargo xtask --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod features;
mod interop;
mod layers;
mod reference;
mod sh;
mod try_out;

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Test against the reference implementation's tracker, server and compiled modules.
    Interop(interop::Arguments),
    /// Do the main job on the reference implementation's tracker and server, and show it.
    Try,
    /// Check which crate may know which: the arrows between the workspace's crates.
    Layers,
    /// Build and test each publishable crate with each of its features alone.
    Features,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Interop(arguments) => interop::run(&arguments),
        Task::Try => try_out::run(),
        Task::Layers => layers::run(),
        Task::Features => features::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

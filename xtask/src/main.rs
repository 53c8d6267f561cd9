//! The project's own tasks: `cargo xtask --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod book;
mod commands;
mod conformance;
mod features;
mod interop;
mod layers;
mod memcheck;
mod reference;
mod results;
mod sh;
mod try_out;
mod vectors;

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
    /// Test the crate with unsafe code against the reference's libraries, under valgrind.
    Memcheck,
    /// Do the main job on the reference implementation's tracker and server, and show it.
    Try,
    /// Run the conformance suite on any tracker, server or client, by default on ours.
    Conformance(conformance::Arguments),
    /// Check which crate may know which: the arrows between the workspace's crates.
    Layers,
    /// Build and test each publishable crate with each of its features alone.
    Features,
    /// Build the book of `docs` into target/book; mdBook is installed into target/tools.
    Book,
    /// Run the conformance suite on our peers and on the reference's, and write the page of results.
    Results,
    /// Run the commands of the README and of the book.
    Commands,
    /// Write the golden vectors in tests/vectors/messages.
    Vectors(vectors::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        // It has exit statuses of its own.
        Task::Conformance(arguments) => match conformance::run(&arguments) {
            Ok(status) => return status,
            Err(error) => Err(error),
        },
        Task::Interop(arguments) => interop::run(&arguments),
        Task::Memcheck => memcheck::run(),
        Task::Try => try_out::run(),
        Task::Layers => layers::run(),
        Task::Features => features::run(),
        Task::Book => book::run(),
        Task::Results => results::run(),
        Task::Commands => commands::run(),
        Task::Vectors(arguments) => vectors::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

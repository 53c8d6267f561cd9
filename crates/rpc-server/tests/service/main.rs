//! A server on loopback, its clients, and its worker processes.
//!
//! The programs of workers and of servers in a process of their own are this same program, told to run
//! one test alone: [`worker_process`] and [`server_process`].

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod client;
mod farm;
mod functions;
mod process;
mod service;

mod handshake;
mod hostile;
mod isolation;
mod lifecycle;
mod slots;
mod threads;
mod timeout;
mod tracker;
mod workers;

/// No test, unless a server starts it.
#[test]
fn worker_process() {
    if process::is_started_as("worker_process") {
        functions::run_worker();
    }
}

/// No test, unless one starts it.
#[test]
fn server_process() {
    if process::is_started_as("server_process") {
        process::run_server();
    }
}

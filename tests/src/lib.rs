//! What the cross-crate tests share: peers of the reference implementation, modules that
//! its compiler built, and waiting for a state.
//!
//! The peers and modules are prepared by `cargo xtask interop`, which passes their places in
//! environment variables. Outside of it, [`peers`] and [`modules`] panic with that hint: a
//! test that needs a real peer fails rather than passes without one.
#![forbid(unsafe_code)]

use std::env;
use std::path::PathBuf;

pub mod modules;
pub mod ours;
pub mod peers;
mod wait;

pub use wait::wait_until;

fn prepared_path(variable: &str) -> PathBuf {
    match env::var_os(variable) {
        Some(path) => PathBuf::from(path),
        None => panic!("{variable} is not set: run `cargo xtask interop`"),
    }
}

/// The programs of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmePrograms;

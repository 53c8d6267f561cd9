//! The cases inside of `cargo test`: each is a test of its own.
//!
//! In `Cargo.toml`:
//!
//! ```toml
//! [dev-dependencies]
//! rpc-conformance = { version = "0.1", default-features = false, features = ["harness"] }
//!
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! and in `tests/conformance.rs`:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use rpc_conformance::harness::Harness;
//! use rpc_conformance::{Peer, Target};
//!
//! fn main() -> ExitCode {
//!     let tracker = Peer::Command("./my-tracker --port {port}".to_owned());
//!     Harness::new(Target::Tracker(tracker)).main()
//! }
//! ```
//!
//! `cargo test --test conformance TRK-PUT` then plays the cases with `TRK-PUT` in their names, and
//! `cargo nextest` sees each of them. Each case has a peer of its own where the suite starts it.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::case::Case;
use crate::lists::Excuses;
use crate::report::Text;
use crate::results::Status;
use crate::run::{Options, Target, run};
use crate::select::Selection;

/// The cases of some peers as tests.
#[derive(Debug, Default)]
pub struct Harness {
    targets: Vec<(String, Target)>,
    options: Options,
    excuses: Excuses,
    is_strict: bool,
}

impl Harness {
    /// The cases of this peer, named by their ids.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self::default().and(String::new(), target)
    }

    /// The cases of another peer, too; its name stands before their ids.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>, target: Target) -> Self {
        self.targets.push((name.into(), target));
        self
    }

    /// How they are played; its selection says which.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Failures that are known. One that passes is a failure.
    #[must_use]
    pub fn with_excuses(mut self, excuses: Excuses) -> Self {
        self.excuses = excuses;
        self
    }

    /// A SHOULD that is missed is a failure, too.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Runs the tests that the command line asks for, as a test program does.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let arguments = Arguments::from_args();
        let Self {
            targets,
            options,
            excuses,
            is_strict,
        } = self;
        let trials = targets.into_iter().flat_map(|(name, target)| {
            let cases = options.selection.of(target.role());
            let one = One {
                target,
                options: options.clone(),
                excuses: excuses.clone(),
                is_strict,
            };
            cases.into_iter().map(move |case| {
                let one = one.clone();
                let name = match name.as_str() {
                    "" => case.id.to_owned(),
                    name => format!("{name}::{}", case.id),
                };
                Trial::test(name, move || one.play(case))
            })
        });
        libtest_mimic::run(&arguments, trials.collect()).exit_code()
    }
}

/// What a test needs.
#[derive(Debug, Clone)]
struct One {
    target: Target,
    options: Options,
    excuses: Excuses,
    is_strict: bool,
}

impl One {
    fn play(self, case: &Case) -> Result<(), Failed> {
        let selection = Selection::all().with_ids([case.id.to_owned()]);
        let options = self.options.with_selection(selection);
        let mut run = run(&self.target, &options, &|_, _| ())?;
        self.excuses.apply(&mut run);
        let is_bad = |status| match status {
            Status::Fail | Status::Error | Status::NotRun => true,
            Status::Warn => self.is_strict,
            _ => false,
        };
        let mut cases = run.cases.iter();
        let is_bad = cases.any(|played| is_bad(played.status) && played.excused.is_none());
        match is_bad || !run.stale.is_empty() {
            true => Err(Text::default().verbose(true).report(&run).into()),
            false => Ok(()),
        }
    }
}

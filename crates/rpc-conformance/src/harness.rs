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
//! `cargo nextest` sees each of them. Each case has a peer of its own where the suite starts it; a peer that
//! runs already is shared by them, and those that would disturb others have it for themselves. (Under
//! `cargo nextest` each is a process of its own, which knows nothing of the others: so `--test-threads 1`.)

use std::process::ExitCode;
use std::sync::{Arc, PoisonError, RwLock};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::case::{Case, Tag};
use crate::lists::Excuses;
use crate::peer::Peer;
use crate::report::Text;
use crate::results::{Run, Status};
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

    /// Failures that are known, and cases that fail now and then, which are played several times. One that
    /// is known and passes is a failure, and so is an entry that names no case: that is the test `lists`.
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
        libtest_mimic::run(&arguments, self.trials()).exit_code()
    }

    fn trials(self) -> Vec<Trial> {
        let Self {
            targets,
            options,
            excuses,
            is_strict,
        } = self;
        let lists = (!excuses.is_empty()).then(|| {
            let excuses = excuses.clone();
            Trial::test("lists", move || lists(&excuses))
        });
        let cases = targets.into_iter().flat_map(|(name, target)| {
            let cases = match options.replays.as_slice() {
                [] => options.selection.of(target.role()),
                replays => replays.to_vec(),
            };
            let one = One {
                target,
                options: options.clone(),
                excuses: excuses.clone(),
                is_strict,
                turns: Arc::default(),
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
        lists.into_iter().chain(cases).collect()
    }
}

/// Whether every entry names a case.
fn lists(excuses: &Excuses) -> Result<(), Failed> {
    let unknown: Vec<_> = excuses.unknown().collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(unknown.join("\n").into()),
    }
}

/// What a test needs.
#[derive(Debug, Clone)]
struct One {
    target: Target,
    options: Options,
    excuses: Excuses,
    is_strict: bool,
    /// Who has the peer: several cases, or one for itself.
    turns: Arc<RwLock<()>>,
}

impl One {
    fn play(self, case: &'static Case) -> Result<(), Failed> {
        let mut run = match self.goes_alone(case) {
            true => {
                let _alone = self.turns.write().unwrap_or_else(PoisonError::into_inner);
                self.run(case)?
            }
            false => {
                let _with_others = self.turns.read().unwrap_or_else(PoisonError::into_inner);
                self.run(case)?
            }
        };
        self.excuses.apply_to_cases(&mut run);
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
    fn run(&self, case: &'static Case) -> Result<Run, Failed> {
        let flaky = self.excuses.flaky_ids().map(str::to_owned);
        let options = self.options.clone().with_repeated(flaky);
        let options = match options.replays.is_empty() {
            true => options.with_selection(Selection::all().with_ids([case.id.to_owned()])),
            false => options.with_replays([case]),
        };
        Ok(run(&self.target, &options, &|_, _| ())?)
    }

    /// Whether no other case may have the peer at the same time.
    fn goes_alone(&self, case: &Case) -> bool {
        let tags = [Tag::Alone, Tag::Hostile, Tag::Spoils];
        match &self.target {
            Target::Tracker(Peer::Running(_)) => tags.iter().any(|tag| case.has(*tag)),
            // It may have one session at a time.
            Target::Server {
                peer: Peer::Running(_),
                ..
            } => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::lists::List;

    fn one(target: Target, excuses: Excuses) -> One {
        One {
            target,
            options: Options::default().with_slow(0.1),
            excuses,
            is_strict: false,
            turns: Arc::default(),
        }
    }

    fn excuses(known: &str, flaky: &str) -> Excuses {
        let list = |text| List::parse(text).unwrap();
        Excuses::new(list(known), list(flaky), None).unwrap()
    }

    fn greeting() -> &'static Case {
        crate::ids::find("TRK-HELLO-001").unwrap()
    }

    /// A tracker that closes each connection, and how many it has had.
    fn closing() -> (Target, Arc<AtomicUsize>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                drop(stream);
            }
        });
        (Target::Tracker(Peer::Running(addr)), accepted)
    }

    #[test]
    fn an_entry_that_names_no_case_is_a_failure_of_its_own() {
        let excuses = excuses("TRK-HELLO-001: x\nTRK-NONE-999: y", "");
        assert!(lists(&excuses).is_err());
        let (target, _) = closing();
        let harness = Harness::new(target.clone()).with_excuses(excuses.clone());
        let count = Selection::all().of(target.role()).len();
        assert_eq!(harness.trials().len(), count + 1);
        assert!(one(target, excuses).play(greeting()).is_ok());
    }

    #[test]
    fn flaky_cases_are_played_several_times() {
        let count = |excuses: Excuses| {
            let (target, accepted) = closing();
            assert!(one(target, excuses).play(greeting()).is_ok());
            accepted.load(Ordering::Relaxed)
        };
        let text = "TRK-HELLO-001: x";
        let (once, often) = (count(excuses(text, "")), count(excuses("", text)));
        assert!(often >= once + 2, "{once} and {often} connections");
    }

    #[test]
    fn who_disturbs_others_has_a_shared_peer_for_itself() {
        let one = |target| one(target, Excuses::default());
        let shared = || Peer::Running("127.0.0.1:9".to_owned());
        let own = || Peer::Command("tracker".to_owned());
        let server = |peer| Target::Server {
            peer,
            key: "k".to_owned(),
        };
        let alone = |target, tag: Tag| {
            let one = one(target);
            let cases = Selection::all().with_tags([tag]).of(one.target.role());
            let alone = cases.iter().filter(|case| one.goes_alone(case)).count();
            (alone > 0, alone < cases.len())
        };
        for tag in [Tag::Alone, Tag::Hostile, Tag::Spoils] {
            assert_eq!(alone(Target::Tracker(shared()), tag), (true, false));
            assert_eq!(alone(Target::Tracker(own()), tag), (false, true));
        }
        let all = Selection::all().of(crate::Role::Tracker);
        let tracker = one(Target::Tracker(shared()));
        assert!(all.iter().any(|case| !tracker.goes_alone(case)));
        assert_eq!(alone(server(shared()), Tag::Hostile), (true, false));
        assert_eq!(alone(server(own()), Tag::Hostile), (false, true));
    }
}

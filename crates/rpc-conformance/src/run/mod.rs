//! Runs the cases of a role: in parallel where the peer allows it, in an order that the seed gives,
//! each with its own connections and deadlines.

mod options;
mod play;
mod probe;
mod soak;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use options::Options;
pub use soak::{Left, Load, Soaked, soak};

use crate::case::{Case, Level, Role, Tag};
use crate::peer::{Peer, PeerError};
use crate::results::{FORMAT, PeerInfo, Played, Run, Status};
use crate::select::Selection;
use crate::stage::{Chunking, Conditions};
use play::{NoPeer, Under};

/// Whom to test.
#[derive(Debug, Clone)]
pub enum Target {
    /// A tracker.
    Tracker(Peer),
    /// A server without a tracker, and the key that it accepts.
    Server {
        /// How it is reached.
        peer: Peer,
        /// Its key, which is what its clients name as match key.
        key: String,
    },
    /// A client: the command that runs the script, with `{tracker}` and `{key}` in it.
    Client {
        /// The command.
        command: String,
    },
}

impl Target {
    /// The role that is tested.
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Self::Tracker(_) => Role::Tracker,
            Self::Server { .. } => Role::Server,
            Self::Client { .. } => Role::Client,
        }
    }
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No case is selected.
    #[error("no case of the role {role} is selected, of {of}")]
    NothingSelected {
        /// The role.
        role: Role,
        /// How many cases it has.
        of: usize,
    },
    /// There is no peer to test.
    #[error("the {role} under test")]
    Peer {
        /// The role.
        role: Role,
        /// Why not.
        #[source]
        source: PeerError,
    },
    /// The command of a client cannot be read, or there is no such program.
    #[error("the command {command:?}")]
    Command {
        /// The command.
        command: String,
        /// What is wrong with it.
        #[source]
        source: std::io::Error,
    },
}

/// A case to be played, and where its result goes.
#[derive(Debug, Clone, Copy)]
struct Job {
    place: usize,
    case: &'static Case,
    chunking: Chunking,
}

/// Runs the selected cases. `on_played` hears of each as soon as it has been played, and of how many
/// there are to be.
///
/// # Errors
/// No case is selected, or the peer cannot be reached or started.
pub fn run(
    target: &Target,
    options: &Options,
    on_played: &(dyn Fn(&Played, usize) + Sync),
) -> Result<Run, RunError> {
    let role = target.role();
    let cases = match options.replays.as_slice() {
        [] => options.selection.of(role),
        replays => replays.to_vec(),
    };
    if cases.is_empty() {
        let of = Selection::all().of(role).len();
        return Err(RunError::NothingSelected { role, of });
    }
    let under = Under::new(target, options).map_err(|error| no_peer(role, error))?;
    let began = Instant::now();
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let probed = probe::probe(&under, &cases, options);
    let jobs = jobs(&cases, options);
    let total = jobs.len();
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let disturbed = Mutex::new(Vec::new());
    let play = |job: &Job, is_alone: bool| {
        let life = under.life();
        let mut played = tried(&under, job, options, &probed);
        if !is_alone && under.life() != life && played.status != Status::NotRun {
            // The peer was started again meanwhile: whose fault that was shows itself when each of them has
            // it for itself.
            let mut disturbed = disturbed.lock().unwrap_or_else(PoisonError::into_inner);
            disturbed.push(*job);
            return;
        }
        on_played(&played, total);
        if played.status == Status::Pass {
            played.transcript = Vec::new();
        }
        *results[job.place]
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(played);
    };
    // What disturbs others goes last, and what may spoil the peer at the very end.
    for (order, threads) in [(0, options.jobs.unwrap_or(probed.jobs)), (1, 1), (2, 1)] {
        let jobs: Vec<_> = jobs.iter().filter(|job| turn(job.case) == order).collect();
        in_parallel(&jobs, threads, &options.stop, &|job| {
            play(job, threads == 1);
        });
        let again = std::mem::take(&mut *disturbed.lock().unwrap_or_else(PoisonError::into_inner));
        let again: Vec<_> = again.iter().collect();
        in_parallel(&again, 1, &options.stop, &|job| play(job, true));
    }
    let cases = results
        .into_iter()
        .zip(jobs_in_order(&jobs))
        .map(|(result, job)| {
            let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.unwrap_or_else(|| {
                play::unplayed(
                    job.case,
                    job.chunking,
                    Status::NotRun,
                    "the run ended before",
                )
            })
        });
    Ok(Run {
        peer: under.info(probed.said),
        began: since_1970.as_secs(),
        milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        cases: cases.collect(),
        ..empty(role, options)
    })
}

fn no_peer(role: Role, error: NoPeer) -> RunError {
    match error {
        NoPeer::Peer(source) => RunError::Peer { role, source },
        NoPeer::Command { command, source } => RunError::Command { command, source },
    }
}

/// The report of a run that did not begin: every selected case is there, and why it was not played.
#[must_use]
pub fn not_run(target: &Target, options: &Options, error: &RunError) -> Run {
    let role = target.role();
    let cases = options.selection.of(role);
    let why = causes(error);
    let unplayed = jobs_in_order(&jobs(&cases, options))
        .into_iter()
        .map(|job| play::unplayed(job.case, job.chunking, Status::NotRun, &why));
    Run {
        peer: play::info(target, BTreeMap::new()),
        cases: unplayed.collect(),
        failure: Some(why.clone()),
        ..empty(role, options)
    }
}

/// An error and what it comes from, on one line.
fn causes(error: &RunError) -> String {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| {
        error.source()
    });
    let chain: Vec<_> = chain.map(ToString::to_string).collect();
    chain.join(": ")
}

fn empty(role: Role, options: &Options) -> Run {
    let selected: BTreeSet<_> = match options.replays.as_slice() {
        [] => options
            .selection
            .of(role)
            .iter()
            .map(|case| case.id)
            .collect(),
        _ => BTreeSet::new(),
    };
    let of_role = Selection::all().of(role);
    Run {
        format: FORMAT,
        suite: env!("CARGO_PKG_VERSION").to_owned(),
        role,
        set: None,
        of: of_role.len(),
        is_whole: of_role
            .iter()
            .all(|case| case.level != Level::Must || selected.contains(case.id)),
        peer: PeerInfo::default(),
        seed: options.seed,
        slow: options.slow,
        began: 0,
        milliseconds: 0,
        failure: None,
        cases: Vec::new(),
        stale: Vec::new(),
    }
}

/// How often a case is played that is said to be flaky.
const TRIES: u64 = 3;

/// Plays a case, or several times one that is said to be flaky: then the worst of them is what it
/// came to.
fn tried(under: &Under, job: &Job, options: &Options, probed: &probe::Probed) -> Played {
    let play = |attempt| under.play(job.case, &conditions(job, options, attempt), probed);
    let mut worst = play(0);
    if !options.repeated.contains(job.case.id) || worst.status == Status::Skipped {
        return worst;
    }
    let badness = |played: &Played| match played.status {
        Status::Fail => 3,
        Status::Warn => 2,
        Status::Pass => 0,
        _ => 1,
    };
    let mut tries = vec![worst.status];
    for attempt in 1..TRIES {
        let next = play(attempt);
        tries.push(next.status);
        // Of several that are as bad, the first: the seed of the run plays it again.
        if badness(&next) > badness(&worst) {
            worst = next;
        }
    }
    Played { tries, ..worst }
}

/// Every case with every chunking, in an order that the seed gives. Its place is that in the suite.
fn jobs(cases: &[&'static Case], options: &Options) -> Vec<Job> {
    let mut jobs: Vec<_> = cases
        .iter()
        .flat_map(|case| options.chunkings.iter().map(|&chunking| (*case, chunking)))
        .enumerate()
        .map(|(place, (case, chunking))| Job {
            place,
            case,
            chunking,
        })
        .collect();
    fastrand::Rng::with_seed(options.seed).shuffle(&mut jobs);
    jobs
}

/// When a case is played: with others, alone, or last.
fn turn(case: &Case) -> u8 {
    if case.has(Tag::Spoils) {
        2
    } else {
        // What spoils a client spoils no other: each case starts its own.
        let hostile = case.has(Tag::Hostile) && case.role() != Role::Client;
        u8::from(case.has(Tag::Alone) || hostile)
    }
}

fn jobs_in_order(jobs: &[Job]) -> Vec<Job> {
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|job| job.place);
    jobs
}

fn conditions(job: &Job, options: &Options, attempt: u64) -> Conditions {
    // A client is a program that has to start first.
    let step = if job.case.role() == Role::Client {
        10
    } else {
        5
    };
    let seconds = |seconds: u32| Duration::from_secs(seconds.into()).mul_f64(options.slow);
    Conditions {
        step: seconds(step),
        total: seconds(if job.case.has(Tag::Slow) { 90 } else { 45 }),
        chunking: job.chunking,
        // Keys are made of the upper half.
        seed: options.seed ^ fxhash(job.case.id) ^ (attempt << 32) ^ ((job.chunking as u64) << 48),
        is_recorded: options.is_recorded,
    }
}

/// The seed of a case, which does not depend on what else is run.
fn fxhash(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn in_parallel(jobs: &[&Job], threads: usize, stop: &AtomicBool, play: &(dyn Fn(&Job) + Sync)) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1).min(jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                    && !stop.load(Ordering::Relaxed)
                {
                    play(job);
                }
            });
        }
    });
}

/// Plays a case whose own code may be wrong: that is the suite's fault, and no reason to stop.
fn guarded<T>(play: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(play)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("the case panicked: {}", text.unwrap_or("without a text"))
    })
}

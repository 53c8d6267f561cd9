//! A run: what the arguments ask for, and what becomes of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rpc_conformance::broken::defects;
use rpc_conformance::lists::{Excuses, List, write_known_failures};
use rpc_conformance::{
    Chunking, FrozenSet, Options, PeerError, Played, Role, RunError, Selection, Status, Target,
    replay,
};

use super::arguments::{ListArguments, PlayingArguments, RunArguments, SelectionArguments};
use super::output::{Format, Reports, record, show};
use super::progress::Progress;
use super::{Failure, NO_PEER, SUITE, USAGE, list, read, read_run, suite, usage, write};

pub(super) fn run(
    target: Option<Target>,
    role: Role,
    arguments: &RunArguments,
) -> Result<u8, Failure> {
    let last = arguments.selection.rerun_failed.as_deref();
    let last = last.map(|file| Last::read(file, role)).transpose()?;
    let selection = selection(&arguments.selection, last.as_ref());
    if arguments.selection.list {
        return list_cases(&selection, role, arguments);
    }
    if arguments.playing.broken.as_deref() == Some("list") {
        for defect in defects(role) {
            println!("{:<24} {}", defect.name, defect.what);
        }
        return Ok(0);
    }
    let target = target.ok_or_else(|| {
        let which = match role {
            Role::Client => "--cmd COMMAND",
            _ => "--addr HOST:PORT or --cmd COMMAND",
        };
        usage(anyhow!("which {role} is to be tested? {which}"))
    })?;
    let reports = Reports::new(&arguments.output)?;
    let excuses = excuses(&arguments.lists)?;
    let set = arguments.lists.set.as_deref().map(set).transpose()?;
    let mut options = options(&arguments.playing, selection, last.as_ref());
    options = options
        .with_repeated(excuses.flaky_ids().map(str::to_owned))
        .with_stop(stop_when_interrupted()?);
    options = spoilt_or_replayed(options, &arguments.playing, role)?;
    let folder = arguments.output.record.as_deref();
    if let Some(folder) = folder {
        let made = fs::create_dir_all(folder);
        made.with_context(|| folder.display().to_string())
            .map_err(suite)?;
        options = options.with_recordings();
    }
    let progress = Progress::new(arguments.output.quiet);
    let unrecorded = Mutex::new(None);
    let on_played = |played: &Played, total: usize| {
        let is_scored = set.as_ref().is_none_or(|set| set.has(&played.id));
        progress.played(played, total, is_scored && excuses.excuse(played).is_none());
        if let Some(folder) = folder
            && let Err(error) = record(folder, played)
        {
            *unrecorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    };
    let ran = rpc_conformance::run(&target, &options, &on_played);
    progress.done();
    let (mut run, failure) = match ran {
        Ok(run) => (run, None),
        Err(error) => (
            rpc_conformance::not_run(&target, &options, &error),
            Some(error),
        ),
    };
    run.peer.name = arguments.lists.peer_name.clone();
    run.peer.version = arguments.lists.peer_version.clone();
    if let Some(set) = &set {
        set.apply(&mut run);
    }
    excuses.apply(&mut run);
    reports.write(&run)?;
    if let Some(error) = failure {
        return Err(Failure {
            status: status(&error),
            error: error.into(),
        });
    }
    if let Some(file) = &arguments.lists.write_known_failures {
        write(file, &write_known_failures(&run, &excuses))?;
    }
    match unrecorded
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        Some(error) => Err(suite(error)),
        None => Ok(run.exit_status()),
    }
}

fn spoilt_or_replayed(
    mut options: Options,
    playing: &PlayingArguments,
    role: Role,
) -> Result<Options, Failure> {
    if let Some(name) = &playing.broken {
        let defect = defects(role).find(|defect| defect.name == name);
        let unknown =
            || anyhow!("no {role} is broken by {name:?}; --broken list lists what there is");
        options = options.with_defect(defect.ok_or_else(|| usage(unknown()))?);
    }
    let files = playing.replay.iter();
    let cases: Result<Vec<_>, _> = files.map(|file| replay(file, role)).collect();
    Ok(options.with_replays(cases.map_err(usage)?))
}

/// The status of the command where there was no run.
pub(super) fn status(error: &RunError) -> u8 {
    match error {
        RunError::Peer {
            source: PeerError::Interrupted,
            ..
        } => SUITE,
        RunError::Peer { .. } => NO_PEER,
        RunError::Command { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            NO_PEER
        }
        _ => USAGE,
    }
}

fn list_cases(selection: &Selection, role: Role, arguments: &RunArguments) -> Result<u8, Failure> {
    let cases = selection.of(role);
    if cases.is_empty() {
        return Err(usage(anyhow!("no case of the role {role} is selected")));
    }
    let format = arguments.output.report.first().map(|report| report.format);
    let text = match format {
        None | Some(Format::Text) => list::text(&cases),
        Some(Format::Json) => list::json(&cases),
        Some(_) => return Err(usage(anyhow!("a list is text or json"))),
    };
    match &arguments.output.out {
        Some(file) => write(file, &text)?,
        None => show(&text),
    }
    Ok(0)
}

fn selection(arguments: &SelectionArguments, last: Option<&Last>) -> Selection {
    let mut selection = Selection::all()
        .with_only(arguments.only.iter().cloned())
        .with_skip(arguments.skip.iter().cloned())
        .with_clauses(arguments.clause.iter().cloned())
        .with_tags(arguments.tag.iter().copied());
    if let Some(level) = arguments.level {
        selection = selection.with_level(level);
    }
    if let Some(last) = last {
        selection = selection.with_ids(last.ids.iter().cloned());
    }
    selection
}

fn options(arguments: &PlayingArguments, selection: Selection, last: Option<&Last>) -> Options {
    let mut options = Options::default()
        .with_selection(selection)
        .with_slow(arguments.slow)
        .with_patience(Duration::from_secs_f64(arguments.patience));
    let given: Vec<_> = arguments
        .axis
        .iter()
        .flat_map(|axis| axis.0.iter().copied())
        .collect();
    if arguments.exhaustive {
        options = options.with_chunkings(Chunking::ALL);
    } else if !given.is_empty() {
        options = options.with_chunkings(given);
    } else if let Some(last) = last {
        options = options.with_chunkings(last.chunkings.iter().copied());
    }
    if let Some(jobs) = arguments.jobs {
        options = options.with_jobs(jobs);
    }
    match (arguments.seed, last) {
        (Some(seed), _) => options.with_seed(seed),
        (None, Some(last)) => options.with_seed(last.seed),
        (None, None) => options,
    }
}

/// What did not pass in a run before.
#[derive(Debug)]
struct Last {
    ids: BTreeSet<String>,
    chunkings: Vec<Chunking>,
    seed: u64,
}

impl Last {
    fn read(file: &Path, role: Role) -> Result<Self, Failure> {
        let run = read_run(file)?;
        let file = file.display();
        if run.role != role {
            return Err(usage(anyhow!("{file} is about a {}", run.role)));
        }
        let again = |status| {
            matches!(
                status,
                Status::Fail | Status::Warn | Status::Error | Status::NotRun
            )
        };
        let failed: Vec<_> = run.cases.iter().filter(|case| again(case.status)).collect();
        if failed.is_empty() {
            return Err(usage(anyhow!(
                "in {file} there is nothing that did not pass"
            )));
        }
        let chunkings = failed.iter().map(|case| case.chunking);
        let is_played = |chunking: &Chunking| chunkings.clone().any(|played| played == *chunking);
        Ok(Self {
            ids: failed.iter().map(|case| case.id.clone()).collect(),
            chunkings: Chunking::ALL.into_iter().filter(is_played).collect(),
            seed: run.seed,
        })
    }
}

fn excuses(arguments: &ListArguments) -> Result<Excuses, Failure> {
    let list = |file: Option<&Path>| match file {
        None => Ok(List::default()),
        Some(file) => List::parse(&read(file)?)
            .with_context(|| file.display().to_string())
            .map_err(usage),
    };
    let known = list(arguments.known_failures.as_deref())?;
    let flaky = list(arguments.flaky.as_deref())?;
    Excuses::new(known, flaky, arguments.peer_version.clone())
        .context("the list of flaky cases")
        .map_err(usage)
}

fn set(name: &str) -> Result<FrozenSet, Failure> {
    FrozenSet::named(name).ok_or_else(|| {
        let names: Vec<_> = FrozenSet::names().collect();
        usage(anyhow!(
            "there is no set {name}; there is {}",
            names.join(", ")
        ))
    })
}

/// At the first interrupt no other case is begun, and what was played is reported; at the second the
/// command ends at once.
pub(super) fn stop_when_interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let handler = move || {
        if seen.swap(true, Ordering::Relaxed) {
            rpc_conformance::kill_peers();
            std::process::exit(super::SUITE.into());
        }
    };
    ctrlc::set_handler(handler).map_err(suite)?;
    Ok(stop)
}

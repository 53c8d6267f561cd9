//! A run: what the arguments ask for, and what becomes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rpc_conformance::broken::defects;
use rpc_conformance::lists::{Excuses, List, write_known_failures};
use rpc_conformance::{
    Case, Chunking, FrozenSet, Options, PeerError, Played, Role, Run, RunError, Selection, Target,
    replays, report,
};

use super::arguments::{ListArguments, PlayingArguments, RunArguments, SelectionArguments};
use super::last::Last;
use super::output::{Reports, record, show, write_list};
use super::progress::Progress;
use super::{Failure, NO_PEER, SUITE, USAGE, read, suite, usage, write};

pub(super) fn run(
    target: Option<Target>,
    role: Role,
    arguments: &RunArguments,
) -> Result<u8, Failure> {
    let last = arguments.selection.rerun_failed.as_deref();
    let last = last.map(|file| Last::read(file, role)).transpose()?;
    if arguments.selection.list {
        return list_cases(role, arguments, last.as_ref());
    }
    if arguments.playing.broken.as_deref() == Some("list") {
        let of_role = defects(role).map(|defect| format!("{:<24} {}\n", defect.name, defect.what));
        show(&of_role.collect::<String>());
        return Ok(0);
    }
    let target = target.ok_or_else(|| {
        let which = match role {
            Role::Client => "--cmd COMMAND",
            _ => "--addr HOST:PORT or --cmd COMMAND",
        };
        usage(anyhow!("which {role} is to be tested? {which}"))
    })?;
    let recorded = recorded(&arguments.playing, role)?;
    let reports = Reports::new(&arguments.output, again(&arguments.playing, &recorded))?;
    let excuses = excuses(&arguments.lists)?;
    let written = arguments.lists.write_known_failures.as_deref();
    let before = written.map(overwritten).transpose()?.unwrap_or_default();
    let set = arguments.lists.set.as_deref().map(set).transpose()?;
    let options = options(&arguments.playing, last.as_ref())
        .with_repeated(excuses.flaky_ids().map(str::to_owned))
        .with_stop(stop_when_interrupted()?);
    let mut options = spoilt(options, &arguments.playing, role)?;
    let folder = arguments.output.record.as_deref();
    if let Some(folder) = folder {
        let made = fs::create_dir_all(folder);
        made.with_context(|| folder.display().to_string())
            .map_err(suite)?;
        options = options.with_recordings();
    }
    let parts = match recorded.is_empty() {
        true => parts(&options, role, arguments, last.as_ref()),
        false => vec![only_recorded(&options, &recorded)],
    };
    let total = parts.iter().map(|part| part.count).sum();
    let progress = Progress::new(arguments.output.quiet);
    let unrecorded = Mutex::new(None);
    let on_played = |played: &Played, _| {
        let is_scored = set.as_ref().is_none_or(|set| set.has(&played.id));
        progress.played(played, total, is_scored && excuses.excuse(played).is_none());
        if let Some(folder) = folder
            && let Err(error) = record(folder, played)
        {
            *unrecorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    };
    let played = play(&target, &parts, &on_played);
    progress.done();
    let Some((mut run, failure)) = played else {
        return Err(usage(anyhow!("no case is selected")));
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
    if let Some(file) = written {
        write(file, &write_known_failures(&run, &excuses, &before))?;
    }
    match unrecorded
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        Some(error) => Err(suite(error)),
        None => Ok(run.exit_status()),
    }
}

/// Cases that are played in the same ways.
#[derive(Debug)]
struct Part {
    options: Options,
    /// How many playings that are.
    count: usize,
}

/// What is selected. Of a run before, each case is played in the ways in which it did not pass, unless
/// the arguments say in which.
fn parts(
    options: &Options,
    role: Role,
    arguments: &RunArguments,
    last: Option<&Last>,
) -> Vec<Part> {
    let part = |selection: Selection, ways: &[Chunking]| Part {
        count: selection.of(role).len() * ways.len(),
        options: options
            .clone()
            .with_selection(selection)
            .with_chunkings(ways.iter().copied()),
    };
    let ways = ways(&arguments.playing);
    let whole = part(
        selection(&arguments.selection, last),
        ways.as_deref().unwrap_or(&[Chunking::Whole]),
    );
    let Some(last) = last.filter(|_| ways.is_none()) else {
        return vec![whole];
    };
    let groups = last.groups.iter().map(|(ids, ways)| {
        let selection = selection(&arguments.selection, None);
        part(selection.with_ids(ids.iter().cloned()), ways)
    });
    let selected: Vec<_> = groups.filter(|part| part.count > 0).collect();
    match selected.is_empty() {
        // That nothing is selected is for the run to say.
        true => vec![whole],
        false => selected,
    }
}

/// Recorded conversations, and no case of the suite.
fn only_recorded(options: &Options, recorded: &Recorded<'_>) -> Part {
    let cases = recorded.iter().map(|(case, _)| *case);
    Part {
        options: options
            .clone()
            .with_selection(Selection::all().with_ids([]))
            .with_replays(cases),
        count: recorded.len(),
    }
}

/// Plays all parts as one run, of which the cases of a part are not run where its peer cannot be reached.
fn play(
    target: &Target,
    parts: &[Part],
    on_played: &(dyn Fn(&Played, usize) + Sync),
) -> Option<(Run, Option<RunError>)> {
    let mut failure = None;
    let runs = parts.iter().map(|part| {
        let ran = rpc_conformance::run(target, &part.options, on_played);
        ran.unwrap_or_else(|error| {
            let run = rpc_conformance::not_run(target, &part.options, &error);
            failure = Some(error);
            run
        })
    });
    let run = runs.reduce(Run::and)?;
    Some((run, failure))
}

type Recorded<'a> = Vec<(&'static Case, &'a Path)>;

/// The conversations that are to be played instead of the cases.
fn recorded(playing: &PlayingArguments, role: Role) -> Result<Recorded<'_>, Failure> {
    let files = || playing.replay.iter().map(PathBuf::as_path);
    let cases = replays(files(), role).map_err(usage)?;
    Ok(cases.into_iter().zip(files()).collect())
}

/// What plays a case again, besides what the run knows.
fn again(playing: &PlayingArguments, recorded: &Recorded<'_>) -> report::Again {
    let mut again = report::Again::default();
    if let Ok(command) = std::env::var("TVM_RPC_CONFORMANCE_COMMAND") {
        again = again.with_command(command);
    }
    if let Some(defect) = &playing.broken {
        again = again.with_option("--broken", defect);
    }
    if let Some(patience) = playing.patience {
        again = again.with_option("--patience", patience.to_string());
    }
    for (case, file) in recorded {
        again = again.with_recording(case.id, file.display().to_string());
    }
    again
}

fn spoilt(options: Options, playing: &PlayingArguments, role: Role) -> Result<Options, Failure> {
    let Some(name) = &playing.broken else {
        return Ok(options);
    };
    let defect = defects(role).find(|defect| defect.name == name);
    let unknown = || anyhow!("no {role} is broken by {name:?}; --broken list lists what there is");
    let defect = defect.ok_or_else(|| usage(unknown()))?;
    Ok(options.with_defect(defect))
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

fn list_cases(role: Role, arguments: &RunArguments, last: Option<&Last>) -> Result<u8, Failure> {
    let cases = selection(&arguments.selection, last).of(role);
    if cases.is_empty() {
        return Err(usage(anyhow!("no case of the role {role} is selected")));
    }
    write_list(&arguments.output, &cases)?;
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
        selection = selection.with_ids(last.ids().cloned());
    }
    selection
}

/// The ways in which each case is played, where the arguments name some.
fn ways(arguments: &PlayingArguments) -> Option<Vec<Chunking>> {
    if arguments.exhaustive {
        return Some(Chunking::ALL.to_vec());
    }
    let given = arguments.axis.iter().flat_map(|axis| &axis.0);
    let is_given = |chunking: &Chunking| given.clone().any(|given| given == chunking);
    let ways: Vec<_> = Chunking::ALL.into_iter().filter(is_given).collect();
    (!ways.is_empty()).then_some(ways)
}

fn options(arguments: &PlayingArguments, last: Option<&Last>) -> Options {
    let mut options = Options::default();
    if let Some(slow) = arguments.slow.or(last.map(|last| last.slow)) {
        options = options.with_slow(slow);
    }
    if let Some(patience) = arguments.patience {
        options = options.with_patience(Duration::from_secs_f64(patience));
    }
    if let Some(jobs) = arguments.jobs {
        options = options.with_jobs(jobs.into());
    }
    match arguments.seed.or(last.map(|last| last.seed)) {
        Some(seed) => options.with_seed(seed),
        None => options,
    }
}

fn excuses(arguments: &ListArguments) -> Result<Excuses, Failure> {
    let known = arguments.known_failures.as_deref().map(list);
    let known = known.transpose()?.unwrap_or_default();
    let flaky = arguments.flaky.as_deref().map(list);
    let flaky = flaky.transpose()?.unwrap_or_default();
    Excuses::new(known, flaky, arguments.peer_version.clone())
        .context("the list of flaky cases")
        .map_err(usage)
}

fn list(file: &Path) -> Result<List, Failure> {
    List::parse(&read(file)?)
        .with_context(|| file.display().to_string())
        .map_err(usage)
}

/// The list that will be written over, if there is one: anything else is not overwritten.
fn overwritten(file: &Path) -> Result<List, Failure> {
    match fs::exists(file) {
        Ok(false) => Ok(List::default()),
        _ => list(file),
    }
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

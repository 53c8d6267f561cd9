//! Plays one case on the peer under test, and sees that the peer is there for the next.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rpc_proto::Dialect;

use super::probe::Probed;
use super::{Options, Target, guarded};
use crate::broken::Defect;
use crate::case::{Case, Level, Play, Role, Tag};
use crate::peer::{Care, Life, Peer, PeerError, Running, words};
use crate::replay::Replay;
use crate::results::{PeerInfo, Played, Status};
use crate::roles::{Client, Server, Tracker};
use crate::stage::{Check, Chunking, Conditions, Outcome, SURVIVES, Stage, Stop};

/// The peer under test.
#[derive(Debug)]
pub(super) enum Under {
    Tracker(Arc<Running>, Peer),
    Server {
        running: Arc<Running>,
        peer: Peer,
        key: String,
    },
    Client {
        command: String,
        words: Vec<String>,
        defect: Option<&'static Defect>,
    },
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NoPeer {
    Peer(PeerError),
    Command {
        command: String,
        source: std::io::Error,
    },
}

impl Under {
    pub(super) fn new(target: &Target, options: &Options) -> Result<Self, NoPeer> {
        let run = |peer: &Peer, key: &str| {
            let care = Care {
                key: key.to_owned(),
                patience: options.patience,
                defect: options.defect,
                stop: Arc::clone(&options.stop),
            };
            Running::new(peer, care).map(Arc::new).map_err(NoPeer::Peer)
        };
        Ok(match target {
            Target::Tracker(peer) => Self::Tracker(run(peer, "")?, peer.clone()),
            Target::Server { peer, key } => Self::Server {
                running: run(peer, key)?,
                peer: peer.clone(),
                key: key.clone(),
            },
            Target::Client { command } => Self::Client {
                words: words(command, &[])
                    .and_then(|words| {
                        find_program(words.first().map_or("", String::as_str))?;
                        Ok(words)
                    })
                    .map_err(|source| NoPeer::Command {
                        command: command.clone(),
                        source,
                    })?,
                command: command.clone(),
                defect: options.defect,
            },
        })
    }

    /// Plays a case and says what it came to.
    pub(super) fn play(
        &self,
        case: &'static Case,
        conditions: &Conditions,
        probed: &Probed,
    ) -> Played {
        let unplayed = |status, note: &str| unplayed(case, conditions.chunking, status, note);
        if case.has(Tag::Spoils) && !self.running().is_some_and(Running::is_ours) {
            return unplayed(
                Status::Skipped,
                "may spoil a peer that the suite cannot start again",
            );
        }
        if let Some(missing) = case.functions.iter().find(|name| probed.lacks(name)) {
            let note = format!("the server has no function {missing}");
            return unplayed(Status::Unsupported, &note);
        }
        if let Some(why) = self.running().and_then(Running::gone) {
            return unplayed(Status::NotRun, &why);
        }
        let (mut outcome, mut stage, mut began) = self.once(case, conditions);
        if matches!(outcome, Err(Stop::Suite(_))) && stage.has_failed() {
            // What the suite could not do is what came of that.
            outcome = Err(Stop::Failed);
        }
        if matches!(outcome, Err(Stop::Suite(_))) && self.revive(&stage).is_err() {
            if let Some(why) = self.running().and_then(Running::gone) {
                return unplayed(Status::NotRun, &why);
            }
            // An earlier case may have been the end of the peer without showing it.
            (outcome, stage, began) = self.once(case, conditions);
        }
        let mut stderr = Vec::new();
        let ended = self.running().and_then(Running::ended);
        let is_hostile = case.has(Tag::Hostile) || case.has(Tag::Spoils);
        if outcome.is_err() || is_hostile || ended.is_some() {
            stderr = self.running().map(Running::stderr).unwrap_or_default();
            let survived = if case.has(Tag::Spoils) {
                self.restart()
            } else {
                self.revive(&stage)
            };
            if survived.is_err() && !matches!(outcome, Err(Stop::Failed)) {
                outcome = survived;
            }
        }
        let (checks, transcript) = stage.take();
        let (status, note) = judged(case, outcome, &checks);
        let passed = status == Status::Pass;
        Played {
            status,
            note,
            checks,
            transcript: match passed && !conditions.is_recorded {
                true => Vec::new(),
                false => transcript,
            },
            stderr: if passed { Vec::new() } else { stderr },
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..unplayed(status, "")
        }
    }

    fn once(&self, case: &'static Case, conditions: &Conditions) -> (Outcome, Arc<Stage>, Instant) {
        let stage = Stage::new(case, conditions.clone());
        let began = Instant::now();
        let outcome = guarded(|| self.on_stage(&stage));
        (
            outcome.unwrap_or_else(|panic| Err(Stop::Suite(panic))),
            stage,
            began,
        )
    }

    fn on_stage(&self, stage: &Arc<Stage>) -> Outcome {
        match (stage.case.play, self) {
            (Play::Tracker(play), Self::Tracker(running, _)) => play(&tracker(stage, running)),
            (Play::Server(play), Self::Server { running, key, .. }) => {
                play(&server(stage, running, key))
            }
            (Play::Client(play), Self::Client { words, defect, .. }) => play(&Client {
                stage: Arc::clone(stage),
                command: words.clone(),
                defect: *defect,
            }),
            (Play::Replay(Role::Tracker, conversation), Self::Tracker(running, _)) => Replay {
                stage,
                addr: running.addr(),
                key: None,
            }
            .play(conversation),
            (Play::Replay(Role::Server, conversation), Self::Server { running, key, .. }) => {
                Replay {
                    stage,
                    addr: running.addr(),
                    key: Some(key),
                }
                .play(conversation)
            }
            (Play::Replay(..), Self::Client { .. }) => Err(Stop::Suite(
                "a client cannot be told what to say".to_owned(),
            )),
            _ => Err(Stop::Suite("a case of another role".to_owned())),
        }
    }

    /// Sees that the peer still serves others; if not, that is a check that does not hold, and the peer
    /// is started again.
    fn revive(&self, stage: &Arc<Stage>) -> Outcome {
        let life = self.life();
        // On a stage of its own, whose deadline is not used up, and whose checks nobody has to read.
        let apart = Stage::new(stage.case, stage.conditions.clone());
        let alive = match self {
            Self::Tracker(running, _) => tracker(&apart, running).expect_alive("alive"),
            Self::Server { running, key, .. } => server(&apart, running, key).expect_alive(),
            Self::Client { .. } => return Ok(()),
        };
        if alive.is_ok() {
            return Ok(());
        }
        let found = match self.running().and_then(Running::ended_lately) {
            Some(status) => format!("the process of the peer ended: {status}"),
            None => apart.first_failure(),
        };
        let failed = stage.fail(SURVIVES, "a peer that serves the next one", found);
        // One that does not come back stands in the way of the cases behind; it is this one's fault.
        let _ = self.again(life);
        Err(failed)
    }

    fn restart(&self) -> Outcome {
        self.again(self.life())
    }

    fn again(&self, life: Option<Life>) -> Outcome {
        match self.running().zip(life) {
            // After an interrupt nothing else is played.
            Some((running, _)) if running.is_to_stop() || running.gone().is_some() => Ok(()),
            Some((running, life)) => running
                .again(life)
                .map_err(|error| Stop::Suite(format!("the peer does not come back: {error}"))),
            None => Ok(()),
        }
    }

    /// Which process of the peer it is at this time; none of a client.
    pub(super) fn life(&self) -> Option<Life> {
        self.running().map(Running::life)
    }

    pub(super) fn running(&self) -> Option<&Running> {
        match self {
            Self::Tracker(running, _) => Some(running),
            Self::Server { running, .. } => Some(running),
            Self::Client { .. } => None,
        }
    }

    pub(super) fn info(&self, probed: BTreeMap<String, String>) -> PeerInfo {
        match self {
            Self::Tracker(_, peer) => about(peer, None, probed),
            Self::Server { peer, key, .. } => about(peer, Some(key), probed),
            Self::Client { command, .. } => about(&Peer::Command(command.clone()), None, probed),
        }
    }
}

/// That a program is not there at all is better said once than by every case.
fn find_program(program: &str) -> std::io::Result<()> {
    let is_path = program.contains(std::path::is_separator);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&folders);
    let is_there = match is_path {
        true => Path::new(program).exists(),
        false => folders.any(|folder| {
            let path = folder.join(program);
            path.exists()
                || path
                    .with_extension(std::env::consts::EXE_EXTENSION)
                    .exists()
        }),
    };
    match is_there {
        true => Ok(()),
        false => Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            format!("there is no program {program}"),
        )),
    }
}

/// What is known of a peer that was not started.
pub(super) fn info(target: &Target, probed: BTreeMap<String, String>) -> PeerInfo {
    match target {
        Target::Tracker(peer) => about(peer, None, probed),
        Target::Server { peer, key } => about(peer, Some(key), probed),
        Target::Client { command } => about(&Peer::Command(command.clone()), None, probed),
    }
}

fn about(peer: &Peer, key: Option<&String>, probed: BTreeMap<String, String>) -> PeerInfo {
    let (address, command) = match peer {
        Peer::Running(address) => (Some(address.clone()), None),
        Peer::Command(command) => (None, Some(command.clone())),
    };
    PeerInfo {
        name: None,
        version: None,
        address,
        command,
        key: key.cloned(),
        probed,
    }
}

pub(super) fn tracker(stage: &Arc<Stage>, running: &Running) -> Tracker {
    Tracker {
        stage: Arc::clone(stage),
        addr: running.addr(),
    }
}

pub(super) fn server(stage: &Arc<Stage>, running: &Arc<Running>, key: &str) -> Server {
    Server {
        stage: Arc::clone(stage),
        running: Arc::clone(running),
        key: key.to_owned(),
        dialect: Dialect::Ffi,
    }
}

/// A case that was not played.
pub(super) fn unplayed(case: &Case, chunking: Chunking, status: Status, note: &str) -> Played {
    Played {
        id: case.id.to_owned(),
        chunking,
        level: case.level,
        clause: case.clause.to_owned(),
        what: case.what.to_owned(),
        why: case.why.to_owned(),
        status,
        note: note.to_owned(),
        excused: None,
        tries: Vec::new(),
        scored: true,
        checks: Vec::new(),
        transcript: Vec::new(),
        stderr: Vec::new(),
        milliseconds: 0,
    }
}

fn judged(case: &Case, outcome: Outcome, checks: &[Check]) -> (Status, String) {
    // That the next client is served whatever one sends has cases of its own, which bind more.
    let mut missed = checks.iter().filter(|check| !check.holds).peekable();
    if case.role() == Role::Server
        && case.has(Tag::Hostile)
        && matches!(outcome, Ok(()) | Err(Stop::Failed))
        && missed.peek().is_some()
        && missed.all(Check::is_survival)
    {
        return (Status::Warn, String::new());
    }
    match (outcome, case.level) {
        (Ok(()), _) => (Status::Pass, String::new()),
        (Err(Stop::Unsupported(why)), _) => (Status::Unsupported, why),
        (Err(Stop::Suite(why)), _) => (Status::Error, why),
        (Err(Stop::Failed), Level::Must) => (Status::Fail, String::new()),
        (Err(Stop::Failed), Level::Should) => (Status::Warn, String::new()),
        (Err(Stop::Failed), Level::May) => (Status::Unsupported, "it need not".to_owned()),
        (Err(Stop::Failed), Level::Quirk) => (
            Status::Unsupported,
            "it does otherwise than the reference".to_owned(),
        ),
    }
}

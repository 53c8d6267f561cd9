//! A soak: one short conversation with the peer, over and over, on many connections at once. It gives
//! figures, not a verdict: how long each took, and what the peer has not let go of afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rpc_proto::DataType;
use serde::Serialize;
use serde_json::{Value, json};

use super::play::{self, Under};
use super::probe::Probed;
use super::{Options, RunError, Target, no_peer};
use crate::case::{Case, Level, Role};
use crate::peer::Used;
use crate::results::{Played, Status};
use crate::roles::{Server, Tracker};
use crate::stage::{Chunking, Conditions, Outcome, Stage};

/// How much to do.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Conversations at a time.
    pub connections: usize,
    /// Conversations altogether.
    pub cycles: usize,
}

/// What a soak came to.
#[derive(Debug, Clone, Serialize)]
pub struct Soaked {
    /// The role of the peer.
    pub role: Role,
    /// Conversations at a time.
    pub connections: usize,
    /// Conversations that went as they should.
    pub done: usize,
    /// Conversations that did not. At the first of them the soak ends.
    pub failed: usize,
    /// How long all of them took together, in seconds.
    pub seconds: f64,
    /// How long one took, in milliseconds: half of them at most so long.
    pub median: f64,
    /// The same for 99 of 100.
    pub percentile_99: f64,
    /// The same for all.
    pub longest: f64,
    /// What a tracker says that it has of these conversations after they have ended.
    pub left: Option<Left>,
    /// What the process of the peer used before and after; only of a process that the suite started, on
    /// Linux. A tenth of the conversations come before the first figure.
    pub used: Option<(Used, Used)>,
    /// The first conversation that did not go as it should.
    #[serde(skip)]
    pub failure: Option<Box<Played>>,
}

/// What a tracker did not let go of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Devices that are free.
    pub free: u64,
    /// Requests that wait.
    pub pending: u64,
    /// Keys in the summary.
    pub keys: u64,
    /// Servers in the summary.
    pub servers: u64,
}

/// A put, a request, a grant; and both connections end.
const TRACKER: Case = Case::tracker("SOAK-TRK-001", Level::Should, "2.6.2", tracker_cycle).about(
    "Devices are offered and granted, over and over.",
    "A farm does this for months.",
);

/// A session with a tensor that goes up and down.
const SERVER: Case = Case::server("SOAK-SRV-001", Level::Should, "8.1.1", server_cycle).about(
    "Sessions are opened, used and ended, over and over.",
    "A device does this for months.",
);

/// Of so many conversations, one comes before the peer's use of memory is looked at.
const WARM_UP: usize = 10;
/// Elements of the tensor.
const ELEMENTS: u16 = 1024;

fn tracker_cycle(tracker: &Tracker) -> Outcome {
    let key = tracker.key("device");
    let device = tracker.device(&key, 9090, "m")?;
    let mut client = tracker.asking(&key, 1)?;
    client.expect_grant("grant", "m")?;
    drop(device);
    Ok(())
}

fn server_cycle(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let tensor = session.allocate(&[ELEMENTS.into()], DataType::FLOAT32)?;
    let sent: Vec<u8> = (0..ELEMENTS)
        .flat_map(|element| f32::from(element).to_le_bytes())
        .collect();
    session.upload("upload", &tensor, &sent)?;
    let came = session.download("download", &tensor, sent.len())?;
    let stage = session.stage();
    stage.check("same-bytes", came == sent, "what was sent", "other bytes")?;
    session.release("free", &tensor)?;
    session.shut_down()
}

/// Soaks a tracker or a server. It ends early at the first conversation that does not go as it should,
/// or when `options` say so.
///
/// # Errors
/// The peer cannot be reached or started, or is a client.
pub fn soak(target: &Target, options: &Options, load: Load) -> Result<Soaked, RunError> {
    let case = match target.role() {
        Role::Tracker => &TRACKER,
        Role::Server => &SERVER,
        role @ Role::Client => return Err(RunError::NothingSelected { role, of: 0 }),
    };
    let under = Under::new(target, options).map_err(|error| no_peer(target.role(), error))?;
    let soaking = Soaking {
        under: &under,
        case,
        options,
        next: AtomicUsize::new(0),
        times: Mutex::default(),
        failure: Mutex::default(),
    };
    let warm = load.cycles / WARM_UP;
    soaking.until(warm, load.connections);
    let before = under.running().and_then(|running| running.used());
    soaking.times().clear();
    let began = Instant::now();
    soaking.until(load.cycles, load.connections);
    let seconds = began.elapsed().as_secs_f64();
    let failure = soaking.failure().take();
    let left = match &under {
        Under::Tracker(running, _) => left(&play::tracker(&soaking.stage(load.cycles), running)),
        _ => None,
    };
    let after = under.running().and_then(|running| running.used());
    let mut times = std::mem::take(&mut *soaking.times());
    times.sort_unstable();
    Ok(Soaked {
        role: target.role(),
        connections: load.connections,
        done: times.len(),
        failed: usize::from(failure.is_some()),
        seconds,
        median: at(&times, 50),
        percentile_99: at(&times, 99),
        longest: at(&times, 100),
        left,
        used: before.zip(after),
        failure,
    })
}

/// The time that so many of a hundred do not pass, in milliseconds.
fn at(times: &[Duration], percent: usize) -> f64 {
    let last = times.len().saturating_sub(1);
    let place = (last * percent).div_ceil(100);
    times
        .get(place)
        .map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

#[derive(Debug)]
struct Soaking<'a> {
    under: &'a Under,
    case: &'static Case,
    options: &'a Options,
    /// The number of the next conversation.
    next: AtomicUsize,
    times: Mutex<Vec<Duration>>,
    failure: Mutex<Option<Box<Played>>>,
}

impl Soaking<'_> {
    /// Goes on until so many conversations have been begun.
    fn until(&self, cycles: usize, connections: usize) {
        std::thread::scope(|scope| {
            for _ in 0..connections.max(1) {
                scope.spawn(|| {
                    while let Some(cycle) = self.take(cycles) {
                        self.play(cycle);
                    }
                });
            }
        });
    }

    fn take(&self, cycles: usize) -> Option<usize> {
        let over = self.options.stop.load(Ordering::Relaxed) || self.failure().is_some();
        let take = |next| (!over && next < cycles).then_some(next + 1);
        let order = Ordering::Relaxed;
        self.next.fetch_update(order, order, take).ok()
    }

    fn play(&self, cycle: usize) {
        let began = Instant::now();
        let played = self
            .under
            .play(self.case, &self.conditions(cycle), &Probed::default());
        match played.status {
            Status::Pass => self.times().push(began.elapsed()),
            _ => {
                self.failure().get_or_insert(Box::new(played));
            }
        }
    }

    fn conditions(&self, cycle: usize) -> Conditions {
        let step = Duration::from_secs(5).mul_f64(self.options.slow);
        Conditions {
            step,
            total: step * 4,
            chunking: Chunking::Whole,
            // Keys are made of the upper half.
            seed: (cycle as u64) << 32,
            is_recorded: false,
        }
    }

    fn stage(&self, cycle: usize) -> std::sync::Arc<Stage> {
        Stage::new(self.case, self.conditions(cycle))
    }

    fn times(&self) -> std::sync::MutexGuard<'_, Vec<Duration>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<Box<Played>>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the tracker has of the conversations that have ended, once it had the time to notice their ends.
fn left(tracker: &Tracker) -> Option<Left> {
    let looked = Mutex::new(None);
    // That something is left is a figure, as everything here.
    let _ = tracker.until("nothing-left", "nothing", || {
        let mut connection = tracker.greeted()?;
        connection.send(&json!([6]));
        let summary = connection.answer("summary")?;
        let left = counted(&summary[1]);
        *looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
        // A tracker may go on to list keys that it knows.
        let nothing = left.free + left.pending + left.servers == 0;
        Ok((nothing, Value::Null))
    });
    looked.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn counted(summary: &Value) -> Left {
    let is_ours = |key: &str| key.contains(&TRACKER.id.to_lowercase());
    let mut left = Left::default();
    let queues = summary["queue_info"].as_object().into_iter().flatten();
    for (_, counts) in queues.filter(|(key, _)| is_ours(key)) {
        left.keys += 1;
        left.free += counts["free"].as_u64().unwrap_or(0);
        left.pending += counts["pending"].as_u64().unwrap_or(0);
    }
    let servers = summary["server_info"].as_array().into_iter().flatten();
    left.servers = servers
        .filter(|server| server["key"].as_str().is_some_and(is_ours))
        .count() as u64;
    left
}

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::broken::Defect;
use crate::case::Case;
use crate::select::Selection;
use crate::stage::Chunking;

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) selection: Selection,
    pub(crate) replays: Vec<&'static Case>,
    pub(crate) defect: Option<&'static Defect>,
    pub(crate) chunkings: Vec<Chunking>,
    pub(crate) jobs: Option<usize>,
    pub(crate) slow: f64,
    pub(crate) seed: u64,
    pub(crate) patience: Duration,
    pub(crate) repeated: BTreeSet<String>,
    pub(crate) is_recorded: bool,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Default for Options {
    /// Every case once, with a seed of its own.
    fn default() -> Self {
        Self {
            selection: Selection::all(),
            replays: Vec::new(),
            defect: None,
            chunkings: vec![Chunking::Whole],
            jobs: None,
            slow: 1.0,
            seed: fastrand::u64(..),
            patience: Duration::from_secs(30),
            repeated: BTreeSet::new(),
            is_recorded: false,
            stop: Arc::default(),
        }
    }
}

impl Options {
    /// Which cases to run.
    #[must_use]
    pub fn with_selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Plays these recorded conversations (see [`crate::replay()`]), and no other case.
    #[must_use]
    pub fn with_replays(mut self, replays: impl IntoIterator<Item = &'static Case>) -> Self {
        self.replays = replays.into_iter().collect();
        self
    }

    /// Spoils the peer by a relay that has this defect, to see that the suite finds it.
    #[must_use]
    pub fn with_defect(mut self, defect: &'static Defect) -> Self {
        self.defect = Some(defect);
        self
    }

    /// How to cut what is sent; each case is played once for each.
    #[must_use]
    pub fn with_chunkings(mut self, chunkings: impl IntoIterator<Item = Chunking>) -> Self {
        self.chunkings = chunkings.into_iter().collect();
        self
    }

    /// How many cases at a time; default is what suits the peer.
    #[must_use]
    pub fn with_jobs(mut self, jobs: usize) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Multiplies every deadline; default 1, which gives a step 5 s (10 s where a client is tested).
    #[must_use]
    pub fn with_slow(mut self, factor: f64) -> Self {
        self.slow = factor;
        self
    }

    /// Plays what is random as in the run that had this seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How long a peer may take until it accepts connections; default 30 s.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
    /// Plays each of these cases three times, to see how often it passes.
    #[must_use]
    pub fn with_repeated(mut self, ids: impl IntoIterator<Item = String>) -> Self {
        self.repeated = ids.into_iter().collect();
        self
    }

    /// Keeps all that passes also of cases that pass, for whom each is told of: see
    /// [`Played::recording`](crate::Played::recording).
    #[must_use]
    pub fn with_recordings(mut self) -> Self {
        self.is_recorded = true;
        self
    }

    /// Once this is set no other case is begun.
    #[must_use]
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }
}

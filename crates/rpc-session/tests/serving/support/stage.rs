//! What a scripted session does, and what it was asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rpc_proto::{BulkKind, OwnedValue, Returned};
use rpc_session::Exception;

use super::PATIENCE;

/// What a method of the session does, instead of what it does by itself.
pub(crate) enum Act {
    Fail(&'static str),
    /// What a look-up finds.
    Found(Option<u64>),
    Pointer(u64),
    Attr(OwnedValue),
    Return(Returned<'static>),
    /// Returns text or bytes in pieces, and has perhaps less than it says.
    ReturnBulk {
        kind: BulkKind,
        nbytes: u64,
        has: Vec<u8>,
    },
    /// Writes these pieces of a copy, and then perhaps fails.
    Give(Vec<Vec<u8>>, Result<(), &'static str>),
    /// Reads no more than this of a payload, and then perhaps fails.
    Take(usize, Result<(), &'static str>),
    /// Waits for the gate to open, and then does what it does by itself.
    Wait(Gate),
}

/// A scripted session's memory. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Stage(Arc<Mutex<State>>);

#[derive(Default)]
pub(crate) struct State {
    /// What the next methods do; the others do what they do by themselves.
    acts: VecDeque<Act>,
    /// Why the next constructions fail.
    refusals: VecDeque<Exception>,
    /// Each call of a method, with its arguments.
    calls: Vec<String>,
    /// The arguments of each construction.
    constructed: Vec<Vec<OwnedValue>>,
    /// The payload that was read last.
    payload: Vec<u8>,
    shutdowns: usize,
}

impl Stage {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn plan(&self, act: Act) {
        self.state().acts.push_back(act);
    }

    pub(crate) fn refuse(&self, why: Exception) {
        self.state().refusals.push_back(why);
    }

    /// The calls since the last time.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    pub(crate) fn constructed(&self) -> Vec<Vec<OwnedValue>> {
        std::mem::take(&mut self.state().constructed)
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        std::mem::take(&mut self.state().payload)
    }

    pub(crate) fn shutdowns(&self) -> usize {
        self.state().shutdowns
    }

    /// Waits until a method was called.
    pub(crate) fn wait_for_call(&self) {
        wait_until("a method is called", || !self.state().calls.is_empty());
    }

    pub(crate) fn begin(&self, call: String) -> Option<Act> {
        let mut state = self.state();
        state.calls.push(call);
        state.acts.pop_front()
    }

    pub(crate) fn construct(&self, args: Vec<OwnedValue>) -> Result<(), Exception> {
        let mut state = self.state();
        state.constructed.push(args);
        state.refusals.pop_front().map_or(Ok(()), Err)
    }

    pub(crate) fn keep_payload(&self, payload: Vec<u8>) {
        self.state().payload = payload;
    }

    pub(crate) fn shut_down(&self) {
        self.state().shutdowns += 1;
    }
}

/// Clones are the same gate.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

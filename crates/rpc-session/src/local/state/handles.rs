//! What a client holds, by the numbers that it knows it under.

use std::collections::HashMap;

use crate::local::{Exception, FileFunction, LocalFunction, LocalModule, LocalObject, LocalTensor};

/// What a handle stands for.
pub(super) enum Held {
    Function(LocalFunction),
    File(FileFunction),
    Module(LocalModule),
    Tensor(LocalTensor),
    Object(LocalObject),
}

impl Held {
    fn kind(&self) -> &'static str {
        match self {
            Self::Function(_) => "a function",
            Self::File(_) => "a function on files",
            Self::Module(_) => "a module",
            Self::Tensor(_) => "a tensor",
            Self::Object(_) => "an object",
        }
    }
}

/// The handles of one session. A number is given once.
pub(super) struct Handles {
    held: HashMap<u64, Held>,
    last: u64,
    limit: usize,
}

impl Handles {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            held: HashMap::new(),
            last: 0,
            limit,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there is room for one more.
    pub(super) fn check_room(&self) -> Result<(), Exception> {
        if self.held.len() < self.limit {
            return Ok(());
        }
        Err(Exception::runtime(format!(
            "the session holds {} handles, which is its limit; free some",
            self.held.len()
        )))
    }

    pub(super) fn insert(&mut self, held: Held) -> Result<u64, Exception> {
        self.check_room()?;
        self.last += 1;
        self.held.insert(self.last, held);
        Ok(self.last)
    }

    pub(super) fn get(&self, handle: u64, expected: &str) -> Result<&Held, Exception> {
        self.held
            .get(&handle)
            .ok_or_else(|| not_alive(handle, expected))
    }

    pub(super) fn remove(&mut self, handle: u64) -> Result<Held, Exception> {
        self.held
            .remove(&handle)
            .ok_or_else(|| not_alive(handle, "a handle"))
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

fn not_alive(handle: u64, expected: &str) -> Exception {
    Exception::new(
        "ValueError",
        format!("expected {expected}, but handle {handle} is not alive in this session"),
    )
}

pub(super) fn wrong_kind(handle: u64, expected: &str, held: &Held) -> Exception {
    let found = held.kind();
    Exception::new(
        "TypeError",
        format!("expected {expected}, but handle {handle} is {found}"),
    )
}

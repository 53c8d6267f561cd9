//! What was dropped here and has to be freed at the server.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rpc_proto::{Device, HandleKind, Packet, Syscall};
#[cfg(feature = "async")]
use rpc_proto::{Returned, Value};

#[cfg(feature = "async")]
use crate::answer::Answer;

/// One thing of the server's that nobody here holds any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    Handle { handle: u64, kind: HandleKind },
    Data { device: Device, data: u64 },
    Stream { device: Device, stream: u64 },
}

impl Freed {
    /// What a call gave back and nobody takes.
    #[cfg(feature = "async")]
    fn returned(returned: &Returned<'_>) -> Option<Self> {
        let kind = match returned {
            Returned::Tensor { .. } => HandleKind::Tensor,
            Returned::Value(Value::Function(_)) => HandleKind::Function,
            Returned::Value(Value::Module(_)) => HandleKind::Module,
            _ => HandleKind::Object,
        };
        let handle = returned.handle()?;
        Some(Self::Handle { handle, kind })
    }

    pub(crate) fn packet(self) -> Packet<'static> {
        Packet::Syscall(match self {
            Self::Handle { handle, kind } => Syscall::FreeHandle {
                handle,
                kind: Some(kind),
            },
            Self::Data { device, data } => Syscall::FreeData { device, data },
            Self::Stream { device, stream } => Syscall::FreeStream { device, stream },
        })
    }
}

/// What the answer to a request brings that has to be freed if nobody takes it.
#[cfg(feature = "async")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orphan {
    Nothing,
    Function,
    Data(Device),
    Stream(Device),
    Returned,
}

#[cfg(feature = "async")]
impl Orphan {
    pub(crate) fn of(request: &Packet<'_>) -> Self {
        match request {
            Packet::Call { .. } => Self::Returned,
            Packet::Syscall(Syscall::GetGlobalFunc { .. }) => Self::Function,
            Packet::Syscall(Syscall::AllocDataWithScope { tensor, .. }) => {
                Self::Data(tensor.device)
            }
            Packet::Syscall(Syscall::CreateStream { device }) => Self::Stream(*device),
            _ => Self::Nothing,
        }
    }

    pub(crate) fn freed(self, answer: &Answer) -> Option<Freed> {
        match (self, answer) {
            (Self::Returned, Answer::Returned(returned)) => Freed::returned(returned),
            (_, Answer::Pointer(0)) => None,
            (Self::Function, &Answer::Pointer(handle)) => Some(Freed::Handle {
                handle,
                kind: HandleKind::Function,
            }),
            (Self::Data(device), &Answer::Pointer(data)) => Some(Freed::Data { device, data }),
            (Self::Stream(device), &Answer::Pointer(stream)) => {
                Some(Freed::Stream { device, stream })
            }
            _ => None,
        }
    }
}

/// Most frees that go ahead of one request. Their replies (20 bytes each) are not read while the
/// request is written, so they have to fit into the buffers between the peers.
const BATCH: usize = 256;

/// Collects what was dropped until somebody writes. To add never waits.
#[derive(Debug, Default)]
pub(crate) struct FreeQueue(Mutex<Vec<Freed>>);

impl FreeQueue {
    pub(crate) fn push(&self, freed: Freed) {
        self.lock().push(freed);
    }

    /// Takes a batch out, oldest first.
    pub(crate) fn take_batch(&self) -> Vec<Freed> {
        let mut queue = self.lock();
        let count = queue.len().min(BATCH);
        queue.drain(..count).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// A panic cannot leave the list half changed.
    fn lock(&self) -> MutexGuard<'_, Vec<Freed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

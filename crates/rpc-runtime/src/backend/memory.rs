use std::ops::Range;

use rpc_proto::Device;
use rpc_session::{DeviceMemory, Exception};

use super::exception;
use crate::{Memory, Tensor};

/// Memory of the runtime, as a session has it.
pub(super) struct Allocated {
    memory: Memory,
    /// Bytes ahead of the part that the session has.
    ahead: usize,
    nbytes: usize,
}

impl Allocated {
    /// What the runtime aligns all memory to, in bytes.
    const ALIGNMENT: u64 = 64;

    /// All memory of a tensor.
    pub(super) fn whole(tensor: &Tensor) -> Self {
        let memory = tensor.memory().clone();
        Self {
            ahead: 0,
            nbytes: memory.nbytes(),
            memory,
        }
    }

    /// How many bytes more it takes to have some of an alignment.
    pub(super) fn more_for(alignment: u64) -> u64 {
        match alignment > Self::ALIGNMENT {
            true => alignment,
            false => 0,
        }
    }

    /// The first aligned bytes of a tensor's memory.
    pub(super) fn aligned(tensor: &Tensor, nbytes: u64, alignment: u64) -> Result<Self, Exception> {
        let whole = Self::whole(tensor);
        if Self::more_for(alignment) == 0 {
            return Ok(whole);
        }
        if !whole.memory.is_host() {
            return Err(Exception::new(
                "ValueError",
                format!("memory of {} can be aligned to 64 at most", whole.device()),
            ));
        }
        let beyond = whole.memory.address() % alignment;
        let ahead = (alignment - beyond) % alignment;
        let length = |bytes| usize::try_from(bytes).map_err(Exception::from);
        Ok(Self {
            ahead: length(ahead)?,
            nbytes: length(nbytes)?,
            memory: whole.memory,
        })
    }

    /// The memory, and where in it the session's begins.
    pub(super) fn memory(&self) -> (&Memory, usize) {
        (&self.memory, self.ahead)
    }

    fn inside(&self, range: &Range<usize>) -> Range<usize> {
        range.start + self.ahead..range.end + self.ahead
    }
}

impl DeviceMemory for Allocated {
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn device(&self) -> Device {
        self.memory.device()
    }

    fn is_host(&self) -> bool {
        self.memory.is_host()
    }

    fn read(&self, range: Range<usize>, reader: &mut dyn FnMut(&[u8])) -> Result<(), Exception> {
        let read = self.memory.read(self.inside(&range), reader);
        read.map_err(exception)
    }

    fn write(
        &self,
        range: Range<usize>,
        writer: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Exception> {
        let written = self.memory.write(self.inside(&range), writer);
        written.map_err(exception)
    }
}

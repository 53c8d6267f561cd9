//! The memory that a client can reach, by its addresses.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use rpc_proto::Device;

use crate::local::buffer::{Budget, Buffer, Charge, Span};
use crate::local::{DeviceMemory, Exception};

/// The memory of one session: what the client allocated, and that of the tensors that it holds.
pub(super) struct Memory {
    regions: BTreeMap<u64, Region>,
    budget: Arc<Budget>,
    allocations: usize,
    limit: usize,
}

/// A buffer that the client knows. Those who own it are the allocation and the tensors.
struct Region {
    buffer: Weak<Buffer>,
    nbytes: usize,
    allocation: Option<Arc<Buffer>>,
    /// Handles of tensors in it.
    tensors: usize,
    /// Memory that a function allocated counts for as long as the client holds it.
    _charge: Option<Charge>,
}

impl Memory {
    pub(super) fn new(budget: &Arc<Budget>, limit: usize) -> Self {
        Self {
            regions: BTreeMap::new(),
            budget: Arc::clone(budget),
            allocations: 0,
            limit,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.regions.len()
    }

    /// The address of fresh memory, which `allocate` gets after `nbytes` bytes were found to be allowed.
    pub(super) fn allocate(
        &mut self,
        nbytes: u64,
        allocate: impl FnOnce() -> Result<Box<dyn DeviceMemory>, Exception>,
    ) -> Result<u64, Exception> {
        if self.allocations >= self.limit {
            return Err(Exception::runtime(format!(
                "the session has {} allocations, which is its limit; free some",
                self.allocations
            )));
        }
        let charge = self.budget.charge(nbytes)?;
        let buffer = Buffer::new(allocate()?, Some(charge))?;
        let address = buffer.address();
        let region = Region {
            buffer: Arc::downgrade(&buffer),
            nbytes: buffer.nbytes(),
            allocation: Some(buffer),
            tensors: 0,
            _charge: None,
        };
        self.regions.insert(address, region);
        self.allocations += 1;
        Ok(address)
    }

    /// Frees what was allocated. Tensors in it keep it.
    pub(super) fn free(&mut self, address: u64) -> Result<(), Exception> {
        let region = self.regions.get_mut(&address);
        let Some(region) = region.filter(|region| region.allocation.is_some()) else {
            return Err(Exception::new(
                "ValueError",
                format!("no allocation of this session is at address {address:#x}"),
            ));
        };
        region.allocation = None;
        self.allocations -= 1;
        self.drop_unowned(address);
        Ok(())
    }

    /// The client gets the handle of a tensor in this buffer.
    pub(super) fn hold(&mut self, buffer: &Arc<Buffer>) -> Result<(), Exception> {
        let address = buffer.address();
        if let Some(region) = self.regions.get_mut(&address) {
            region.tensors += 1;
            return Ok(());
        }
        let nbytes = buffer.nbytes();
        let charge = match buffer.is_charged() {
            true => None,
            false => Some(self.budget.charge(nbytes as u64)?),
        };
        let region = Region {
            buffer: Arc::downgrade(buffer),
            nbytes,
            allocation: None,
            tensors: 1,
            _charge: charge,
        };
        self.regions.insert(address, region);
        Ok(())
    }

    /// The client gives up the handle of a tensor in the buffer at this address.
    pub(super) fn release(&mut self, address: u64) {
        if let Some(region) = self.regions.get_mut(&address) {
            region.tensors = region.tensors.saturating_sub(1);
        }
        self.drop_unowned(address);
    }

    fn drop_unowned(&mut self, address: u64) {
        let unowned = |region: &Region| region.allocation.is_none() && region.tensors == 0;
        if self.regions.get(&address).is_some_and(unowned) {
            self.regions.remove(&address);
        }
    }

    /// The `nbytes` bytes that begin `offset` bytes behind `data`, which is anywhere in a buffer.
    pub(super) fn span(
        &self,
        device: Device,
        data: u64,
        offset: u64,
        nbytes: u64,
    ) -> Result<Span, Exception> {
        let below = self.regions.range(..=data).next_back();
        let found = below.and_then(|(&address, region)| {
            let before = data - address;
            let buffer = region.buffer.upgrade()?;
            (before <= region.nbytes as u64).then_some((before, buffer))
        });
        let Some((before, buffer)) = found else {
            return Err(Exception::new(
                "ValueError",
                format!("no memory of this session is at address {data:#x}"),
            ));
        };
        if !buffer.is_of(device) {
            return Err(Exception::new(
                "ValueError",
                format!(
                    "the memory at address {data:#x} is of {}, not of {device}",
                    buffer.memory().device()
                ),
            ));
        }
        let start = before.checked_add(offset);
        match start.and_then(|start| buffer.inside(start, nbytes)) {
            Some(range) => Ok(Span { buffer, range }),
            None => Err(Exception::new(
                "ValueError",
                format!(
                    "{nbytes} bytes at offset {offset} are not inside the memory at address {data:#x}, \
                     which has {} bytes",
                    buffer.nbytes() as u64 - before
                ),
            )),
        }
    }

    pub(super) fn clear(&mut self) {
        self.regions.clear();
        self.allocations = 0;
    }
}

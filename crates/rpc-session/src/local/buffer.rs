//! Memory that tensors share.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rpc_proto::{Device, DeviceType};

use super::host::{HostMemory, no_memory};
use super::{DeviceMemory, Exception};

/// Some memory, under an address that nothing else in this process ever has.
///
/// The address is not where the memory lies: clients get to know it, and what they send back is looked
/// up, so that one that is stale or made up hits nothing.
pub(crate) struct Buffer {
    address: u64,
    memory: Box<dyn DeviceMemory>,
    charge: Option<Charge>,
}

/// Addresses are multiples of this, and so much lies between two buffers at least.
const PAGE: u64 = 4096;

static NEXT_ADDRESS: AtomicU64 = AtomicU64::new(1 << 32);

impl Buffer {
    pub(crate) fn new(
        memory: Box<dyn DeviceMemory>,
        charge: Option<Charge>,
    ) -> Result<Arc<Self>, Exception> {
        let nbytes = memory.nbytes() as u64;
        Ok(Arc::new(Self {
            address: fresh_address(nbytes).ok_or_else(|| no_memory(nbytes))?,
            memory,
            charge,
        }))
    }

    /// Memory of this process, full of zeros.
    pub(crate) fn zeroed(nbytes: u64) -> Result<Arc<Self>, Exception> {
        Self::new(Box::new(HostMemory::zeroed(nbytes, 0)?), None)
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn memory(&self) -> &dyn DeviceMemory {
        &*self.memory
    }

    pub(crate) fn nbytes(&self) -> usize {
        self.memory.nbytes()
    }

    /// Is it memory of this device? That of all processors is one.
    pub(crate) fn is_of(&self, device: Device) -> bool {
        let own = self.memory.device();
        own == device || [own, device].map(|d| d.device_type) == [DeviceType::CPU; 2]
    }

    /// Does it count towards the memory of a session until it is freed?
    pub(crate) fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// The `nbytes` bytes from `start` on, if they are inside.
    pub(crate) fn inside(&self, start: u64, nbytes: u64) -> Option<Range<usize>> {
        let end = usize::try_from(start.checked_add(nbytes)?).ok()?;
        let start = usize::try_from(start).ok()?;
        (end <= self.nbytes()).then_some(start..end)
    }

    /// Lends bytes for reading. `reader` must not touch another buffer, which may be this one.
    pub(crate) fn read<R>(
        &self,
        range: Range<usize>,
        reader: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, Exception> {
        let mut reader = Some(reader);
        let mut result = None;
        let mut once = |bytes: &[u8]| result = reader.take().map(|reader| reader(bytes));
        self.memory.read(range, &mut once)?;
        result.ok_or_else(not_lent)
    }

    /// Lends bytes for writing: all of them are written. `writer` must not touch another buffer, which may
    /// be this one.
    pub(crate) fn write<R>(
        &self,
        range: Range<usize>,
        writer: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Exception> {
        let mut writer = Some(writer);
        let mut result = None;
        let mut once = |bytes: &mut [u8]| result = writer.take().map(|writer| writer(bytes));
        self.memory.write(range, &mut once)?;
        result.ok_or_else(not_lent)
    }
}

fn not_lent() -> Exception {
    Exception::runtime("the backend did not lend the memory")
}

fn fresh_address(nbytes: u64) -> Option<u64> {
    let step = nbytes.checked_next_multiple_of(PAGE)?.checked_add(PAGE)?;
    let advance = |next: u64| next.checked_add(step);
    NEXT_ADDRESS
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance)
        .ok()
}

/// A part of a buffer that lies within it.
#[derive(Clone)]
pub(crate) struct Span {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) range: Range<usize>,
}

impl Span {
    /// May the memory be held while a client is waited for? It may if it is the memory itself, and nobody
    /// but the session that made this span can reach it. The two owners are its allocation, or the handle
    /// of its tensor, and the span.
    #[cfg(feature = "sync")]
    pub(crate) fn is_private(&self) -> bool {
        self.is_host() && Arc::strong_count(&self.buffer) <= 2
    }

    /// Is what is lent the memory itself?
    pub(crate) fn is_host(&self) -> bool {
        self.buffer.memory.is_host()
    }

    /// Copies to a span of the same length, which may be anywhere in the same buffer as well.
    pub(crate) fn copy_to(&self, target: &Self) -> Result<(), Exception> {
        let from = &self.buffer;
        let to = &target.buffer;
        if Arc::ptr_eq(from, to) && self.is_host() {
            self.copy_within(&target.range)
        } else if !self.is_host() || !target.is_host() {
            let bytes = from.read(self.range.clone(), <[u8]>::to_vec)?;
            to.write(target.range.clone(), |target| {
                target.copy_from_slice(&bytes);
            })
        } else if from.address < to.address {
            // Two locks are always taken in one order, that of the addresses.
            from.read(self.range.clone(), |source| {
                to.write(target.range.clone(), |target| {
                    target.copy_from_slice(source);
                })
            })?
        } else {
            to.write(target.range.clone(), |target| {
                from.read(self.range.clone(), |source| target.copy_from_slice(source))
            })?
        }
    }

    /// Copies to a range of the same length in the same buffer, which is this process's memory.
    fn copy_within(&self, target: &Range<usize>) -> Result<(), Exception> {
        let start = self.range.start.min(target.start);
        let both = start..self.range.end.max(target.end);
        let source = self.range.start - start..self.range.end - start;
        self.buffer.write(both, |bytes| {
            bytes.copy_within(source, target.start - start);
        })
    }
}

/// How much memory the buffers of a session may take.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        let used = AtomicU64::new(0);
        Arc::new(Self { limit, used })
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` out of it, until what is returned is dropped.
    pub(crate) fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, Exception> {
        let take = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        match self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        {
            Ok(_) => Ok(Charge {
                budget: Arc::clone(self),
                bytes,
            }),
            Err(used) => Err(Exception::new(
                "MemoryError",
                format!(
                    "{bytes} more bytes are over the limit of this session, which has {used} of {} in use",
                    self.limit
                ),
            )),
        }
    }
}

/// Bytes that are taken out of a budget.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_never_the_same_and_never_touch() {
        let mut last = 0;
        for nbytes in [0, 1, 4095, 4096, 4097, 0] {
            let buffer = Buffer::zeroed(nbytes).unwrap();
            assert_eq!(buffer.address() % PAGE, 0);
            assert!(buffer.address() > last);
            last = buffer.address() + nbytes;
        }
    }

    #[test]
    fn a_budget_gets_back_what_was_taken() {
        let budget = Budget::new(10);
        let most = budget.charge(8).unwrap();
        assert!(budget.charge(3).is_err());
        assert!(budget.charge(u64::MAX).is_err());
        let rest = budget.charge(2).unwrap();
        drop(most);
        assert_eq!(budget.used(), 2);
        drop(rest);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_inside_ends_where_the_buffer_does() {
        let buffer = Buffer::zeroed(8).unwrap();
        for (start, nbytes, inside) in [
            (0, 8, Some(0..8)),
            (3, 5, Some(3..8)),
            (8, 0, Some(8..8)),
            (9, 0, None),
            (3, 6, None),
            (u64::MAX, 1, None),
            (1, u64::MAX, None),
        ] {
            assert_eq!(buffer.inside(start, nbytes), inside, "{start} {nbytes}");
        }
    }

    #[test]
    fn copies_overlap_in_both_directions() {
        let buffer = Buffer::zeroed(10).unwrap();
        let write = |bytes: &mut [u8]| bytes.copy_from_slice(b"0123456789");
        buffer.write(0..10, write).unwrap();
        let all = || buffer.read(0..10, <[u8]>::to_vec).unwrap();
        let span = |range| Span {
            buffer: Arc::clone(&buffer),
            range,
        };
        span(0..6).copy_to(&span(2..8)).unwrap();
        assert_eq!(all(), b"0101234589");
        span(2..8).copy_to(&span(1..7)).unwrap();
        assert_eq!(all(), b"0012345589");
    }

    #[test]
    fn copies_in_both_directions_at_once_end() {
        let [a, b] = [(); 2].map(|()| Span {
            buffer: Buffer::zeroed(1 << 12).unwrap(),
            range: 0..1 << 12,
        });
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| a.copy_to(&b).unwrap()));
            scope.spawn(|| (0..1000).for_each(|_| b.copy_to(&a).unwrap()));
        });
    }
}

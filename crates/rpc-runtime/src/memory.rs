//! Memory of tensors, and how long it is lent.

use std::ffi::c_void;
use std::ops::Range;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use rpc_proto::{DataType, Device, DeviceType};

use crate::error::Error;
use crate::lending::{self, Lending};
use crate::library::Runtime;
use crate::object::Object;
use crate::value::Arg;
use crate::view::TensorView;

/// Memory of a tensor. A clone is the same memory.
#[derive(Debug, Clone)]
pub struct Memory {
    data: *mut c_void,
    nbytes: usize,
    device: Device,
    /// Whether the memory is there. Locked while bytes are lent.
    guard: Arc<RwLock<bool>>,
    /// What keeps it there.
    owner: Option<Object>,
}

// SAFETY: the pointer is used with the guard locked alone, and objects may go to other threads.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// # Safety
    /// So many bytes are there, for as long as the guard is true, or the owner lives.
    pub(crate) unsafe fn new(
        data: *mut c_void,
        nbytes: usize,
        device: Device,
        guard: Arc<RwLock<bool>>,
        owner: Option<Object>,
    ) -> Self {
        Self {
            data,
            nbytes,
            device,
            guard,
            owner,
        }
    }

    /// What keeps it there, unless it was lent.
    pub(crate) fn into_owner(self) -> Option<Object> {
        self.owner
    }

    /// Bytes of it.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// The device that it belongs to.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Whether it is memory of this process.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.device.device_type == DeviceType::CPU
    }

    /// Lends bytes for reading, once; those of another device as a copy.
    ///
    /// # Errors
    /// They are not inside, the memory was lent for a call that has returned, the caller is writing them at
    /// this moment, or the copy failed.
    pub fn read(&self, range: Range<usize>, reader: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.check_unused(&range, false)?;
        let guard = self.guard.read().unwrap_or_else(PoisonError::into_inner);
        let start = self.check(*guard, &range)?;
        if self.is_host() {
            let _lending = Lending::begin(self.addresses(&range), false)?;
            // SAFETY: the range is inside memory that is there while the guard is held, and nobody writes it while
            // it is lent.
            reader(unsafe { slice::from_raw_parts(start, range.len()) });
            return Ok(());
        }
        let mut copy = vec![0; range.len()];
        self.copy("runtime.TVMTensorCopyToBytes", range, &mut copy)?;
        reader(&copy);
        Ok(())
    }

    /// Lends bytes for writing, once. On another device what is written is copied there, and what the writer
    /// finds means nothing.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn write(
        &self,
        range: Range<usize>,
        writer: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Error> {
        self.check_unused(&range, true)?;
        let guard = self.guard.write().unwrap_or_else(PoisonError::into_inner);
        let start = self.check(*guard, &range)?;
        if self.is_host() {
            let _lending = Lending::begin(self.addresses(&range), true)?;
            // SAFETY: the range is inside memory that is there while the guard is held, and nobody else has it while
            // it is lent.
            writer(unsafe { slice::from_raw_parts_mut(start, range.len()) });
            return Ok(());
        }
        let mut copy = vec![0; range.len()];
        writer(&mut copy);
        self.copy("runtime.TVMTensorCopyFromBytes", range, &mut copy)
    }

    /// Where it lies.
    pub(crate) fn address(&self) -> u64 {
        self.data as u64
    }

    /// Locks the memory, and says where it begins; on another device, what stands for that there.
    pub(crate) fn lock(&self) -> Result<(RwLockWriteGuard<'_, bool>, *mut u8), Error> {
        self.check_unused(&(0..self.nbytes), true)?;
        let guard = self.guard.write().unwrap_or_else(PoisonError::into_inner);
        self.check(*guard, &(0..0))?;
        Ok((guard, self.data.cast()))
    }

    /// Whether the caller has no reference to a range that would be in the way of another one.
    pub(crate) fn check_unused(&self, range: &Range<usize>, is_mutable: bool) -> Result<(), Error> {
        match self.is_host() {
            true => lending::check(self.addresses(range), is_mutable),
            false => Ok(()),
        }
    }

    fn addresses(&self, range: &Range<usize>) -> Range<usize> {
        let at = |offset| self.data.addr().saturating_add(offset);
        at(range.start)..at(range.end)
    }

    /// Whether these are the same bytes of this process, or some of them are.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let [a, b] = [self, other].map(|memory| memory.addresses(&(0..memory.nbytes)));
        self.is_host() && other.is_host() && a.start < b.end && b.start < a.end
    }

    /// Where a range begins; on another device, what stands there for the start of the memory.
    fn check(&self, is_there: bool, range: &Range<usize>) -> Result<*mut u8, Error> {
        if !is_there {
            return Err(Error::new(
                "ValueError",
                "the tensor was lent for a call that has returned",
            ));
        }
        if range.start > range.end || range.end > self.nbytes {
            let nbytes = self.nbytes;
            return Err(Error::new(
                "IndexError",
                format!("bytes {range:?} of a memory of {nbytes} bytes"),
            ));
        }
        if !self.is_host() {
            return Ok(self.data.cast());
        }
        if !self.data.is_null() {
            return Ok(self.data.cast::<u8>().wrapping_add(range.start));
        }
        if range.is_empty() {
            // There may be no memory where nothing is stored.
            return Ok(std::ptr::dangling_mut());
        }
        Err(Error::new("ValueError", "a tensor that has no memory"))
    }

    /// Copies a range that was checked, while the guard is held.
    fn copy(&self, name: &str, range: Range<usize>, bytes: &mut [u8]) -> Result<(), Error> {
        let shape = [i64::try_from(range.len()).unwrap_or(i64::MAX)];
        let start = range.start as u64;
        // SAFETY: the range is inside memory that is there while the guard is held.
        let part =
            unsafe { TensorView::of_raw(self.data, self.device, start, &shape, DataType::UINT8) };
        let place = bytes.as_mut_ptr() as u64;
        let args = [Arg::Tensor(&part), Arg::Pointer(place), shape[0].into()];
        Runtime::of_process().named(name)?.call(&args)?;
        Ok(())
    }
}

/// How long tensors are lent: until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    guards: Mutex<Vec<Arc<RwLock<bool>>>>,
}

impl Lease {
    /// A guard of its own for each tensor, so that two of them can be locked at once.
    pub(crate) fn guard(&self) -> Arc<RwLock<bool>> {
        let guard = Arc::new(RwLock::new(true));
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        guards.push(Arc::clone(&guard));
        guard
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let guards = self.guards.get_mut();
        for guard in guards.unwrap_or_else(PoisonError::into_inner) {
            *guard.write().unwrap_or_else(PoisonError::into_inner) = false;
        }
    }
}

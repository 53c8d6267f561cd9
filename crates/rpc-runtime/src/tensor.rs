//! Tensors and their memory.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use rpc_proto::{DataType, Device, DeviceType, Shape, TypeCode};

use crate::abi::{DlDataType, DlTensor};
use crate::error::Error;
use crate::lending::{self, Lending};
use crate::library::Runtime;
use crate::object::Object;
use crate::value::Arg;

/// A tensor of the runtime: dense, in row-major order.
#[derive(Debug, Clone)]
pub struct Tensor {
    memory: Memory,
    byte_offset: u64,
    shape: Shape,
    dtype: DataType,
}

impl Tensor {
    /// An object that is a tensor.
    pub(crate) fn of_object(object: Object) -> Result<Self, Error> {
        let Some(dl) = object.tensor().copied() else {
            return Err(Error::new("TypeError", "an object that is no tensor"));
        };
        let guard = Arc::new(RwLock::new(true));
        // SAFETY: it says of itself where its memory is, which it keeps for as long as it lives.
        unsafe { Self::new(&dl, guard, Some(object)) }
    }

    /// A tensor that is another's. It can be used until the lease ends.
    ///
    /// # Safety
    /// It is there until the lease ends, and nobody else uses its memory meanwhile.
    pub(crate) unsafe fn lent(dl: &DlTensor, lease: &Lease) -> Result<Self, Error> {
        // SAFETY: the caller's word.
        unsafe { Self::new(dl, lease.guard(), None) }
    }

    /// # Safety
    /// What `dl` says is so, for as long as the guard is true, or the owner lives.
    unsafe fn new(
        dl: &DlTensor,
        guard: Arc<RwLock<bool>>,
        owner: Option<Object>,
    ) -> Result<Self, Error> {
        let ndim = usize::try_from(dl.ndim).unwrap_or(0);
        let sizes = |place: *mut i64| match place.is_null() || ndim == 0 {
            true => &[][..],
            // SAFETY: there are `ndim` numbers, by the caller's word.
            false => unsafe { slice::from_raw_parts(place, ndim) },
        };
        let (shape, strides) = (Shape::from(sizes(dl.shape)), sizes(dl.strides));
        if !strides.is_empty() && !is_dense(&shape, strides) {
            return Err(Error::new(
                "ValueError",
                format!("a tensor with the strides {strides:?}, where a dense one is expected"),
            ));
        }
        let dtype = DataType {
            code: TypeCode(dl.dtype.code),
            bits: dl.dtype.bits,
            lanes: dl.dtype.lanes,
        };
        let end = shape
            .nbytes(dtype)
            .and_then(|nbytes| nbytes.checked_add(dl.byte_offset));
        let end = end.and_then(|end| usize::try_from(end).ok());
        let end = end.ok_or_else(|| Error::new("ValueError", "a tensor that has no size"))?;
        let memory = Memory {
            data: dl.data,
            nbytes: end,
            device: Device {
                device_type: DeviceType(dl.device_type),
                id: dl.device_id,
            },
            guard,
            owner,
        };
        Ok(Self {
            memory,
            byte_offset: dl.byte_offset,
            shape,
            dtype,
        })
    }

    /// Where its elements are, [`Tensor::byte_offset`] bytes behind the start.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Bytes from the start of the memory to the first element.
    #[must_use]
    pub fn byte_offset(&self) -> u64 {
        self.byte_offset
    }

    /// The sizes, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// The object that it is.
    ///
    /// # Errors
    /// It is none: it was lent for a call.
    pub fn into_object(self) -> Result<Object, Error> {
        self.memory.owner.ok_or_else(|| {
            Error::new(
                "ValueError",
                "a tensor that was lent for a call cannot be kept",
            )
        })
    }
}

/// Are the elements in row-major order, without gaps?
fn is_dense(shape: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1_i64;
    let sizes = shape.iter().zip(strides).rev();
    for (&size, &stride) in sizes {
        if size != 1 && stride != expected {
            return shape.contains(&0);
        }
        expected = expected.saturating_mul(size);
    }
    true
}

/// How long tensors are lent: until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    guards: Mutex<Vec<Arc<RwLock<bool>>>>,
}

impl Lease {
    /// A guard of its own for each tensor, so that two of them can be locked at once.
    fn guard(&self) -> Arc<RwLock<bool>> {
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

    /// Where a range begins.
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
        Ok(match self.data.is_null() {
            _ if !self.is_host() => self.data.cast(),
            // There may be no memory where nothing is stored.
            true if range.is_empty() => std::ptr::dangling_mut(),
            true => return Err(Error::new("ValueError", "a tensor that has no memory")),
            false => self.data.cast::<u8>().wrapping_add(range.start),
        })
    }

    fn copy(&self, name: &str, range: Range<usize>, bytes: &mut [u8]) -> Result<(), Error> {
        let shape = [i64::try_from(range.len()).unwrap_or(i64::MAX)];
        let part = TensorView::of_memory(self, range.start as u64, &shape, DataType::UINT8)?;
        let place = bytes.as_mut_ptr() as u64;
        let args = [Arg::Tensor(&part), Arg::Pointer(place), shape[0].into()];
        Runtime::of_process().named(name)?.call(&args)?;
        Ok(())
    }
}

/// A tensor in memory that is lent, for functions to read and to write.
#[derive(Debug)]
pub struct TensorView<'a> {
    raw: DlTensor,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> TensorView<'a> {
    /// A tensor in memory of this process.
    ///
    /// # Errors
    /// It has not as many bytes.
    pub fn of_bytes(bytes: &'a mut [u8], shape: &'a [i64], dtype: DataType) -> Result<Self, Error> {
        check_size(bytes.len(), 0, shape, dtype)?;
        Ok(Self::new(
            bytes.as_mut_ptr().cast(),
            Device::cpu(0),
            0,
            shape,
            dtype,
        ))
    }

    /// A tensor in memory of the runtime, `byte_offset` bytes behind its start. The memory must be locked for
    /// as long as it is used.
    ///
    /// # Errors
    /// It is not inside.
    fn of_memory(
        memory: &'a Memory,
        byte_offset: u64,
        shape: &'a [i64],
        dtype: DataType,
    ) -> Result<Self, Error> {
        check_size(memory.nbytes, byte_offset, shape, dtype)?;
        Ok(Self::new(
            memory.data,
            memory.device,
            byte_offset,
            shape,
            dtype,
        ))
    }

    /// A tensor at an address.
    ///
    /// # Safety
    /// It is there, and the caller may lend it, for as long as `'a`.
    pub(crate) unsafe fn of_raw(
        data: *mut c_void,
        device: Device,
        byte_offset: u64,
        shape: &'a [i64],
        dtype: DataType,
    ) -> Self {
        Self::new(data, device, byte_offset, shape, dtype)
    }

    fn new(
        data: *mut c_void,
        device: Device,
        byte_offset: u64,
        shape: &'a [i64],
        dtype: DataType,
    ) -> Self {
        let raw = DlTensor {
            data,
            device_type: device.device_type.0,
            device_id: device.id,
            ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
            dtype: DlDataType {
                code: dtype.code.0,
                bits: dtype.bits,
                lanes: dtype.lanes,
            },
            shape: shape.as_ptr().cast_mut(),
            strides: std::ptr::null_mut(),
            byte_offset,
        };
        Self {
            raw,
            memory: PhantomData,
        }
    }

    pub(crate) fn as_raw(&self) -> *const DlTensor {
        &raw const self.raw
    }
}

/// A tensor of this shape is inside so many bytes.
fn check_size(
    nbytes: usize,
    byte_offset: u64,
    shape: &[i64],
    dtype: DataType,
) -> Result<(), Error> {
    let size = Shape::from(shape).nbytes(dtype);
    let end = size.and_then(|size| size.checked_add(byte_offset));
    if shape.len() <= 1 << 10 && end.is_some_and(|end| end <= nbytes as u64) {
        return Ok(());
    }
    Err(Error::new(
        "ValueError",
        format!("no tensor of {dtype} {shape:?} at offset {byte_offset} is in {nbytes} bytes"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_is_row_major_without_gaps() {
        for (shape, strides, is) in [
            (&[2, 3][..], &[3, 1][..], true),
            (&[2, 3], &[1, 2], false),
            (&[2, 1], &[1, 77], true),
            (&[0, 3], &[9, 9], true),
            (&[2, 3], &[4, 1], false),
            (&[], &[], true),
        ] {
            assert_eq!(is_dense(shape, strides), is, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn views_are_inside_their_bytes() {
        let mut bytes = [0; 24];
        assert!(TensorView::of_bytes(&mut bytes, &[2, 3], DataType::FLOAT32).is_ok());
        for shape in [&[7][..], &[-1], &[i64::MAX, 4], &[2, 4]] {
            let error = TensorView::of_bytes(&mut bytes, shape, DataType::FLOAT32).unwrap_err();
            assert_eq!(error.kind, "ValueError");
        }
    }

    #[test]
    fn a_tensor_is_lent_until_the_lease_ends() {
        let mut numbers = [1_u8, 2, 3];
        let shape = [3];
        let view = TensorView::of_bytes(&mut numbers, &shape, DataType::UINT8).unwrap();
        let lease = Lease::default();
        // SAFETY: the view lives until the end of this function.
        let tensor = unsafe { Tensor::lent(&*view.as_raw(), &lease) }.unwrap();
        let mut sum = 0;
        let mut add = |bytes: &[u8]| sum = bytes.iter().sum();
        tensor.memory().read(0..3, &mut add).unwrap();
        assert!(tensor.memory().read(1..4, &mut |_| ()).is_err());
        drop(lease);
        let error = tensor.memory().read(0..3, &mut |_| ()).unwrap_err();
        assert!(error.message.contains("has returned"), "{error}");
        assert_eq!(sum, 6);
    }
    #[test]
    fn a_tensor_without_memory_has_no_bytes() {
        let shape = [3];
        let mut raw = TensorView::new(
            std::ptr::null_mut(),
            Device::cpu(0),
            0,
            &shape,
            DataType::UINT8,
        );
        for (sizes, is_read) in [([3], false), ([0], true)] {
            raw.raw.shape = sizes.as_ptr().cast_mut();
            let lease = Lease::default();
            // SAFETY: the sizes live longer than the lease, and there is no memory.
            let tensor = unsafe { Tensor::lent(&*raw.as_raw(), &lease) }.unwrap();
            let all = 0..tensor.memory().nbytes();
            let read = tensor.memory().read(all.clone(), &mut |_| ());
            assert_eq!(read.is_ok(), is_read);
            let written = tensor.memory().write(all, &mut |_| ());
            assert_eq!(written.is_ok(), is_read);
        }
    }
}

//! Tensors.

use std::slice;
use std::sync::{Arc, RwLock};

use rpc_proto::{DataType, Device, DeviceType, Shape, TypeCode};

use crate::abi::DlTensor;
use crate::error::Error;
use crate::memory::{Lease, Memory};
use crate::object::Object;

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
        let device = Device::new(DeviceType(dl.device_type), dl.device_id);
        // SAFETY: the caller's word.
        let memory = unsafe { Memory::new(dl.data, end, device, guard, owner) };
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
        self.memory.into_owner().ok_or_else(|| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::TensorView;

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
        let mut numbers = [0; 3];
        let view = TensorView::of_bytes(&mut numbers, &shape, DataType::UINT8).unwrap();
        // SAFETY: the view is there.
        let mut raw = unsafe { *view.as_raw() };
        raw.data = std::ptr::null_mut();
        for (sizes, is_read) in [([3], false), ([0], true)] {
            raw.shape = sizes.as_ptr().cast_mut();
            let lease = Lease::default();
            // SAFETY: the sizes live longer than the lease, and there is no memory.
            let tensor = unsafe { Tensor::lent(&raw, &lease) }.unwrap();
            let all = 0..tensor.memory().nbytes();
            let read = tensor.memory().read(all.clone(), &mut |_| ());
            assert_eq!(read.is_ok(), is_read);
            let written = tensor.memory().write(all, &mut |_| ());
            assert_eq!(written.is_ok(), is_read);
        }
    }
}

//! Tensors in memory that somebody else has.

use std::ffi::c_void;
use std::marker::PhantomData;

use rpc_proto::{DataType, Device, Shape};

use crate::abi::{DlDataType, DlTensor};
use crate::error::Error;

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
        check_size(bytes.len(), shape, dtype)?;
        Ok(Self::new(
            bytes.as_mut_ptr().cast(),
            Device::cpu(0),
            0,
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
fn check_size(nbytes: usize, shape: &[i64], dtype: DataType) -> Result<(), Error> {
    let size = Shape::from(shape).nbytes(dtype);
    if shape.len() <= 1 << 10 && size.is_some_and(|size| size <= nbytes as u64) {
        return Ok(());
    }
    Err(Error::new(
        "ValueError",
        format!("no tensor of {dtype} {shape:?} is in {nbytes} bytes"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_inside_their_bytes() {
        let mut bytes = [0; 24];
        assert!(TensorView::of_bytes(&mut bytes, &[2, 3], DataType::FLOAT32).is_ok());
        for shape in [&[7][..], &[-1], &[i64::MAX, 4], &[2, 4]] {
            let error = TensorView::of_bytes(&mut bytes, shape, DataType::FLOAT32).unwrap_err();
            assert_eq!(error.kind, "ValueError");
        }
    }
}

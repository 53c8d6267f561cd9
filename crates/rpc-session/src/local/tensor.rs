use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rpc_proto::{DataType, Device, Shape, TensorView};

use super::buffer::{Buffer, Span};
use super::{DeviceMemory, Exception};
use crate::Element;

/// A tensor in this process's memory: dense, in row-major order. A clone is the same memory, and so may
/// other tensors be, for instance parts of it.
///
/// Its elements are copied in and out as a whole; there is no access in between to hold on to, so that
/// tensors that share memory never wait for each other.
///
/// ```
/// use rpc_session::LocalTensor;
///
/// let t = LocalTensor::from_slice(&[2, 3], &[1.0_f32; 6]).unwrap();
/// t.write(&[2.0_f32; 6]).unwrap();
/// assert_eq!(t.to_vec::<f32>().unwrap(), [2.0; 6]);
/// assert_eq!(
///     t.to_vec::<i32>().unwrap_err().to_string(),
///     "TypeError: expected a tensor of int32, found one of float32"
/// );
/// ```
#[derive(Clone)]
pub struct LocalTensor {
    span: Span,
    device: Device,
    dtype: DataType,
    shape: Shape,
}

impl LocalTensor {
    /// A tensor of zeros.
    ///
    /// # Errors
    /// No tensor has such a shape, or there is no memory for it.
    pub fn zeros(shape: &[i64], dtype: DataType) -> Result<Self, Exception> {
        let shape = Shape::from(shape);
        let nbytes = shape.nbytes(dtype).ok_or_else(|| no_size(&shape, dtype))?;
        let buffer = Buffer::zeroed(nbytes)?;
        let range = 0..buffer.nbytes();
        let span = Span { buffer, range };
        Ok(Self::new(span, Device::cpu(0), dtype, shape))
    }

    /// A tensor of these elements.
    ///
    /// # Errors
    /// As [`LocalTensor::zeros`], and another number of elements than the shape has.
    pub fn from_slice<T: Element>(shape: &[i64], elements: &[T]) -> Result<Self, Exception> {
        let tensor = Self::zeros(shape, T::DTYPE)?;
        tensor.write(elements)?;
        Ok(tensor)
    }

    /// A tensor in memory that a backend or a function has, `byte_offset` bytes behind its start.
    ///
    /// # Errors
    /// No tensor has such a shape, or it is not inside the memory.
    pub fn in_memory(
        memory: Box<dyn DeviceMemory>,
        byte_offset: u64,
        shape: &[i64],
        dtype: DataType,
    ) -> Result<Self, Exception> {
        let shape = Shape::from(shape);
        let nbytes = shape.nbytes(dtype).ok_or_else(|| no_size(&shape, dtype))?;
        let device = memory.device();
        let buffer = Buffer::new(memory, None)?;
        let Some(range) = buffer.inside(byte_offset, nbytes) else {
            return Err(Exception::new(
                "ValueError",
                format!(
                    "{nbytes} bytes at offset {byte_offset} are not inside a memory of {} bytes",
                    buffer.nbytes()
                ),
            ));
        };
        let span = Span { buffer, range };
        Ok(Self::new(span, device, dtype, shape))
    }

    /// The span is as long as dtype and shape say.
    pub(super) fn new(span: Span, device: Device, dtype: DataType, shape: Shape) -> Self {
        Self {
            span,
            device,
            dtype,
            shape,
        }
    }

    /// The device on which the client sees it.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// The sizes, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Bytes from the start of the memory to the first element.
    #[must_use]
    pub fn byte_offset(&self) -> usize {
        self.span.range.start
    }

    /// Bytes of all elements.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.span.range.len()
    }

    /// How many own the memory: tensors (of Rust code, or by handles of clients) and allocations of
    /// clients.
    #[must_use]
    pub fn owners(&self) -> usize {
        Arc::strong_count(&self.span.buffer)
    }

    /// All elements.
    ///
    /// # Errors
    /// They are of another type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Exception> {
        self.check::<T>()?;
        let range = self.span.range.clone();
        let read = |bytes: &[u8]| bytemuck::allocation::pod_collect_to_vec(bytes);
        self.span.buffer.read(range, read)
    }

    /// Replaces all elements.
    ///
    /// # Errors
    /// They are of another type, or of another number.
    pub fn write<T: Element>(&self, elements: &[T]) -> Result<(), Exception> {
        self.check::<T>()?;
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        if bytes.len() != self.nbytes() {
            return Err(Exception::new(
                "ValueError",
                format!(
                    "expected the {} elements of the tensor, found {}",
                    self.nbytes() / size_of::<T>().max(1),
                    elements.len()
                ),
            ));
        }
        self.write_bytes(0, bytes)
    }

    /// Some of the bytes, whatever the elements are.
    ///
    /// # Errors
    /// They are not all inside the tensor.
    pub fn read_bytes(&self, range: Range<usize>) -> Result<Vec<u8>, Exception> {
        let range = self.inside(range)?;
        self.span.buffer.read(range, <[u8]>::to_vec)
    }

    /// Replaces the bytes from `start` on.
    ///
    /// # Errors
    /// They are not all inside the tensor.
    pub fn write_bytes(&self, start: usize, bytes: &[u8]) -> Result<(), Exception> {
        let range = self.inside(start..start.saturating_add(bytes.len()))?;
        self.span
            .buffer
            .write(range, |target| target.copy_from_slice(bytes))
    }

    /// Copies all bytes into another tensor of as many, which may share the memory.
    ///
    /// # Errors
    /// That one has another number of bytes.
    pub fn copy_to(&self, target: &Self) -> Result<(), Exception> {
        if self.nbytes() != target.nbytes() {
            return Err(Exception::new(
                "ValueError",
                format!(
                    "a tensor of {} bytes cannot be copied into one of {}",
                    self.nbytes(),
                    target.nbytes()
                ),
            ));
        }
        self.span.copy_to(&target.span)
    }

    /// The memory that it is a tensor of; see [`LocalTensor::byte_offset`].
    #[must_use]
    pub fn memory(&self) -> &dyn DeviceMemory {
        self.span.buffer.memory()
    }

    /// A number that the memory alone has in this process.
    #[must_use]
    pub fn memory_id(&self) -> u64 {
        self.span.buffer.address()
    }

    pub(super) fn buffer(&self) -> &Arc<Buffer> {
        &self.span.buffer
    }

    /// The tensor as a client is told of it. The address is that of the first element: the reference's
    /// client forgets the offset of a tensor that comes back.
    pub(super) fn view(&self) -> TensorView {
        TensorView {
            data: self.span.buffer.address() + self.span.range.start as u64,
            device: self.device,
            dtype: self.dtype,
            shape: self.shape.clone(),
            byte_offset: 0,
        }
    }

    fn inside(&self, range: Range<usize>) -> Result<Range<usize>, Exception> {
        if range.start <= range.end && range.end <= self.nbytes() {
            let start = self.span.range.start;
            return Ok(start + range.start..start + range.end);
        }
        Err(Exception::new(
            "IndexError",
            format!("bytes {range:?} of a tensor of {} bytes", self.nbytes()),
        ))
    }

    fn check<T: Element>(&self) -> Result<(), Exception> {
        if T::fits(self.dtype) {
            return Ok(());
        }
        Err(Exception::new(
            "TypeError",
            format!(
                "expected a tensor of {}, found one of {}",
                T::DTYPE,
                self.dtype
            ),
        ))
    }
}

pub(super) fn no_size(shape: &Shape, dtype: DataType) -> Exception {
    let shape: &[i64] = shape;
    Exception::new(
        "ValueError",
        format!("no tensor of {dtype} has the shape {shape:?}"),
    )
}

impl fmt::Debug for LocalTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalTensor({} {:?})", self.dtype, self.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_elements_stand_where_they_stand() {
        let tensor = LocalTensor::from_slice(&[3], &[1_i32, 2, 3]).unwrap();
        assert_eq!(tensor.read_bytes(4..6).unwrap(), [2, 0]);
        tensor.write_bytes(8, &[9]).unwrap();
        assert_eq!(tensor.to_vec::<i32>().unwrap(), [1, 2, 9]);
        let ranges = [0..13, 12..13, 13..13, usize::MAX..usize::MAX];
        for range in ranges {
            let error = tensor.read_bytes(range).unwrap_err();
            assert_eq!(error.kind(), "IndexError");
        }
        assert!(tensor.write_bytes(usize::MAX, &[1]).is_err());
        assert!(tensor.write_bytes(12, &[]).is_ok());
    }

    #[test]
    fn shapes_that_no_tensor_has_are_refused() {
        for shape in [&[-1][..], &[i64::MAX, 3], &[0, -1]] {
            let error = LocalTensor::zeros(shape, DataType::INT8).unwrap_err();
            assert_eq!(error.kind(), "ValueError");
        }
        let empty = LocalTensor::zeros(&[4, 0], DataType::FLOAT32).unwrap();
        assert!(empty.to_vec::<f32>().unwrap().is_empty());
        let scalar = LocalTensor::from_slice(&[], &[2.5_f64]).unwrap();
        assert_eq!(scalar.to_vec::<f64>().unwrap(), [2.5]);
        assert!(LocalTensor::from_slice(&[2], &[1_u8]).is_err());
    }

    #[test]
    fn owners_are_tensors_of_the_same_memory() {
        let tensor = LocalTensor::zeros(&[1], DataType::BOOL).unwrap();
        let clone = tensor.clone();
        assert_eq!((tensor.owners(), clone.owners()), (2, 2));
        drop(clone);
        assert_eq!(tensor.owners(), 1);
    }
}

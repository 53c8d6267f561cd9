use std::sync::Arc;

use rpc_proto::{DataType, Device, Packet, Shape, Syscall, TensorView};

use super::bisync;
use super::context::Context;
use crate::freed::Freed;
use crate::{Element, SessionError};

/// A tensor in the memory of the server's device: dense, in row-major order.
///
/// Clones and [views](Tensor::view) share the memory; it is freed when the last of them is dropped.
#[derive(Debug, Clone)]
pub struct Tensor {
    storage: Arc<Storage>,
    view: TensorView,
    nbytes: u64,
}

/// Memory of the server's.
#[derive(Debug)]
struct Storage {
    context: Arc<Context>,
    /// How it is freed; what the server lends is not.
    freed: Option<Freed>,
    /// Bytes from the tensor's address on.
    size: u64,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(freed) = self.freed {
            self.context.link.free(freed);
        }
    }
}

impl Tensor {
    fn new(context: &Arc<Context>, view: TensorView, nbytes: u64, freed: Option<Freed>) -> Self {
        let storage = Storage {
            context: Arc::clone(context),
            freed,
            size: view.byte_offset.saturating_add(nbytes),
        };
        Self {
            storage: Arc::new(storage),
            view,
            nbytes,
        }
    }

    /// A tensor that a call gave back; `handle` is what has to be freed, never its address.
    pub(in super::super) fn returned(
        context: &Arc<Context>,
        view: TensorView,
        handle: u64,
    ) -> Self {
        let freed = (handle != 0).then_some(Freed::Handle {
            handle,
            kind: rpc_proto::HandleKind::Tensor,
        });
        // A shape without a size can be passed on, but not copied.
        let nbytes = view.nbytes().unwrap_or(u64::MAX);
        Self::new(context, view, nbytes, freed)
    }

    pub(in super::super) fn context(&self) -> &Arc<Context> {
        &self.storage.context
    }

    pub(in super::super) fn as_view(&self) -> &TensorView {
        &self.view
    }

    /// The device that holds it.
    #[must_use]
    pub fn device(&self) -> Device {
        self.view.device
    }

    /// Type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.view.dtype
    }

    /// Sizes, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.view.shape
    }

    /// Bytes from the start of the memory to the first element.
    #[must_use]
    pub fn byte_offset(&self) -> u64 {
        self.view.byte_offset
    }

    /// Bytes of all elements.
    #[must_use]
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.view.shape.elements().unwrap_or(0)
    }

    /// Has it no elements?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Another tensor in the same memory, which starts `byte_offset` bytes behind the first element of
    /// this one.
    ///
    /// # Errors
    /// [`SessionError::BadTensor`] when it would reach beyond the memory.
    pub fn view(
        &self,
        shape: &[i64],
        dtype: DataType,
        byte_offset: u64,
    ) -> Result<Self, SessionError> {
        let shape = Shape::from(shape);
        let nbytes = nbytes_of(&shape, dtype)?;
        let start = self.view.byte_offset.checked_add(byte_offset);
        let end = start.and_then(|start| start.checked_add(nbytes));
        match (start, end) {
            (Some(start), Some(end)) if end <= self.storage.size => Ok(Self {
                storage: Arc::clone(&self.storage),
                view: TensorView {
                    shape,
                    dtype,
                    byte_offset: start,
                    ..self.view.clone()
                },
                nbytes,
            }),
            _ => Err(SessionError::BadTensor(format!(
                "a view of {nbytes} bytes at offset {byte_offset} reaches beyond the {} bytes from there on",
                self.storage.size - self.view.byte_offset
            ))),
        }
    }

    fn check_elements<T: Element>(&self, count: usize) -> Result<(), SessionError> {
        if T::fits(self.dtype()) && count as u64 == self.len() {
            return Ok(());
        }
        let data = format_args!("{count} elements of {}", T::DTYPE);
        Err(SessionError::mismatch(self.dtype(), self.len(), data))
    }

    fn check_bytes(&self, count: usize) -> Result<(), SessionError> {
        if count as u64 == self.nbytes {
            return Ok(());
        }
        let data = format_args!("{count} bytes instead of {}", self.nbytes);
        Err(SessionError::mismatch(self.dtype(), self.len(), data))
    }

    /// Bytes `start..start + len` of this tensor, as a packet describes them.
    fn piece(&self, start: u64, len: u64) -> TensorView {
        let mut piece = self.view.clone();
        // An offset that a server made up, and that is too large, is for the server to refuse.
        piece.byte_offset = piece.byte_offset.saturating_add(start);
        if len != self.nbytes && piece.device.device_type != rpc_proto::DeviceType::CPU {
            // Servers of the reference copy a part of what is described only from and to a processor.
            piece.dtype = DataType::UINT8;
            piece.shape = Shape::from_iter([len.cast_signed()]);
        }
        piece
    }
}

/// Bytes of a tensor.
pub(in super::super) fn nbytes_of(shape: &Shape, dtype: DataType) -> Result<u64, SessionError> {
    shape.nbytes(dtype).ok_or_else(|| {
        SessionError::BadTensor(format!("no tensor of {dtype} has the shape {:?}", &**shape))
    })
}

#[bisync]
impl Tensor {
    pub(in super::super) async fn allocate(
        context: &Arc<Context>,
        device: Device,
        shape: &[i64],
        dtype: DataType,
        scope: Option<&str>,
    ) -> Result<Self, SessionError> {
        let shape = Shape::from(shape);
        let nbytes = nbytes_of(&shape, dtype)?;
        let mut view = TensorView {
            data: 0,
            device,
            dtype,
            shape,
            byte_offset: 0,
        };
        let syscall = Syscall::AllocDataWithScope {
            tensor: view.clone(),
            scope: scope.map(Into::into),
        };
        view.data = context.pointer(syscall).await?;
        let data = view.data;
        let freed = (data != 0).then_some(Freed::Data { device, data });
        Ok(Self::new(context, view, nbytes, freed))
    }

    /// Copies `data` into the tensor.
    ///
    /// # Errors
    /// [`SessionError::Mismatch`] when type or length do not fit; the server or the connection fails.
    pub async fn copy_from<T: Element>(&self, data: &[T]) -> Result<(), SessionError> {
        self.check_elements::<T>(data.len())?;
        self.copy_from_bytes(bytemuck::cast_slice(data)).await
    }

    /// Copies the tensor into `data`.
    ///
    /// # Errors
    /// As [`Tensor::copy_from`].
    pub async fn copy_into<T: Element>(&self, data: &mut [T]) -> Result<(), SessionError> {
        self.check_elements::<T>(data.len())?;
        self.copy_into_bytes(bytemuck::cast_slice_mut(data)).await
    }

    /// The elements.
    ///
    /// # Errors
    /// As [`Tensor::copy_from`], and [`SessionError::BadTensor`] for a tensor that no memory holds.
    pub async fn to_vec<T: Element>(&self) -> Result<Vec<T>, SessionError> {
        let too_large =
            || SessionError::BadTensor(format!("{} bytes do not fit into memory", self.nbytes));
        let count = usize::try_from(self.len()).map_err(|_| too_large())?;
        self.check_elements::<T>(count)?;
        // The server says how large a tensor is that a function gave back.
        if self.nbytes > self.context().link.max_payload() {
            return Err(too_large());
        }
        // Zeroed by the system, so that memory is taken for what comes and not for what was announced.
        let data = bytemuck::allocation::try_zeroed_slice_box(count);
        let mut data = data.map_err(|()| too_large())?.into_vec();
        self.copy_into(&mut data).await?;
        Ok(data)
    }

    /// Copies bytes into the tensor, as they are.
    ///
    /// # Errors
    /// As [`Tensor::copy_from`].
    pub async fn copy_from_bytes(&self, bytes: &[u8]) -> Result<(), SessionError> {
        self.check_bytes(bytes.len())?;
        let piece = self.piece_len(bytes.len()).await?;
        let mut start = 0;
        for payload in bytes.chunks(piece) {
            let nbytes = payload.len() as u64;
            let tensor = self.piece(start, nbytes);
            let packet = Packet::CopyTo { tensor, nbytes };
            self.context().send(&packet, payload).await?;
            start += nbytes;
        }
        Ok(())
    }

    /// Copies the bytes of the tensor, as they are.
    ///
    /// # Errors
    /// As [`Tensor::copy_from`].
    pub async fn copy_into_bytes(&self, bytes: &mut [u8]) -> Result<(), SessionError> {
        self.check_bytes(bytes.len())?;
        let piece = self.piece_len(bytes.len()).await?;
        let mut start = 0;
        for target in bytes.chunks_mut(piece) {
            let len = target.len() as u64;
            self.context().fetch(self.piece(start, len), target).await?;
            start += len;
        }
        Ok(())
    }

    /// Copies the tensor into another one of this session, on any of its devices.
    ///
    /// # Errors
    /// [`SessionError::ForeignHandle`], [`SessionError::Mismatch`], or the server or the connection
    /// fails.
    pub async fn copy_to(&self, other: &Tensor) -> Result<(), SessionError> {
        if !Arc::ptr_eq(self.context(), other.context()) {
            let argument = "the tensor to copy to".to_owned();
            return Err(SessionError::ForeignHandle { argument });
        }
        if self.nbytes != other.nbytes {
            let data = format_args!("{} bytes instead of {}", self.nbytes, other.nbytes);
            return Err(SessionError::mismatch(other.dtype(), other.len(), data));
        }
        if self.nbytes == 0 {
            return Ok(());
        }
        let syscall = Syscall::CopyAmong {
            from: self.view.clone(),
            to: other.view.clone(),
            stream: 0,
        };
        self.context().syscall(syscall).await
    }

    /// Bytes of this tensor that go in one packet: all `nbytes`, unless the server takes less.
    async fn piece_len(&self, nbytes: usize) -> Result<usize, SessionError> {
        if nbytes == 0 {
            return Ok(1);
        }
        let Some(limit) = self.context().max_packet().await? else {
            return Ok(nbytes);
        };
        // What the reference takes off for the head: code, tensor and length.
        let overhead = 44 + 8 * self.view.shape.len() as u64;
        match limit.checked_sub(overhead) {
            None | Some(0) => Err(SessionError::BadTensor(format!(
                "the server takes packets of {limit} bytes, too few for a tensor of {} dimensions",
                self.view.shape.len()
            ))),
            Some(room) => Ok(usize::try_from(room).unwrap_or(nbytes).min(nbytes)),
        }
    }
}

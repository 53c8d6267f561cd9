//! What a local session runs on: devices, their memory, and what is there to be called besides functions
//! in Rust.

use std::any::Any;
use std::ops::Range;

use rpc_proto::{DataType, Device, DeviceAttr, OwnedValue, TensorView};

use super::{Exception, LocalFunction, LocalTensor, WorkDir};

/// Memory of a device, which a [`Backend`] has allocated or a function has made.
///
/// Ranges are in bytes and inside the memory: who calls has checked that.
pub trait DeviceMemory: Any + Send + Sync {
    /// Bytes of it.
    fn nbytes(&self) -> usize;

    /// The device that it belongs to.
    fn device(&self) -> Device;

    /// Whether what is lent is the memory itself. Else it is a copy, on its way from or to the device.
    fn is_host(&self) -> bool {
        true
    }

    /// Lends bytes for reading, once.
    ///
    /// # Errors
    /// The memory cannot be read (any more). Then nothing was lent.
    fn read(&self, range: Range<usize>, reader: &mut dyn FnMut(&[u8])) -> Result<(), Exception>;

    /// Lends bytes for writing, once. Unless [`DeviceMemory::is_host`], what the writer finds there means
    /// nothing, and all of it is written to the device.
    ///
    /// # Errors
    /// The memory cannot be written (any more).
    fn write(
        &self,
        range: Range<usize>,
        writer: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Exception>;
}

/// What a local session runs on. Without one it is the processor, and its functions are those in Rust.
///
/// Sessions check what clients send: sizes are those of tensors that there can be, memory is alive and of
/// the device that is said. What a backend has to check is whether there is such a device, and such a
/// stream.
pub trait Backend: Send + Sync {
    /// The global function of that name, if there is one. Those in Rust come before. `files` are those of
    /// the session, for functions that load or make some.
    fn function(&self, name: &str, files: Option<&WorkDir>) -> Option<LocalFunction>;

    /// There is such a device.
    ///
    /// # Errors
    /// There is not.
    fn check_device(&self, device: Device) -> Result<(), Exception>;

    /// An attribute of a device: nothing, an integer or a text.
    ///
    /// # Errors
    /// There is no such device, unless it is asked whether there is.
    fn attr(&self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception>;

    /// Fresh memory. `alignment` (bytes) is a power of two up to 4096, or 0; `dtype` is a hint of what will
    /// be stored.
    ///
    /// # Errors
    /// There is no such device, or not so much memory.
    fn allocate(
        &self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        dtype: DataType,
    ) -> Result<Box<dyn DeviceMemory>, Exception>;

    /// Fresh memory for a tensor, in one of the device's memory scopes or where it has its tensors as a
    /// rule.
    ///
    /// # Errors
    /// There is no such device or scope, or not so much memory.
    fn allocate_tensor(
        &self,
        tensor: &TensorView,
        scope: Option<&str>,
    ) -> Result<Box<dyn DeviceMemory>, Exception>;

    /// Copies all of a tensor into another of as many bytes, as the next piece of work of a stream.
    ///
    /// # Errors
    /// There is no such stream, or no way from one device to the other.
    fn copy(&self, from: &LocalTensor, to: &LocalTensor, stream: u64) -> Result<(), Exception>;

    /// Makes a device current.
    ///
    /// # Errors
    /// There is no such device.
    fn set_device(&self, device: Device) -> Result<(), Exception> {
        self.check_device(device)
    }

    /// A new stream of work; null stands for the default one, where a device has no others.
    ///
    /// # Errors
    /// There is no such device.
    fn create_stream(&self, device: Device) -> Result<u64, Exception>;

    /// Frees a stream.
    ///
    /// # Errors
    /// There is no such stream.
    fn free_stream(&self, device: Device, stream: u64) -> Result<(), Exception>;

    /// Makes a stream current.
    ///
    /// # Errors
    /// There is no such stream.
    fn set_stream(&self, device: Device, stream: u64) -> Result<(), Exception>;

    /// The current stream.
    ///
    /// # Errors
    /// There is no such device.
    fn current_stream(&self, device: Device) -> Result<u64, Exception>;

    /// Waits until a stream is idle.
    ///
    /// # Errors
    /// There is no such stream, or its work failed.
    fn sync_stream(&self, device: Device, stream: u64) -> Result<(), Exception>;
}

use rpc_proto::{BulkKind, DataType, Device, DeviceAttr, OwnedValue, Returned, TensorView, Value};

use super::super::{DynRead, DynWrite, bisync, dyn_trait};
use crate::Exception;

/// A session, as its endpoint sees it: functions, memory and streams, by the numbers that the client
/// knows them under.
///
/// A `LocalSession` does what it is asked itself, a
/// `RemoteSession` has another server do it; both are served
/// alike. Requests come one after the other, and a reply is sent when the method has returned: whatever
/// it was asked is done by then.
///
/// Handles, addresses and streams come from a client, and may be anything. One that is not alive, or
/// not of the right kind, is an exception.
#[bisync]
#[dyn_trait]
pub trait Session: Send {
    /// The handle of the global function `name`, which the client frees; `None` if there is none.
    async fn get_function(&mut self, name: &str) -> Result<Option<u64>, Exception>;

    /// Calls a function. `bulk` is the last argument, if that is large text or bytes; what is not read
    /// of it is skipped.
    async fn call(
        &mut self,
        function: u64,
        args: &[Value<'_>],
        bulk: Option<BulkArgument<'_>>,
    ) -> Result<CallResult, Exception>;

    /// Gives up a handle. Null is none, and is freed at any time.
    async fn free(&mut self, handle: u64) -> Result<(), Exception>;

    /// An attribute of a device: nothing, an integer or a text.
    async fn attr(&mut self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception>;

    /// The address of `nbytes` fresh bytes. `dtype` is a hint of what will be stored.
    async fn allocate(
        &mut self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        dtype: DataType,
    ) -> Result<u64, Exception>;

    /// The address of fresh memory for a tensor (whose own address means nothing) in a memory scope.
    async fn allocate_tensor(
        &mut self,
        tensor: &TensorView,
        scope: Option<&str>,
    ) -> Result<u64, Exception>;

    /// Frees what was allocated.
    async fn free_data(&mut self, device: Device, data: u64) -> Result<(), Exception>;

    /// Copies `nbytes` bytes of `data` to the place that `tensor` describes. Any part of the memory
    /// may be described; what is not read of `data` is skipped.
    async fn copy_to(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        data: &mut DynRead<'_>,
    ) -> Result<(), Exception>;

    /// Copies `nbytes` bytes from the place that `tensor` describes into `target`. An exception after
    /// the first byte ends the connection, since nothing can follow half of the data.
    async fn copy_from(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        target: &mut DynWrite<'_>,
    ) -> Result<(), Exception>;

    /// Copies all of a tensor into another of the same size, also on another device.
    async fn copy_among(
        &mut self,
        from: &TensorView,
        to: &TensorView,
        stream: u64,
    ) -> Result<(), Exception>;

    /// Makes a device current.
    async fn set_device(&mut self, device: Device) -> Result<(), Exception>;

    /// A new stream of work; null stands for the default one.
    async fn create_stream(&mut self, device: Device) -> Result<u64, Exception>;

    /// Frees a stream.
    async fn free_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception>;

    /// Makes a stream current.
    async fn set_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception>;

    /// The current stream.
    async fn current_stream(&mut self, device: Device) -> Result<u64, Exception>;

    /// Waits until a stream is idle.
    async fn sync_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception>;

    /// The client is gone, or says goodbye: frees all that it held.
    async fn shutdown(&mut self);
}

/// A last argument of large text or bytes, on its way.
pub struct BulkArgument<'a> {
    /// Which of the two; text is not checked to be UTF-8 yet.
    pub kind: BulkKind,
    /// How many bytes.
    pub nbytes: u64,
    /// The bytes.
    pub data: &'a mut DynRead<'a>,
}

/// What a call gives back.
pub enum CallResult {
    /// A value. Its handle, if it has one, is the client's to free.
    Value(Returned<'static>),
    /// Large text or bytes, in pieces.
    Bulk {
        /// Which of the two.
        kind: BulkKind,
        /// How many bytes.
        nbytes: u64,
        /// The bytes. A failure while they are read ends the connection.
        data: Box<DynRead<'static>>,
    },
}

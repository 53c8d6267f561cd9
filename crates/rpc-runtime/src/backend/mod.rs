//! What a local session runs on where there is a runtime: its devices, its functions and its modules.

mod allocator;
mod call;
mod memory;
mod module;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rpc_proto::{DataType, Device, DeviceAttr, DeviceType, OwnedValue, TensorView, Value};
use rpc_session::{
    Backend, DeviceMemory, Exception, Functions, LocalFunction, LocalTensor, WorkDir,
};
use tracing::debug;

use crate::error::Error;
use crate::function::Function;
use crate::library::Runtime;
use crate::{Arg, Tensor};
use allocator::{Allocator, may_exist};
use memory::Allocated;

/// TVM's runtime, as what local sessions run on.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use rpc_runtime::{Place, Runtime, TvmBackend};
/// use rpc_session::blocking::LocalSessions;
/// use rpc_session::{Functions, LocalOptions, WorkDir};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::load(&Place::Auto)?;
/// let backend = TvmBackend::new(runtime)?;
/// let files = Some(WorkDir::temporary()?);
/// let sessions = LocalSessions::new(Functions::new(), files, LocalOptions::default())
///     .with_backend(Arc::new(backend));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TvmBackend {
    runtime: Runtime,
    allocator: Allocator,
    copy: Function,
    attr: Function,
    create_stream: Function,
    free_stream: Function,
    set_stream: Function,
    sync_stream: Function,
    /// The streams that were created: the type and the number of the device, and the stream.
    streams: Mutex<HashSet<(i32, i32, u64)>>,
}

impl TvmBackend {
    /// The runtime as a backend.
    ///
    /// # Errors
    /// It is one that has not all that is needed.
    pub fn new(runtime: Runtime) -> Result<Self, Error> {
        let named = |name| runtime.named(name);
        Ok(Self {
            runtime,
            allocator: Allocator::new(runtime)?,
            copy: named("runtime.TVMTensorCopyFromTo")?,
            attr: named("runtime.GetDeviceAttr")?,
            create_stream: named("runtime.Device_StreamCreate")?,
            free_stream: named("runtime.Device_StreamFree")?,
            set_stream: named("runtime.Device_SetStream")?,
            sync_stream: named("runtime.Device_StreamSync")?,
            streams: Mutex::default(),
        })
    }

    /// Makes functions in Rust global ones of the runtime, so that modules find them by their names. A
    /// function that the runtime has under the same name stays.
    ///
    /// # Errors
    /// The runtime has no memory for them.
    pub fn register(&self, functions: &Functions) -> Result<(), Error> {
        for name in functions.names() {
            let Some(function) = functions.get(name) else {
                continue;
            };
            if self.runtime.function(name).is_some() {
                debug!(name, "the runtime keeps its own");
                continue;
            }
            let function = call::to_function(&function)?;
            self.runtime.register(name, &function, false)?;
        }
        Ok(())
    }

    fn tensor(
        &self,
        device: Device,
        shape: &[i64],
        dtype: DataType,
        scope: Option<&str>,
    ) -> Result<Tensor, Exception> {
        self.check_device(device)?;
        self.allocator.tensor(device, shape, dtype, scope)
    }

    fn on_stream(&self, device: Device, stream: u64, action: &Function) -> Result<(), Exception> {
        self.check_stream(device, stream)?;
        if device.device_type == DeviceType::CPU {
            // It has one stream, which needs nothing. The runtime would have a list as long as the device's
            // number is large.
            return Ok(());
        }
        let args = [Arg::Device(device), Arg::Int(stream.cast_signed())];
        action.call(&args).map(drop).map_err(exception)
    }

    fn check_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.check_device(device)?;
        if stream == 0 || self.streams().contains(&of_device(device, stream)) {
            return Ok(());
        }
        Err(Exception::new(
            "ValueError",
            format!("{device} has no stream {stream:#x}"),
        ))
    }

    fn streams(&self) -> MutexGuard<'_, HashSet<(i32, i32, u64)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is there such a device?
    fn has(&self, device: Device) -> Result<bool, Exception> {
        Ok(match device.device_type {
            _ if !may_exist(device) => false,
            DeviceType::CPU => true,
            _ => self.ask(device, DeviceAttr::EXIST)? == Value::Int(1),
        })
    }

    fn ask(&self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        let args = [device.device_type.0, device.id, attr.0].map(|number| Arg::Int(number.into()));
        Ok(match self.attr.call(&args).map_err(exception)? {
            crate::Value::Int(value) => Value::Int(value),
            crate::Value::Bool(value) => Value::Int(value.into()),
            crate::Value::Str(text) => Value::from(text),
            crate::Value::None => Value::None,
            // What else there is has no form on the wire that clients know.
            other => Value::from(format!("{other:?}")),
        })
    }
}

fn no_device(device: Device) -> Exception {
    Exception::no_device(device, &format!("no {device} here"))
}

fn of_device(device: Device, stream: u64) -> (i32, i32, u64) {
    (device.device_type.0, device.id, stream)
}

fn exception(error: Error) -> Exception {
    Exception::new(error.kind, error.message).with_traceback(error.backtrace)
}

impl From<Exception> for Error {
    fn from(exception: Exception) -> Self {
        Self {
            kind: exception.kind().to_owned(),
            message: exception.message().to_owned(),
            backtrace: exception.traceback().to_owned(),
        }
    }
}

impl Backend for TvmBackend {
    fn function(&self, name: &str, files: Option<&WorkDir>) -> Option<LocalFunction> {
        // The runtime has such functions too, whose files are not those of the session.
        if name.starts_with("tvm.rpc.server.") {
            return module::function(name, files?);
        }
        let function = self.runtime.function(name)?;
        Some(call::of_function(name, function))
    }

    fn check_device(&self, device: Device) -> Result<(), Exception> {
        if self.has(device)? {
            return Ok(());
        }
        Err(no_device(device))
    }

    fn attr(&self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        if attr == DeviceAttr::EXIST {
            return Ok(Value::Int(self.has(device)?.into()));
        }
        self.check_device(device)?;
        self.ask(device, attr)
    }

    fn allocate(
        &self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        _: DataType,
    ) -> Result<Box<dyn DeviceMemory>, Exception> {
        let whole = nbytes.saturating_add(Allocated::more_for(alignment));
        let shape = [i64::try_from(whole).unwrap_or(i64::MAX)];
        let tensor = self.tensor(device, &shape, DataType::UINT8, None)?;
        Ok(Box::new(Allocated::aligned(&tensor, nbytes, alignment)?))
    }

    fn allocate_tensor(
        &self,
        view: &TensorView,
        scope: Option<&str>,
    ) -> Result<Box<dyn DeviceMemory>, Exception> {
        let tensor = self.tensor(view.device, &view.shape, view.dtype, scope)?;
        Ok(Box::new(Allocated::whole(&tensor)))
    }

    fn copy(&self, from: &LocalTensor, to: &LocalTensor, stream: u64) -> Result<(), Exception> {
        self.check_stream(from.device(), stream)?;
        if from.nbytes() == to.nbytes() && is_given_out_twice(from, to) {
            // They cannot be read and written at once.
            let bytes = from.read_bytes(0..from.nbytes())?;
            return to.write_bytes(0, &bytes);
        }
        // What the runtime makes of bytes that overlap is not defined.
        let is_host = from.memory().is_host() && to.memory().is_host();
        if is_host || overlap(from, to) {
            return from.copy_to(to);
        }
        let bytes = |tensor: &LocalTensor| rpc_session::Arg::Tensor(tensor.clone());
        call::call(&self.copy, &[bytes(from), bytes(to)])?;
        // The copy is done when this returns.
        for device in [from.device(), to.device()] {
            self.on_stream(device, 0, &self.sync_stream)?;
        }
        Ok(())
    }

    fn create_stream(&self, device: Device) -> Result<u64, Exception> {
        self.check_device(device)?;
        let created = self.create_stream.call(&[Arg::Device(device)]);
        let stream = match created.map_err(exception)? {
            crate::Value::Int(stream) => stream.cast_unsigned(),
            crate::Value::Pointer(stream) => stream,
            other => return Err(Exception::runtime(format!("{other:?} is no stream"))),
        };
        self.streams().insert(of_device(device, stream));
        Ok(stream)
    }

    fn free_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.check_stream(device, stream)?;
        if stream == 0 {
            return Ok(());
        }
        self.on_stream(device, stream, &self.free_stream)?;
        self.streams().remove(&of_device(device, stream));
        Ok(())
    }

    fn set_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.on_stream(device, stream, &self.set_stream)
    }

    fn current_stream(&self, device: Device) -> Result<u64, Exception> {
        self.check_device(device)?;
        Ok(self.runtime.current_stream(device))
    }

    fn sync_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.on_stream(device, stream, &self.sync_stream)
    }
}

/// Whether these are tensors of one memory, and have bytes of it in common.
fn overlap(a: &LocalTensor, b: &LocalTensor) -> bool {
    let end = |tensor: &LocalTensor| tensor.byte_offset() + tensor.nbytes();
    a.memory_id() == b.memory_id() && a.byte_offset() < end(b) && b.byte_offset() < end(a)
}

/// Whether the runtime has given out one memory twice, and each is a tensor of another of the two.
fn is_given_out_twice(a: &LocalTensor, b: &LocalTensor) -> bool {
    let own = [a, b].map(|tensor| call::own(tensor.memory()));
    a.memory_id() != b.memory_id()
        && matches!(own, [Some(a), Some(b)] if a.memory().0.overlaps(b.memory().0))
}

/// A tensor of the runtime, for sessions.
fn local_tensor(tensor: &Tensor) -> Result<LocalTensor, Exception> {
    let memory = Box::new(Allocated::whole(tensor));
    LocalTensor::in_memory(memory, tensor.byte_offset(), tensor.shape(), tensor.dtype())
}

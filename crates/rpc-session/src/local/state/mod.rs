//! What a local session knows of its client, and what it does for it without waiting for anything.

mod handles;
mod memory;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rpc_proto::{DataType, Device, DeviceAttr, OwnedValue, Returned, TensorView, Value};

use super::buffer::{Budget, Buffer, Charge, Span};
use super::host::Host;
use super::server::Server;
use super::{
    Arg, Backend, Exception, FileFunction, Functions, LocalFunction, LocalModule, LocalOptions,
    LocalTensor, LocalValue, WorkDir, tensor,
};
use handles::{Handles, Held, wrong_kind};
use memory::Memory;

/// One client of a local session.
pub(crate) struct State {
    functions: Functions,
    system_lib: LocalModule,
    files: Option<WorkDir>,
    backend: Arc<dyn Backend>,
    handles: Handles,
    memory: Memory,
    budget: Arc<Budget>,
    options: LocalOptions,
}

/// What can be called.
pub(crate) enum Callee {
    Function(LocalFunction),
    File(FileFunction),
}

/// What the client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) handles: usize,
    /// Pieces of memory that it can reach.
    pub(crate) regions: usize,
    /// Bytes.
    pub(crate) memory: u64,
}

impl State {
    pub(crate) fn new(
        functions: &Functions,
        files: Option<WorkDir>,
        options: LocalOptions,
    ) -> Self {
        let budget = Budget::new(options.memory);
        Self {
            functions: functions.clone(),
            system_lib: functions.system_lib(),
            files,
            backend: Arc::new(Host),
            handles: Handles::new(options.handles),
            memory: Memory::new(&budget, options.handles),
            budget,
            options,
        }
    }

    pub(crate) fn set_backend(&mut self, backend: Arc<dyn Backend>) {
        self.backend = backend;
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn files(&self) -> Option<&WorkDir> {
        self.files.as_ref()
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            handles: self.handles.len(),
            regions: self.memory.len(),
            memory: self.budget.used(),
        }
    }

    pub(crate) fn get_function(&mut self, name: &str) -> Result<Option<u64>, Exception> {
        let server = Server {
            functions: &self.functions,
            system_lib: &self.system_lib,
            backend: &*self.backend,
            options: &self.options,
        };
        let of_files = || FileFunction::named(name).filter(|_| self.files.is_some());
        let own = self
            .functions
            .get(name)
            .or_else(|| server.function(name))
            .map(Held::Function)
            .or_else(|| of_files().map(Held::File));
        let of_backend = || self.backend.function(name, self.files.as_ref());
        let Some(held) = own.or_else(|| of_backend().map(Held::Function)) else {
            return Ok(None);
        };
        self.handles.insert(held).map(Some)
    }

    pub(crate) fn callee(&self, handle: u64) -> Result<Callee, Exception> {
        const EXPECTED: &str = "a function";
        match self.handles.get(handle, EXPECTED)? {
            Held::Function(function) => Ok(Callee::Function(function.clone())),
            Held::File(function) => Ok(Callee::File(*function)),
            other => Err(wrong_kind(handle, EXPECTED, other)),
        }
    }

    /// Calls a function. `last` is one more argument, behind the others.
    pub(crate) fn call(
        &mut self,
        function: &LocalFunction,
        args: &[Value<'_>],
        last: Option<&LocalValue>,
    ) -> Result<Returned<'static>, Exception> {
        let args = args.iter().map(|value| self.arg(value));
        let args = args.chain(last.map(|value| Ok(value.as_arg())));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        // What a function leaves behind when it panics is behind locks that do not mind.
        let called = catch_unwind(AssertUnwindSafe(|| function.call_with(&args)));
        let result = called.unwrap_or_else(|panic| Err(panicked(function, panic.as_ref())));
        drop(args);
        self.returned(result?)
    }

    /// Bytes that count towards the client's memory until what is returned is dropped.
    pub(crate) fn charge(&self, nbytes: u64) -> Result<Charge, Exception> {
        self.budget.charge(nbytes)
    }

    pub(crate) fn free(&mut self, handle: u64) -> Result<(), Exception> {
        if handle == 0 {
            return Ok(());
        }
        if let Held::Tensor(tensor) = self.handles.remove(handle)? {
            let address = tensor.buffer().address();
            drop(tensor);
            self.memory.release(address);
        }
        Ok(())
    }

    pub(crate) fn attr(&self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        let value = self.backend.attr(device, attr)?;
        let most = i64::try_from(self.options.memory).unwrap_or(i64::MAX);
        Ok(match (attr, value) {
            (DeviceAttr::TOTAL_GLOBAL_MEMORY, Value::Int(bytes)) => Value::Int(bytes.min(most)),
            (_, value) => value,
        })
    }

    pub(crate) fn allocate(
        &mut self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        dtype: DataType,
    ) -> Result<u64, Exception> {
        const PAGE: u64 = 4096;
        self.backend.check_device(device)?;
        if alignment > PAGE || alignment > 0 && !alignment.is_power_of_two() {
            return Err(Exception::new(
                "ValueError",
                format!("expected a power of two up to {PAGE} as the alignment, found {alignment}"),
            ));
        }
        let allocate = || self.backend.allocate(device, nbytes, alignment, dtype);
        self.memory.allocate(nbytes, allocate)
    }

    pub(crate) fn allocate_tensor(
        &mut self,
        view: &TensorView,
        scope: Option<&str>,
    ) -> Result<u64, Exception> {
        self.backend.check_device(view.device)?;
        let allocate = || self.backend.allocate_tensor(view, scope);
        self.memory.allocate(size(view)?, allocate)
    }

    pub(crate) fn free_data(&mut self, device: Device, data: u64) -> Result<(), Exception> {
        self.backend.check_device(device)?;
        match data {
            0 => Ok(()),
            data => self.memory.free(data),
        }
    }

    /// Where to copy `nbytes` bytes to or from. A copy may be a part of a larger one.
    pub(crate) fn span(&self, view: &TensorView, nbytes: u64) -> Result<Span, Exception> {
        self.backend.check_device(view.device)?;
        let size = size(view)?;
        if nbytes > size {
            return Err(Exception::new(
                "ValueError",
                format!("a copy of {nbytes} bytes, but the tensor has {size}"),
            ));
        }
        self.find(view, nbytes)
    }

    pub(crate) fn copy_among(
        &self,
        from: &TensorView,
        to: &TensorView,
        stream: u64,
    ) -> Result<(), Exception> {
        let (from, to) = (self.tensor(from)?, self.tensor(to)?);
        self.backend.copy(&from, &to, stream)
    }

    pub(crate) fn clear(&mut self) {
        self.handles.clear();
        self.memory.clear();
        // What was imported into it is the client's as well.
        self.system_lib = self.functions.system_lib();
    }

    fn find(&self, view: &TensorView, nbytes: u64) -> Result<Span, Exception> {
        if nbytes == 0 && view.data == 0 {
            // Nothing needs no memory.
            let buffer = Buffer::zeroed(0)?;
            return Ok(Span {
                buffer,
                range: 0..0,
            });
        }
        let TensorView {
            device,
            data,
            byte_offset,
            ..
        } = *view;
        self.memory.span(device, data, byte_offset, nbytes)
    }

    /// The whole of what a client says is a tensor.
    fn tensor(&self, view: &TensorView) -> Result<LocalTensor, Exception> {
        self.backend.check_device(view.device)?;
        let span = self.find(view, size(view)?)?;
        let shape = view.shape.clone();
        Ok(LocalTensor::new(span, view.device, view.dtype, shape))
    }

    fn arg<'a>(&self, value: &'a Value<'_>) -> Result<Arg<'a>, Exception> {
        Ok(match value {
            Value::None => Arg::None,
            Value::Int(value) => Arg::Int(*value),
            Value::Bool(value) => Arg::Bool(*value),
            Value::Float(value) => Arg::Float(*value),
            Value::Pointer(address) => Arg::Pointer(*address),
            Value::DataType(dtype) => Arg::DataType(*dtype),
            Value::Device(device) => Arg::Device(*device),
            Value::Str(text) => Arg::Str(text),
            Value::Bytes(bytes) => Arg::Bytes(bytes),
            Value::Tensor(view) => Arg::Tensor(self.tensor(view)?),
            Value::Function(handle) => {
                self.held(*handle, "a function", |arg| matches!(arg, Arg::Function(_)))?
            }
            Value::Module(handle) => {
                self.held(*handle, "a module", |arg| matches!(arg, Arg::Module(_)))?
            }
            // Functions, modules and tensors are objects too.
            Value::Object(handle) => self.held(*handle, "an object", |_| true)?,
            other => {
                return Err(Exception::new(
                    "TypeError",
                    format!("this server does not know {} as an argument", other.kind()),
                ));
            }
        })
    }

    /// What a handle stands for.
    fn held(
        &self,
        handle: u64,
        expected: &str,
        is_it: impl FnOnce(&Arg<'_>) -> bool,
    ) -> Result<Arg<'static>, Exception> {
        let held = self.handles.get(handle, expected)?;
        let arg = match held {
            Held::Function(function) => Arg::Function(function.clone()),
            Held::Module(module) => Arg::Module(module.clone()),
            Held::Tensor(tensor) => Arg::Tensor(tensor.clone()),
            Held::Object(object) => Arg::Object(object.clone()),
            Held::File(_) => return Err(wrong_kind(handle, expected, held)),
        };
        if is_it(&arg) {
            return Ok(arg);
        }
        Err(wrong_kind(handle, expected, held))
    }

    fn returned(&mut self, value: LocalValue) -> Result<Returned<'static>, Exception> {
        Ok(Returned::Value(match value {
            LocalValue::None => Value::None,
            LocalValue::Int(value) => Value::Int(value),
            LocalValue::Bool(value) => Value::Bool(value),
            LocalValue::Float(value) => Value::Float(value),
            LocalValue::Str(text) => Value::from(text),
            LocalValue::Bytes(bytes) => Value::from(bytes),
            LocalValue::DataType(dtype) => Value::DataType(dtype),
            LocalValue::Device(device) => Value::Device(device),
            LocalValue::Pointer(address) => Value::Pointer(address),
            LocalValue::Function(function) => {
                Value::Function(self.handles.insert(Held::Function(function))?)
            }
            LocalValue::Module(module) => Value::Module(self.handles.insert(Held::Module(module))?),
            LocalValue::Object(object) => {
                let type_index = object.type_index();
                let handle = self.handles.insert(Held::Object(object))?;
                return Ok(Returned::Object { type_index, handle });
            }
            LocalValue::Tensor(tensor) => {
                self.handles.check_room()?;
                self.memory.hold(tensor.buffer())?;
                let view = tensor.view();
                let handle = self.handles.insert(Held::Tensor(tensor))?;
                return Ok(Returned::Tensor {
                    tensor: view,
                    handle,
                });
            }
        }))
    }
}

fn size(view: &TensorView) -> Result<u64, Exception> {
    view.nbytes()
        .ok_or_else(|| tensor::no_size(&view.shape, view.dtype))
}

fn panicked(function: &LocalFunction, panic: &(dyn Any + Send)) -> Exception {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message");
    Exception::runtime(format!(
        "the function {} panicked: {message}",
        function.name()
    ))
}

//! Calls from sessions into the runtime, and from the runtime to functions in Rust.

use std::any::Any;

use rpc_session::{
    Callable, DeviceMemory, Exception, LocalFunction, LocalModule, LocalObject, LocalTensor,
    LocalValue,
};

use super::allocator::Allocator;
use super::memory::Allocated;
use super::module::TvmModule;
use super::{exception, local_tensor};
use crate::error::Error;
use crate::function::Function;
use crate::library::Runtime;
use crate::object::Object;
use crate::value::{Arg, Value};
use crate::view::TensorView;

/// A function of the runtime, as sessions have it.
struct TvmFunction {
    function: Function,
}

impl Callable for TvmFunction {
    fn call(&self, args: &[rpc_session::Arg<'_>]) -> Result<LocalValue, Exception> {
        call(&self.function, args)
    }
}

/// A function of the runtime, for sessions.
pub(super) fn of_function(name: &str, function: Function) -> LocalFunction {
    LocalFunction::of(name, TvmFunction { function })
}

/// A function of a session, for the runtime.
pub(super) fn to_function(function: &LocalFunction) -> Result<Function, Error> {
    if let Some(own) = function.downcast_ref::<TvmFunction>() {
        return Ok(own.function.clone());
    }
    let function = function.clone();
    Runtime::of_process().new_function(move |values| {
        let args = values.iter().cloned().map(local_value);
        let args = args.collect::<Result<Vec<_>, _>>()?;
        runtime_value(function.call(&args)?)
    })
}

/// Calls a function of the runtime with what a session has.
pub(super) fn call(
    function: &Function,
    args: &[rpc_session::Arg<'_>],
) -> Result<LocalValue, Exception> {
    let objects = args.iter().map(object);
    let objects = objects.collect::<Result<Vec<_>, _>>()?;
    let mut result = Err(Exception::runtime("the tensors were not lent"));
    let mut lent = Lent::new(args)?;
    lent.with_all(&mut |lent| {
        let called = lent.views(args).and_then(|views| {
            let args = args.iter().zip(&objects).zip(&views);
            let args =
                args.map(|((arg, object), view)| argument(arg, object.as_ref(), view.as_ref()));
            let args = args.collect::<Result<Vec<_>, _>>()?;
            function.call(&args).map_err(exception)
        });
        result = called;
    })?;
    local_value(result?)
}

/// The object that stands for an argument, if it is one that the runtime knows as an object.
fn object(arg: &rpc_session::Arg<'_>) -> Result<Option<Object>, Exception> {
    Ok(Some(match arg {
        rpc_session::Arg::Function(function) => {
            let function = to_function(function).map_err(exception)?;
            function.object().clone()
        }
        rpc_session::Arg::Module(module) => object_of_module(module)?,
        rpc_session::Arg::Object(object) => object_of(object)?,
        _ => return Ok(None),
    }))
}

fn object_of_module(module: &LocalModule) -> Result<Object, Exception> {
    let compiled = module.as_compiled().and_then(|module| {
        let module: &dyn Any = module;
        module.downcast_ref::<TvmModule>()
    });
    let compiled = compiled.map(|module| module.object.clone());
    compiled.ok_or_else(|| {
        Exception::new(
            "TypeError",
            "a module in Rust, where a compiled one is expected",
        )
    })
}

fn object_of(object: &LocalObject) -> Result<Object, Exception> {
    let own = object.downcast_ref::<Object>().cloned();
    own.ok_or_else(|| {
        Exception::new(
            "TypeError",
            "an object in Rust, where one of the runtime is expected",
        )
    })
}

fn argument<'a>(
    arg: &'a rpc_session::Arg<'_>,
    object: Option<&'a Object>,
    view: Option<&'a TensorView<'a>>,
) -> Result<Arg<'a>, Exception> {
    use rpc_session::Arg as Local;
    Ok(match arg {
        Local::None => Arg::None,
        Local::Int(value) => Arg::Int(*value),
        Local::Bool(value) => Arg::Bool(*value),
        Local::Float(value) => Arg::Float(*value),
        Local::Str(text) => Arg::Str(text),
        Local::Bytes(bytes) => Arg::Bytes(bytes),
        Local::DataType(dtype) => Arg::DataType(*dtype),
        Local::Device(device) => Arg::Device(*device),
        Local::Pointer(address) => Arg::Pointer(*address),
        other => match (object, view) {
            (Some(object), _) => Arg::Object(object),
            (None, Some(view)) => Arg::Tensor(view),
            (None, None) => {
                let kind = other.kind();
                let message = format!("the runtime does not know {kind} as an argument");
                return Err(Exception::new("TypeError", message));
            }
        },
    })
}

/// What the runtime gives, for a session.
pub(super) fn local_value(value: Value) -> Result<LocalValue, Exception> {
    Ok(match value {
        Value::None => LocalValue::None,
        Value::Int(value) => LocalValue::Int(value),
        Value::Bool(value) => LocalValue::Bool(value),
        Value::Float(value) => LocalValue::Float(value),
        Value::Pointer(value) => LocalValue::Pointer(value),
        Value::DataType(value) => LocalValue::DataType(value),
        Value::Device(value) => LocalValue::Device(value),
        Value::Str(text) => LocalValue::Str(text),
        Value::Bytes(bytes) => LocalValue::Bytes(bytes),
        Value::Tensor(tensor) => LocalValue::Tensor(local_tensor(&tensor)?),
        Value::Object(object) if object.is_module() => {
            LocalValue::Module(LocalModule::compiled(TvmModule { object }))
        }
        Value::Object(object) => match Function::try_from(object) {
            Ok(function) => {
                LocalValue::Function(of_function("a function of the runtime", function))
            }
            Err(object) => {
                let index = object.type_index().into();
                LocalValue::Object(LocalObject::new(object).with_type_index(index))
            }
        },
    })
}

/// What a function in Rust gives, for the runtime.
fn runtime_value(value: LocalValue) -> Result<Value, Error> {
    Ok(match value {
        LocalValue::None => Value::None,
        LocalValue::Int(value) => Value::Int(value),
        LocalValue::Bool(value) => Value::Bool(value),
        LocalValue::Float(value) => Value::Float(value),
        LocalValue::Pointer(value) => Value::Pointer(value),
        LocalValue::DataType(value) => Value::DataType(value),
        LocalValue::Device(value) => Value::Device(value),
        LocalValue::Str(text) => Value::Str(text),
        LocalValue::Bytes(bytes) => Value::Bytes(bytes),
        LocalValue::Tensor(tensor) => Value::Tensor(kept(&tensor)?),
        LocalValue::Function(function) => Value::Object(to_function(&function)?.object().clone()),
        LocalValue::Module(module) => Value::Object(object_of_module(&module)?),
        LocalValue::Object(object) => Value::Object(object_of(&object)?),
        other => {
            let kind = other.as_arg().kind();
            let message = format!("the runtime does not know {kind}");
            return Err(Error::new("TypeError", message));
        }
    })
}

/// A copy of a tensor in memory of the runtime's own, which stays.
fn kept(tensor: &LocalTensor) -> Result<crate::Tensor, Error> {
    let allocator = Allocator::new(Runtime::of_process())?;
    let copy = allocator.tensor(tensor.device(), tensor.shape(), tensor.dtype(), None)?;
    tensor.copy_to(&local_tensor(&copy)?)?;
    Ok(copy)
}

/// The memory of the tensors of a call, which is locked while the runtime has it.
struct Lent<'t> {
    /// Each memory once, by its number, in the order of the numbers: so two calls never wait for each other.
    memories: Vec<(u64, &'t dyn DeviceMemory)>,
    /// Where each begins, as far as they are locked.
    places: Vec<*mut u8>,
}

impl<'t> Lent<'t> {
    /// So many tensors may one call have.
    const MOST: usize = 1024;

    fn new(args: &'t [rpc_session::Arg<'_>]) -> Result<Self, Exception> {
        let memories = args.iter().filter_map(|arg| match arg {
            rpc_session::Arg::Tensor(tensor) => Some((tensor.memory_id(), tensor.memory())),
            _ => None,
        });
        let mut memories: Vec<_> = memories.collect();
        memories.sort_by_key(|(id, _)| *id);
        memories.dedup_by_key(|(id, _)| *id);
        let count = memories.len();
        if count > Self::MOST {
            let most = Self::MOST;
            return Err(Exception::new(
                "ValueError",
                format!("{count} tensors in one call, more than the limit of {most}"),
            ));
        }
        Ok(Self {
            memories,
            places: Vec::new(),
        })
    }

    /// Locks one memory after the other, and does something then.
    fn with_all(&mut self, body: &mut dyn FnMut(&Self)) -> Result<(), Exception> {
        let Some(&(_, memory)) = self.memories.get(self.places.len()) else {
            body(self);
            return Ok(());
        };
        if let Some(own) = own(memory) {
            let (memory, ahead) = own.memory();
            let (_guard, place) = memory.lock().map_err(exception)?;
            self.places.push(place.wrapping_add(ahead));
            return self.with_all(body);
        }
        let mut rest = Ok(());
        memory.write(0..memory.nbytes(), &mut |bytes| {
            self.places.push(bytes.as_mut_ptr());
            rest = self.with_all(body);
        })?;
        rest
    }

    /// For each argument that is a tensor the view of it. All memory is locked.
    fn views<'v>(
        &self,
        args: &'v [rpc_session::Arg<'_>],
    ) -> Result<Vec<Option<TensorView<'v>>>, Exception> {
        let views = args.iter().map(|arg| match arg {
            rpc_session::Arg::Tensor(tensor) => self.view(tensor).map(Some),
            _ => Ok(None),
        });
        views.collect()
    }

    fn view<'v>(&self, tensor: &'v LocalTensor) -> Result<TensorView<'v>, Exception> {
        let start = tensor.byte_offset();
        let id = tensor.memory_id();
        let at = self.memories.binary_search_by_key(&id, |(id, _)| *id);
        let place = at.ok().and_then(|at| self.places.get(at).copied());
        let place = place.ok_or_else(|| Exception::runtime("a tensor that was not lent"))?;
        // Addresses of other devices may be anything: nothing can be added to them.
        let (place, offset) = match tensor.memory().is_host() {
            true => (place.wrapping_add(start), 0),
            false => (place, start as u64),
        };
        // SAFETY: the tensor is inside its memory, which is there and locked while this is lent.
        Ok(unsafe {
            TensorView::of_raw(
                place.cast(),
                tensor.device(),
                offset,
                tensor.shape(),
                tensor.dtype(),
            )
        })
    }
}

/// The memory, if it is the runtime's.
pub(super) fn own(memory: &dyn DeviceMemory) -> Option<&Allocated> {
    let memory: &dyn Any = memory;
    memory.downcast_ref()
}

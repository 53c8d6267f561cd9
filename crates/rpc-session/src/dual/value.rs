//! What goes into a call and what comes out.

use std::sync::Arc;

use rpc_proto::{DataType, Device, HandleKind, Returned, Value, Values};

use super::context::Context;
use super::function::Function;
use super::module::Module;
use super::tensor::Tensor;
use crate::SessionError;
use crate::freed::Freed;

/// A handle of the server's, freed when the last holder drops it.
#[derive(Debug)]
pub(in super::super) struct Handle {
    pub(in super::super) context: Arc<Context>,
    pub(in super::super) raw: u64,
    kind: HandleKind,
}

impl Handle {
    pub(in super::super) fn new(context: &Arc<Context>, raw: u64, kind: HandleKind) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::clone(context),
            raw,
            kind,
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.raw != 0 {
            self.context.link.free(Freed::Handle {
                handle: self.raw,
                kind: self.kind,
            });
        }
    }
}

/// An object of the server's that is neither function, module nor tensor: a shape, an array, a map…
///
/// It means something to functions of the server only. It is freed there when the last clone is
/// dropped.
#[derive(Debug, Clone)]
pub struct Object {
    pub(in super::super) handle: Arc<Handle>,
    type_index: i64,
}

impl Object {
    /// The server's number for the type of the object. Numbers from 128 on differ from process to
    /// process.
    #[must_use]
    pub fn type_index(&self) -> i64 {
        self.type_index
    }
}

/// One argument of a call; [`args!`](crate::args) makes them of plain values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Argument<'a> {
    /// A plain value.
    Value(Value<'a>),
    /// A tensor of this session.
    Tensor(&'a Tensor),
    /// A function of this session.
    Function(&'a Function),
    /// A module of this session.
    Module(&'a Module),
    /// Another object of this session.
    Object(&'a Object),
}

macro_rules! argument_from_value {
    ($($type:ty),* $(,)?) => {
        $(impl<'a> From<$type> for Argument<'a> {
            fn from(value: $type) -> Self {
                Self::Value(value.into())
            }
        })*
    };
}

argument_from_value!(
    (),
    bool,
    i32,
    i64,
    u32,
    f32,
    f64,
    &'a str,
    String,
    &'a [u8],
    Vec<u8>
);
argument_from_value!(Device, DataType);

impl<'a> From<&'a String> for Argument<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

impl<'a> From<&'a Vec<u8>> for Argument<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Argument<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        bytes.as_slice().into()
    }
}

macro_rules! argument_from_handle {
    ($($type:ident),*) => {
        $(impl<'a> From<&'a $type> for Argument<'a> {
            fn from(handle: &'a $type) -> Self {
                Self::$type(handle)
            }
        })*
    };
}

argument_from_handle!(Tensor, Function, Module, Object);

/// The arguments as they are sent. What belongs to another session is refused.
pub(in super::super) fn pack<'v>(
    context: &Arc<Context>,
    args: &'v [Argument<'v>],
) -> Result<Values<'v>, SessionError> {
    let pack = |(index, arg): (usize, &'v Argument<'v>)| {
        let (owner, kind, value) = match arg {
            Argument::Value(value) => return Ok(value.as_borrowed()),
            Argument::Tensor(tensor) => (
                tensor.context(),
                "a tensor",
                Value::Tensor(tensor.as_view().clone()),
            ),
            Argument::Function(function) => {
                let handle = function.handle();
                (&handle.context, "a function", Value::Function(handle.raw))
            }
            Argument::Module(module) => {
                let handle = module.handle();
                (&handle.context, "a module", Value::Module(handle.raw))
            }
            Argument::Object(object) => (
                &object.handle.context,
                "an object",
                Value::Object(object.handle.raw),
            ),
        };
        if Arc::ptr_eq(owner, context) {
            Ok(value)
        } else {
            Err(SessionError::ForeignHandle {
                argument: format!("argument {index}, {kind},"),
            })
        }
    };
    args.iter().enumerate().map(pack).collect()
}

/// What a function gave back. `try_into` takes the value of an expected type out of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Output {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A data type.
    DataType(DataType),
    /// A device.
    Device(Device),
    /// An address that means something to the server only.
    Pointer(u64),
    /// A tensor.
    Tensor(Tensor),
    /// A function.
    Function(Function),
    /// A module.
    Module(Module),
    /// Another object.
    Object(Object),
}

impl Output {
    pub(in super::super) fn new(context: &Arc<Context>, returned: Returned<'static>) -> Self {
        let object = |type_index, raw| {
            Self::Object(Object {
                handle: Handle::new(context, raw, HandleKind::Object),
                type_index,
            })
        };
        match returned {
            Returned::Value(Value::Bool(value)) => Self::Bool(value),
            Returned::Value(Value::Int(value)) => Self::Int(value),
            Returned::Value(Value::Float(value)) => Self::Float(value),
            Returned::Value(Value::Str(text)) => Self::Str(text.into_owned()),
            Returned::Value(Value::Bytes(bytes)) => Self::Bytes(bytes.into_owned()),
            Returned::Value(Value::DataType(dtype)) => Self::DataType(dtype),
            Returned::Value(Value::Device(device)) => Self::Device(device),
            Returned::Value(Value::Pointer(address)) => Self::Pointer(address),
            Returned::Value(Value::Function(raw)) => Self::Function(Function::new(Handle::new(
                context,
                raw,
                HandleKind::Function,
            ))),
            Returned::Value(Value::Module(raw)) => {
                Self::Module(Module::new(Handle::new(context, raw, HandleKind::Module)))
            }
            Returned::Value(Value::Object(raw)) => object(0, raw),
            Returned::Object { type_index, handle } => object(type_index, handle),
            Returned::Tensor { tensor, handle } => {
                Self::Tensor(Tensor::returned(context, tensor, handle))
            }
            _ => Self::None,
        }
    }

    /// What it is, in words, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Str(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::DataType(_) => "a data type",
            Self::Device(_) => "a device",
            Self::Pointer(_) => "a pointer",
            Self::Tensor(_) => "a tensor",
            Self::Function(_) => "a function",
            Self::Module(_) => "a module",
            Self::Object(_) => "an object",
        }
    }
}

macro_rules! output_into {
    ($($variant:ident($type:ty) $expected:literal;)*) => {
        $(impl TryFrom<Output> for $type {
            type Error = SessionError;

            fn try_from(output: Output) -> Result<Self, SessionError> {
                match output {
                    Output::$variant(value) => Ok(value),
                    other => Err(SessionError::WrongType {
                        expected: $expected,
                        found: other.kind(),
                    }),
                }
            }
        })*
    };
}

output_into! {
    Bool(bool) "a bool";
    Int(i64) "an integer";
    Float(f64) "a float";
    Str(String) "a text";
    Bytes(Vec<u8>) "bytes";
    DataType(DataType) "a data type";
    Device(Device) "a device";
    Tensor(Tensor) "a tensor";
    Function(Function) "a function";
    Module(Module) "a module";
    Object(Object) "an object";
}

impl TryFrom<Output> for () {
    type Error = SessionError;

    fn try_from(output: Output) -> Result<Self, SessionError> {
        match output {
            Output::None => Ok(()),
            other => Err(SessionError::WrongType {
                expected: "nothing",
                found: other.kind(),
            }),
        }
    }
}

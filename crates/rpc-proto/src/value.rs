//! Packed values: what a function takes and gives.

use std::borrow::Cow;
use std::ops::Deref;

use smallvec::SmallVec;

use crate::{DataType, Device};

/// The size of a tensor in each dimension, outermost first. Up to four dimensions take no heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Shape(SmallVec<[i64; 4]>);

impl Shape {
    /// Elements of a tensor of this shape (1 for no dimensions), or `None` when a dimension is
    /// negative or the product is above 64 bits.
    #[must_use]
    pub fn elements(&self) -> Option<u64> {
        let sizes = self.iter().map(|&size| u64::try_from(size).ok());
        if self.contains(&0) {
            return sizes.collect::<Option<Vec<_>>>().map(|_| 0);
        }
        sizes
            .into_iter()
            .try_fold(1_u64, |product, size| product.checked_mul(size?))
    }

    /// Bytes of a tensor of this shape with such elements, or `None` when it has no such size.
    #[must_use]
    pub fn nbytes(&self, dtype: DataType) -> Option<u64> {
        dtype.bytes_of(self.elements()?)
    }
}

impl Deref for Shape {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.0
    }
}

impl From<&[i64]> for Shape {
    fn from(sizes: &[i64]) -> Self {
        Self(SmallVec::from_slice(sizes))
    }
}

impl FromIterator<i64> for Shape {
    fn from_iter<I: IntoIterator<Item = i64>>(sizes: I) -> Self {
        Self(sizes.into_iter().collect())
    }
}

/// A tensor as a packet describes it: where it lies at the peer and how to read it.
///
/// Tensors on the wire are dense and in row-major order; they have no strides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorView {
    /// The peer's address of the memory; 0 where there is none yet.
    pub data: u64,
    /// The device that holds it.
    pub device: Device,
    /// Type of the elements.
    pub dtype: DataType,
    /// Sizes.
    pub shape: Shape,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

impl TensorView {
    /// Bytes of all elements, or `None` when the shape has no such size.
    #[must_use]
    pub fn nbytes(&self) -> Option<u64> {
        self.shape.nbytes(self.dtype)
    }
}

/// One packed value. Text and bytes are borrowed from the message or owned.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Nothing.
    None,
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A float.
    Float(f64),
    /// An address of the peer: data, a stream, or in answers a handle. 0 is null.
    Pointer(u64),
    /// A data type.
    DataType(DataType),
    /// A device.
    Device(Device),
    /// A tensor of the peer.
    Tensor(TensorView),
    /// Text.
    Str(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// Handle of a function of the peer.
    Function(u64),
    /// Handle of a module of the peer.
    Module(u64),
    /// Handle of another object of the peer.
    Object(u64),
}

/// A packed value that borrows nothing.
pub type OwnedValue = Value<'static>;

impl Value<'_> {
    /// The same value, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> OwnedValue {
        match self {
            Value::None => Value::None,
            Value::Int(value) => Value::Int(value),
            Value::Bool(value) => Value::Bool(value),
            Value::Float(value) => Value::Float(value),
            Value::Pointer(address) => Value::Pointer(address),
            Value::DataType(dtype) => Value::DataType(dtype),
            Value::Device(device) => Value::Device(device),
            Value::Tensor(tensor) => Value::Tensor(tensor),
            Value::Str(text) => Value::Str(Cow::Owned(text.into_owned())),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Value::Function(handle) => Value::Function(handle),
            Value::Module(handle) => Value::Module(handle),
            Value::Object(handle) => Value::Object(handle),
        }
    }

    /// The same value, borrowing text and bytes from this one.
    #[must_use]
    pub fn as_borrowed(&self) -> Value<'_> {
        match self {
            Value::Str(text) => Value::Str(Cow::Borrowed(text)),
            Value::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
            Value::None => Value::None,
            Value::Int(value) => Value::Int(*value),
            Value::Bool(value) => Value::Bool(*value),
            Value::Float(value) => Value::Float(*value),
            Value::Pointer(address) => Value::Pointer(*address),
            Value::DataType(dtype) => Value::DataType(*dtype),
            Value::Device(device) => Value::Device(*device),
            Value::Tensor(tensor) => Value::Tensor(tensor.clone()),
            Value::Function(handle) => Value::Function(*handle),
            Value::Module(handle) => Value::Module(*handle),
            Value::Object(handle) => Value::Object(*handle),
        }
    }

    /// What kind of value this is, in words, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "none",
            Value::Int(_) => "an integer",
            Value::Bool(_) => "a bool",
            Value::Float(_) => "a float",
            Value::Pointer(_) => "a pointer",
            Value::DataType(_) => "a data type",
            Value::Device(_) => "a device",
            Value::Tensor(_) => "a tensor",
            Value::Str(_) => "a text",
            Value::Bytes(_) => "bytes",
            Value::Function(_) => "a function",
            Value::Module(_) => "a module",
            Value::Object(_) => "an object",
        }
    }
}

macro_rules! value_from {
    ($($type:ty => $variant:ident($name:ident) $convert:expr;)*) => {$(
        impl From<$type> for Value<'_> {
            fn from($name: $type) -> Self {
                Value::$variant($convert)
            }
        }
    )*};
}

value_from! {
    i64 => Int(value) value;
    i32 => Int(value) value.into();
    u32 => Int(value) value.into();
    bool => Bool(value) value;
    f64 => Float(value) value;
    f32 => Float(value) value.into();
    DataType => DataType(value) value;
    Device => Device(value) value;
    TensorView => Tensor(value) value;
    String => Str(value) Cow::Owned(value);
    Vec<u8> => Bytes(value) Cow::Owned(value);
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Str(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<()> for Value<'_> {
    fn from((): ()) -> Self {
        Value::None
    }
}

/// What a call gave back.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Returned<'a> {
    /// A plain value. Its handles, if it has one, are the receiver's to free.
    Value(Value<'a>),
    /// An object with the number of its type at the peer. The receiver frees the handle.
    Object {
        /// The peer's number for the type; some differ from process to process.
        type_index: i64,
        /// The handle.
        handle: u64,
    },
    /// A tensor. The receiver frees `handle`, never `tensor.data`.
    Tensor {
        /// Where the elements are.
        tensor: TensorView,
        /// The handle of the object that owns them; 0 when nothing needs to be freed.
        handle: u64,
    },
}

impl Returned<'_> {
    /// The same result, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Returned<'static> {
        match self {
            Returned::Value(value) => Returned::Value(value.into_owned()),
            Returned::Object { type_index, handle } => Returned::Object { type_index, handle },
            Returned::Tensor { tensor, handle } => Returned::Tensor { tensor, handle },
        }
    }

    /// The handle that the receiver has to free.
    #[must_use]
    pub fn handle(&self) -> Option<u64> {
        match *self {
            Returned::Value(Value::Function(handle) | Value::Module(handle))
            | Returned::Value(Value::Object(handle))
            | Returned::Object { handle, .. }
            | Returned::Tensor { handle, .. } => Some(handle).filter(|&handle| handle != 0),
            Returned::Value(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_shapes() {
        let elements = |sizes: &[i64]| Shape::from(sizes).elements();
        assert_eq!(elements(&[]), Some(1));
        assert_eq!(elements(&[2, 3]), Some(6));
        assert_eq!(elements(&[i64::MAX, i64::MAX, 0]), Some(0));
        assert_eq!(elements(&[0, -1]), None);
        assert_eq!(elements(&[-1]), None);
        assert_eq!(elements(&[i64::MAX, 3]), None);
    }
}

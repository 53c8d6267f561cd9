//! What goes into functions and comes out of them.

use std::ffi::{CStr, c_char};

use rpc_proto::{DataType, Device, DeviceType, TypeCode};

use crate::abi::{Any, ByteArray, DlTensor, index};
use crate::error::Error;
use crate::library::symbols;
use crate::memory::Lease;
use crate::object::{Object, bytes_of};
use crate::tensor::Tensor;
use crate::view::TensorView;

/// An argument of a function.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Arg<'a> {
    /// Nothing.
    None,
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A number with a fraction.
    Float(f64),
    /// An address that means nothing to the caller.
    Pointer(u64),
    /// A data type.
    DataType(DataType),
    /// A device.
    Device(Device),
    /// A text.
    Str(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A tensor that is lent for the call.
    Tensor(&'a TensorView<'a>),
    /// An object: a function, a module or another one.
    Object(&'a Object),
}

/// The result of a function.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value {
    /// Nothing.
    None,
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A number with a fraction.
    Float(f64),
    /// An address that means nothing to the caller.
    Pointer(u64),
    /// A data type.
    DataType(DataType),
    /// A device.
    Device(Device),
    /// A text. What is no UTF-8 in it was replaced.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A tensor.
    Tensor(Tensor),
    /// An object: a function, a module or another one.
    Object(Object),
}

impl From<i64> for Arg<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Arg<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Arg<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(value: &'a str) -> Self {
        Self::Str(value)
    }
}

impl<'a> From<&'a Object> for Arg<'a> {
    fn from(value: &'a Object) -> Self {
        Self::Object(value)
    }
}

/// Arguments as the runtime takes them, and what they point to.
pub(crate) struct Packed<'a> {
    views: Vec<Any>,
    /// Texts, of which the views are.
    texts: Vec<Any>,
    /// Where bytes are; the views point here, so that it must not move.
    arrays: Vec<ByteArray>,
    _args: std::marker::PhantomData<&'a ()>,
}

impl<'a> Packed<'a> {
    pub(crate) fn new(args: &[Arg<'a>]) -> Result<Self, Error> {
        let bytes = args.iter().filter_map(|arg| match arg {
            Arg::Bytes(bytes) => Some(ByteArray::of(bytes)),
            _ => None,
        });
        let mut packed = Self {
            views: Vec::with_capacity(args.len()),
            texts: Vec::new(),
            arrays: bytes.collect(),
            _args: std::marker::PhantomData,
        };
        let mut next_bytes = 0;
        for arg in args {
            let view = match *arg {
                Arg::None => Any::NONE,
                Arg::Int(value) => Any::new(index::INT, value.cast_unsigned()),
                Arg::Bool(value) => Any::new(index::BOOL, value.into()),
                Arg::Float(value) => Any::new(index::FLOAT, value.to_bits()),
                Arg::Pointer(value) => Any::new(index::POINTER, value),
                Arg::DataType(value) => Any::new(index::DATA_TYPE, data_type_bits(value)),
                Arg::Device(value) => Any::new(index::DEVICE, device_bits(value)),
                Arg::Object(object) => Any::new(object.type_index(), object.as_raw() as u64),
                Arg::Tensor(view) => Any::new(index::TENSOR_VIEW, view.as_raw() as u64),
                Arg::Str(text) => packed.text(text)?,
                Arg::Bytes(_) => {
                    let array: *const ByteArray = &raw const packed.arrays[next_bytes];
                    next_bytes += 1;
                    Any::new(index::BYTES_VIEW, array as u64)
                }
            };
            packed.views.push(view);
        }
        Ok(packed)
    }

    fn text(&mut self, text: &str) -> Result<Any, Error> {
        let owned = made(symbols().new_str, text.as_bytes())?;
        self.texts.push(owned);
        Ok(owned)
    }

    pub(crate) fn views(&mut self) -> &mut [Any] {
        &mut self.views
    }
}

impl Drop for Packed<'_> {
    fn drop(&mut self) {
        for text in self.texts.drain(..) {
            if text.index >= index::OBJECT {
                // SAFETY: it was made by `text`, is owned here, and its kind is that of an object.
                drop(unsafe { Object::from_raw(text.bits as *mut _) });
            }
        }
    }
}

impl Value {
    /// Takes over a value.
    ///
    /// # Safety
    /// The runtime has made it, and the caller owns it and gives it away.
    pub(crate) unsafe fn from_owned(any: Any) -> Result<Self, Error> {
        if any.index >= index::OBJECT {
            // SAFETY: values of these kinds are references, and this one is given away by the caller.
            let object = unsafe { Object::from_raw(any.bits as *mut _) };
            return object.map_or(Ok(Self::None), Self::of_object);
        }
        // SAFETY: the caller's word. What is owned and no object points to nothing.
        unsafe { Self::from_view(&any, &Lease::default()) }
    }

    /// A copy of a value that stays another's; of an object, another reference. A tensor that is lent can be
    /// used until `lease` ends.
    ///
    /// # Safety
    /// The runtime has made it, and what it points to is there; a tensor until the lease ends.
    pub(crate) unsafe fn from_view(any: &Any, lease: &Lease) -> Result<Self, Error> {
        if any.index >= index::OBJECT || any.index == index::MOVED {
            let mut owned = Any::NONE;
            // SAFETY: `any` is a value of the runtime, and `owned` a place for one.
            return match unsafe { (symbols().to_owned)(any, &mut owned) } {
                // SAFETY: it was just made for us.
                0 => unsafe { Self::from_owned(owned) },
                _ => Err(Error::take()),
            };
        }
        let small = || {
            let len = any.small_len.min(7) as usize;
            any.bits.to_ne_bytes()[..len].to_vec()
        };
        Ok(match any.index {
            index::INT => Self::Int(any.bits.cast_signed()),
            index::BOOL => Self::Bool(any.bits != 0),
            index::FLOAT => Self::Float(f64::from_bits(any.bits)),
            index::POINTER => Self::Pointer(any.bits),
            index::DATA_TYPE => Self::DataType(data_type(any.bits)),
            index::DEVICE => Self::Device(device(any.bits)),
            index::SMALL_STR => Self::Str(String::from_utf8_lossy(&small()).into_owned()),
            index::SMALL_BYTES => Self::Bytes(small()),
            index::RAW_STR if any.bits != 0 => {
                // SAFETY: it points to a text that ends with a NUL.
                let text = unsafe { CStr::from_ptr(any.bits as *const c_char) };
                Self::Str(text.to_string_lossy().into_owned())
            }
            index::BYTES_VIEW if any.bits != 0 => {
                // SAFETY: it points to where the bytes are, which are there.
                let bytes = unsafe { bytes_of(&*(any.bits as *const ByteArray)) };
                Self::Bytes(bytes.to_vec())
            }
            index::TENSOR_VIEW if any.bits != 0 => {
                // SAFETY: it points to a tensor, which is there as long as the caller says.
                let tensor = unsafe { Tensor::lent(&*(any.bits as *const DlTensor), lease) };
                Self::Tensor(tensor?)
            }
            index::NONE | index::RAW_STR | index::BYTES_VIEW | index::TENSOR_VIEW => Self::None,
            kind => {
                let message = format!("a value of the unknown kind {kind}");
                return Err(Error::new("TypeError", message));
            }
        })
    }

    /// The value as the runtime takes it, which owns it from then on.
    pub(crate) fn into_owned(self) -> Result<Any, Error> {
        let view = match self {
            Self::None => Any::NONE,
            Self::Int(value) => Any::new(index::INT, value.cast_unsigned()),
            Self::Bool(value) => Any::new(index::BOOL, value.into()),
            Self::Float(value) => Any::new(index::FLOAT, value.to_bits()),
            Self::Pointer(value) => Any::new(index::POINTER, value),
            Self::DataType(value) => Any::new(index::DATA_TYPE, data_type_bits(value)),
            Self::Device(value) => Any::new(index::DEVICE, device_bits(value)),
            Self::Object(object) => Any::new(object.type_index(), object.into_raw() as u64),
            Self::Tensor(tensor) => {
                let object = tensor.into_object()?;
                Any::new(object.type_index(), object.into_raw() as u64)
            }
            Self::Str(text) => return made(symbols().new_str, text.as_bytes()),
            Self::Bytes(bytes) => return made(symbols().new_bytes, &bytes),
        };
        Ok(view)
    }

    fn of_object(object: Object) -> Result<Self, Error> {
        Ok(match (object.type_index(), object.bytes()) {
            (index::STR, Some(text)) => Self::Str(String::from_utf8_lossy(text).into_owned()),
            (index::BYTES, Some(bytes)) => Self::Bytes(bytes.to_vec()),
            (index::TENSOR, _) => Self::Tensor(Tensor::of_object(object)?),
            _ => Self::Object(object),
        })
    }
}

/// A text or bytes that the runtime has made of these.
fn made(
    make: unsafe extern "C" fn(*const ByteArray, *mut Any) -> std::ffi::c_int,
    bytes: &[u8],
) -> Result<Any, Error> {
    let mut owned = Any::NONE;
    // SAFETY: the bytes are copied during the call, and `owned` is a place for a value.
    match unsafe { make(&ByteArray::of(bytes), &mut owned) } {
        0 => Ok(owned),
        _ => Err(Error::take()),
    }
}

fn data_type_bits(dtype: DataType) -> u64 {
    let [low, high] = dtype.lanes.to_ne_bytes();
    u64::from_ne_bytes([dtype.code.0, dtype.bits, low, high, 0, 0, 0, 0])
}

fn data_type(bits: u64) -> DataType {
    let [code, bits, low, high, ..] = bits.to_ne_bytes();
    DataType {
        code: TypeCode(code),
        bits,
        lanes: u16::from_ne_bytes([low, high]),
    }
}

fn device_bits(device: Device) -> u64 {
    let [a, b, c, d] = device.device_type.0.to_ne_bytes();
    let [e, f, g, h] = device.id.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn device(bits: u64) -> Device {
    let [a, b, c, d, e, f, g, h] = bits.to_ne_bytes();
    Device {
        device_type: DeviceType(i32::from_ne_bytes([a, b, c, d])),
        id: i32::from_ne_bytes([e, f, g, h]),
    }
}

#[cfg(all(test, feature = "interop"))]
mod tests {
    use super::*;
    use crate::{Place, Runtime};

    fn view(any: Any) -> Result<Value, Error> {
        // SAFETY: the values of these tests are such as the runtime makes, and live as long as the call.
        unsafe { Value::from_view(&any, &Lease::default()) }
    }

    #[test]
    fn a_reference_that_is_given_away_is_taken() {
        let runtime = Runtime::load(&Place::Auto).unwrap();
        let function = runtime.new_function(|_| Ok(Value::Int(7))).unwrap();
        let mut place = function.object().clone().into_raw();
        let moved = Any::new(index::MOVED, (&raw mut place) as u64);
        let Value::Object(taken) = view(moved).unwrap() else {
            panic!("no object")
        };
        assert!(place.is_null());
        let called = crate::Function::try_from(taken).unwrap().call(&[]);
        assert!(matches!(called.unwrap(), Value::Int(7)));
        assert!(view(moved).unwrap_err().message.contains("moved"));
    }

    #[test]
    fn views_of_texts_and_bytes_are_copied() {
        Runtime::load(&Place::Auto).unwrap();
        let text = view(Any::new(index::RAW_STR, c"gr\xff".as_ptr() as u64));
        assert!(matches!(text.unwrap(), Value::Str(text) if text == "gr\u{fffd}"));
        let array = ByteArray::of(b"a\0b");
        let bytes = view(Any::new(index::BYTES_VIEW, (&raw const array) as u64));
        assert!(matches!(bytes.unwrap(), Value::Bytes(bytes) if bytes == b"a\0b"));
        for kind in [index::RAW_STR, index::BYTES_VIEW, index::TENSOR_VIEW] {
            assert!(matches!(view(Any::new(kind, 0)).unwrap(), Value::None));
        }
    }

    #[test]
    fn text_that_is_no_utf_8_is_replaced() {
        Runtime::load(&Place::Auto).unwrap();
        for (bytes, text) in [
            (&b"\xff"[..], "\u{fffd}"),
            (b"more than seven \xc3\0", "more than seven \u{fffd}\0"),
        ] {
            let owned = made(symbols().new_str, bytes).unwrap();
            // SAFETY: it was just made for us.
            let value = unsafe { Value::from_owned(owned) }.unwrap();
            assert!(matches!(value, Value::Str(found) if found == text));
        }
    }

    #[test]
    fn unknown_kinds_are_errors() {
        for kind in [-1, 13, 63] {
            assert_eq!(view(Any::new(kind, 0)).unwrap_err().kind, "TypeError");
        }
    }
}

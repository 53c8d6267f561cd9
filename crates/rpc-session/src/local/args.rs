//! What a typed function takes of a packed argument.

use std::borrow::Cow;

use rpc_proto::{DataType, Device};

use super::{Arg, LocalFunction, LocalModule, LocalObject, LocalTensor, LocalValue};

/// A type that a local function can take as an argument.
///
/// `&str` and `&[u8]` are borrowed from the request, whatever their lifetime in the type is called.
///
/// ```
/// use std::borrow::Cow;
/// use rpc_session::{Arg, FromArg, LocalFunction};
///
/// struct Even(i64);
///
/// impl FromArg for Even {
///     type Item<'a> = Self;
///
///     fn expected() -> Cow<'static, str> {
///         "an even integer".into()
///     }
///
///     fn from_arg<'a>(arg: &Arg<'a>) -> Option<Self> {
///         i64::from_arg(arg).filter(|x| x % 2 == 0).map(Self)
///     }
/// }
///
/// let half = LocalFunction::new("half", |x: Even| x.0 / 2);
/// assert_eq!(half.call(&[8.into()]).unwrap().get::<i64>().unwrap(), 4);
/// assert!(half.call(&[7.into()]).unwrap_err().message().contains("an even integer"));
/// ```
pub trait FromArg {
    /// The type, with the lifetime of the request.
    type Item<'a>;

    /// What it takes, in words, for messages.
    fn expected() -> Cow<'static, str>;

    /// The argument as this type, if it is one.
    fn from_arg<'a>(arg: &Arg<'a>) -> Option<Self::Item<'a>>;
}

macro_rules! from_arg {
    ($($type:ty, $expected:literal, $($pattern:pat => $value:expr),+;)*) => {$(
        impl FromArg for $type {
            type Item<'a> = $type;

            fn expected() -> Cow<'static, str> {
                $expected.into()
            }

            fn from_arg<'a>(arg: &Arg<'a>) -> Option<$type> {
                match arg {
                    $($pattern => $value,)+
                    _ => None,
                }
            }
        }
    )*};
}

// Peers of the legacy dialect send truth values as integers, and a client that computes a float in a
// language without types sends an integer now and then.
from_arg! {
    i64, "an integer", Arg::Int(value) => Some(*value), Arg::Bool(value) => Some((*value).into());
    bool, "a bool", Arg::Bool(value) => Some(*value), Arg::Int(value) => Some(*value != 0);
    f64, "a float", Arg::Float(value) => Some(*value), Arg::Int(value) => Some(as_float(*value));
    f32, "a float", Arg::Float(value) => Some(narrowed(*value)), Arg::Int(value) => Some(narrowed(as_float(*value)));
    String, "a text", Arg::Str(text) => Some((*text).to_owned());
    Vec<u8>, "bytes", Arg::Bytes(bytes) => Some((*bytes).to_owned());
    DataType, "a data type", Arg::DataType(dtype) => Some(*dtype), Arg::Str(text) => text.parse().ok();
    Device, "a device", Arg::Device(device) => Some(*device);
    LocalTensor, "a tensor", Arg::Tensor(tensor) => Some(tensor.clone());
    LocalFunction, "a function", Arg::Function(function) => Some(function.clone());
    LocalModule, "a module", Arg::Module(module) => Some(module.clone());
    LocalObject, "an object", Arg::Object(object) => Some(object.clone());
}

macro_rules! from_integer {
    ($($type:ty),*) => {$(
        impl FromArg for $type {
            type Item<'a> = $type;

            fn expected() -> Cow<'static, str> {
                format!("an integer from {} to {}", <$type>::MIN, <$type>::MAX).into()
            }

            fn from_arg<'a>(arg: &Arg<'a>) -> Option<$type> {
                i64::from_arg(arg)?.try_into().ok()
            }
        }
    )*};
}

from_integer!(i8, i16, i32, isize, u8, u16, u32, u64, usize);

impl FromArg for &str {
    type Item<'a> = &'a str;

    fn expected() -> Cow<'static, str> {
        "a text".into()
    }

    fn from_arg<'a>(arg: &Arg<'a>) -> Option<&'a str> {
        match arg {
            Arg::Str(text) => Some(text),
            _ => None,
        }
    }
}

impl FromArg for &[u8] {
    type Item<'a> = &'a [u8];

    fn expected() -> Cow<'static, str> {
        "bytes".into()
    }

    fn from_arg<'a>(arg: &Arg<'a>) -> Option<&'a [u8]> {
        match arg {
            Arg::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Nothing, or a value.
impl<T: FromArg> FromArg for Option<T> {
    type Item<'a> = Option<T::Item<'a>>;

    fn expected() -> Cow<'static, str> {
        format!("{} or none", T::expected()).into()
    }

    fn from_arg<'a>(arg: &Arg<'a>) -> Option<Self::Item<'a>> {
        match arg {
            Arg::None => Some(None),
            arg => T::from_arg(arg).map(Some),
        }
    }
}

/// Any value.
impl FromArg for LocalValue {
    type Item<'a> = Self;

    fn expected() -> Cow<'static, str> {
        "a value".into()
    }

    fn from_arg<'a>(arg: &Arg<'a>) -> Option<Self> {
        Some(arg.clone().into())
    }
}

/// What an argument is, where something else was expected: its kind, or the value of an integer, which
/// may be out of bounds.
pub(super) fn found(arg: &Arg<'_>) -> Cow<'static, str> {
    match arg {
        Arg::Int(value) => format!("the integer {value}").into(),
        other => other.kind().into(),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a float is asked for, so the nearest one"
)]
fn as_float(value: i64) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float of 32 bits is asked for, so the nearest one"
)]
fn narrowed(value: f64) -> f32 {
    value as f32
}

use rpc_proto::{DataType, Device};

use super::{Exception, FromArg, LocalFunction, LocalModule, LocalObject, LocalTensor};

/// A value that a local function gives, or is given by Rust code.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LocalValue {
    /// Nothing.
    None,
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
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
    /// An address that means something to the client only.
    Pointer(u64),
    /// A tensor.
    Tensor(LocalTensor),
    /// A function.
    Function(LocalFunction),
    /// A module.
    Module(LocalModule),
    /// Another object.
    Object(LocalObject),
}

/// An argument of a local function. Text and bytes are borrowed from the request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Arg<'a> {
    /// Nothing.
    None,
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A float.
    Float(f64),
    /// Text.
    Str(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A data type.
    DataType(DataType),
    /// A device.
    Device(Device),
    /// An address that means something to the client only.
    Pointer(u64),
    /// A tensor.
    Tensor(LocalTensor),
    /// A function.
    Function(LocalFunction),
    /// A module.
    Module(LocalModule),
    /// Another object.
    Object(LocalObject),
}

impl Arg<'_> {
    /// What kind of value this is, in words, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Int(_) => "an integer",
            Self::Bool(_) => "a bool",
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

impl LocalValue {
    /// The value as an argument, borrowing its text and bytes.
    #[must_use]
    pub fn as_arg(&self) -> Arg<'_> {
        match self {
            Self::None => Arg::None,
            Self::Int(value) => Arg::Int(*value),
            Self::Bool(value) => Arg::Bool(*value),
            Self::Float(value) => Arg::Float(*value),
            Self::Str(text) => Arg::Str(text),
            Self::Bytes(bytes) => Arg::Bytes(bytes),
            Self::DataType(dtype) => Arg::DataType(*dtype),
            Self::Device(device) => Arg::Device(*device),
            Self::Pointer(address) => Arg::Pointer(*address),
            Self::Tensor(tensor) => Arg::Tensor(tensor.clone()),
            Self::Function(function) => Arg::Function(function.clone()),
            Self::Module(module) => Arg::Module(module.clone()),
            Self::Object(object) => Arg::Object(object.clone()),
        }
    }

    /// The value as what it is expected to be.
    ///
    /// ```
    /// use rpc_session::LocalValue;
    ///
    /// let value = LocalValue::from("abc");
    /// assert_eq!(value.get::<&str>().unwrap(), "abc");
    /// assert_eq!(
    ///     value.get::<i64>().unwrap_err().to_string(),
    ///     "TypeError: expected an integer, found a text"
    /// );
    /// ```
    ///
    /// # Errors
    /// It is something else.
    pub fn get<T: FromArg>(&self) -> Result<T::Item<'_>, Exception> {
        let arg = self.as_arg();
        T::from_arg(&arg).ok_or_else(|| {
            let (expected, found) = (T::expected(), super::args::found(&arg));
            Exception::new("TypeError", format!("expected {expected}, found {found}"))
        })
    }
}

impl From<Arg<'_>> for LocalValue {
    fn from(arg: Arg<'_>) -> Self {
        match arg {
            Arg::None => Self::None,
            Arg::Int(value) => Self::Int(value),
            Arg::Bool(value) => Self::Bool(value),
            Arg::Float(value) => Self::Float(value),
            Arg::Str(text) => Self::Str(text.to_owned()),
            Arg::Bytes(bytes) => Self::Bytes(bytes.to_owned()),
            Arg::DataType(dtype) => Self::DataType(dtype),
            Arg::Device(device) => Self::Device(device),
            Arg::Pointer(address) => Self::Pointer(address),
            Arg::Tensor(tensor) => Self::Tensor(tensor),
            Arg::Function(function) => Self::Function(function),
            Arg::Module(module) => Self::Module(module),
            Arg::Object(object) => Self::Object(object),
        }
    }
}

macro_rules! local_value_from {
    ($($type:ty => $variant:ident($name:ident) $convert:expr;)*) => {$(
        impl From<$type> for LocalValue {
            fn from($name: $type) -> Self {
                Self::$variant($convert)
            }
        }
    )*};
}

local_value_from! {
    bool => Bool(value) value;
    i8 => Int(value) value.into();
    i16 => Int(value) value.into();
    i32 => Int(value) value.into();
    i64 => Int(value) value;
    u8 => Int(value) value.into();
    u16 => Int(value) value.into();
    u32 => Int(value) value.into();
    f32 => Float(value) value.into();
    f64 => Float(value) value;
    String => Str(text) text;
    &str => Str(text) text.to_owned();
    Vec<u8> => Bytes(bytes) bytes;
    &[u8] => Bytes(bytes) bytes.to_owned();
    DataType => DataType(dtype) dtype;
    Device => Device(device) device;
    LocalTensor => Tensor(tensor) tensor;
    LocalFunction => Function(function) function;
    LocalModule => Module(module) module;
    LocalObject => Object(object) object;
}

impl From<()> for LocalValue {
    fn from((): ()) -> Self {
        Self::None
    }
}

impl<T: Into<Self>> From<Option<T>> for LocalValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, T::into)
    }
}

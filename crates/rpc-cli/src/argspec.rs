//! The grammar of the arguments of `run`, and of where they go afterwards.
//!
//! ```text
//! argument = scalar                      see `scalar`
//!          | "@" FILE                    the tensor in a .npy file
//!          | DTYPE "[" [N {"," N}] "]" "=" source
//! source   = "random" | "zeros" | "ones" | "arange" | NUMBER | "@" FILE
//! output   = (INDEX | "ret") "=" FILE
//! ```

use std::path::PathBuf;
use std::str::FromStr;

use rpc_proto::{DataType, OwnedValue};

use crate::element::{ElementType, Number};
use crate::scalar::{self, ScalarError};

/// One argument of the function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ArgSpec {
    Scalar(OwnedValue),
    /// A tensor that is what a file holds.
    File(PathBuf),
    /// A tensor of this type and shape.
    Tensor {
        dtype: DataType,
        shape: Vec<i64>,
        source: Source,
    },
}

/// Where the elements of a tensor come from. Except for zeros and files, its type has numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// All bits zero, of whatever type.
    Zeros,
    /// The same number everywhere, one that fits the type.
    Constant(Number),
    /// 0, 1, 2, …
    Arange,
    Random,
    File(PathBuf),
}

/// A text that is no argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ArgSpecError {
    #[error(transparent)]
    Scalar(#[from] ScalarError),
    #[error(
        "expected a value (5, 1.5, true, none, \"text\" in quotes, device:cpu:0, dtype:float32), \
         @FILE.npy, or a tensor like 'float32[2,3]=random'"
    )]
    Unknown,
    #[error("no file is named behind the @")]
    NoFile,
    #[error(transparent)]
    DataType(#[from] rpc_proto::ParseDataTypeError),
    #[error("{found:?} is no size; a shape is like [2,3], or [] for a single element")]
    Size { found: String },
    #[error("no tensor of {dtype} has the shape {shape:?}")]
    TooLarge { dtype: DataType, shape: Vec<i64> },
    #[error(
        "{found:?} is no source of elements; expected random, zeros, ones, arange, a number or @FILE.npy"
    )]
    Source { found: String },
    #[error("{number} is no number of {dtype}")]
    Number { number: String, dtype: DataType },
    #[error("there are no numbers for {dtype}: only zeros and @FILE.npy")]
    NoNumbers { dtype: DataType },
}

impl FromStr for ArgSpec {
    type Err = ArgSpecError;

    fn from_str(text: &str) -> Result<Self, ArgSpecError> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Self::File(file(path)?));
        }
        if let Some(value) = scalar::parse(text)? {
            return Ok(Self::Scalar(value));
        }
        let (kind, source) = text.split_once('=').ok_or(ArgSpecError::Unknown)?;
        let shape_at = kind.rfind('[').ok_or(ArgSpecError::Unknown)?;
        let (dtype, shape) = kind.split_at(shape_at);
        let sizes = shape.strip_prefix('[').and_then(|s| s.strip_suffix(']'));
        let dtype = dtype.trim().parse()?;
        let shape = shape_of(sizes.ok_or(ArgSpecError::Unknown)?)?;
        if nbytes(dtype, &shape).is_none() {
            return Err(ArgSpecError::TooLarge { dtype, shape });
        }
        Ok(Self::Tensor {
            dtype,
            shape,
            source: source_of(source, dtype)?,
        })
    }
}

/// Bytes of a tensor; none if it has too many.
pub(crate) fn nbytes(dtype: DataType, shape: &[i64]) -> Option<usize> {
    let mut elements: u64 = 1;
    for size in shape {
        elements = elements.checked_mul(u64::try_from(*size).ok()?)?;
    }
    usize::try_from(dtype.bytes_of(elements)?).ok()
}

fn file(path: &str) -> Result<PathBuf, ArgSpecError> {
    match path {
        "" => Err(ArgSpecError::NoFile),
        path => Ok(path.into()),
    }
}

fn shape_of(sizes: &str) -> Result<Vec<i64>, ArgSpecError> {
    if sizes.trim().is_empty() {
        return Ok(Vec::new());
    }
    let size = |text: &str| match text.trim().parse() {
        Ok(size) if size >= 0 => Ok(size),
        _ => Err(ArgSpecError::Size {
            found: text.to_owned(),
        }),
    };
    sizes.split(',').map(size).collect()
}

fn source_of(text: &str, dtype: DataType) -> Result<Source, ArgSpecError> {
    if let Some(path) = text.strip_prefix('@') {
        return Ok(Source::File(file(path)?));
    }
    let number = match text {
        "zeros" => return Ok(Source::Zeros),
        "ones" => Some(Number::Int(1)),
        "true" | "false" if dtype == DataType::BOOL => Some(Number::Int((text == "true").into())),
        _ => Number::parse(text),
    };
    let source = match (text, number) {
        ("random", _) => Source::Random,
        ("arange", _) => Source::Arange,
        (_, Some(number)) => Source::Constant(number),
        _ => {
            return Err(ArgSpecError::Source {
                found: text.to_owned(),
            });
        }
    };
    let element = ElementType::of(dtype).ok_or(ArgSpecError::NoNumbers { dtype })?;
    match source {
        Source::Constant(number) if !element.push(number, &mut Vec::new()) => {
            Err(ArgSpecError::Number {
                number: text.to_owned(),
                dtype,
            })
        }
        source => Ok(source),
    }
}

/// What goes into a file after the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutSpec {
    pub(crate) target: Target,
    pub(crate) file: PathBuf,
}

/// Which tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The argument of this index, from 0.
    Argument(usize),
    /// What the function returns.
    Returned,
}

impl FromStr for OutSpec {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected INDEX=FILE.npy with the index of an argument, from 0, or ret=FILE.npy";
        let (target, file) = text.split_once('=').ok_or(EXPECTED)?;
        let target = match target {
            "ret" => Target::Returned,
            index => Target::Argument(index.parse().map_err(|_| EXPECTED)?),
        };
        match file {
            "" => Err(EXPECTED),
            file => Ok(Self {
                target,
                file: file.into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;

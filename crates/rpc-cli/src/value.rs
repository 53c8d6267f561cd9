//! Values that functions give back, for people and as JSON.

use std::fmt;

use anyhow::Result;
use rpc_session::blocking::{Output, Tensor};
use serde::{Serialize, Serializer};

use crate::element::Number;
use crate::tensor::LocalTensor;

/// Larger tensors are fetched only if somebody asks for their elements.
const LARGEST_PREVIEW: u64 = 16 << 20;
/// Elements of a tensor that are shown.
const SHOWN: usize = 8;

/// What a function returned. As JSON: `{"type": …, "value": …}`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
pub(crate) enum ReturnedValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    /// As JSON, hexadecimal digits.
    Bytes(#[serde(serialize_with = "as_hex")] Vec<u8>),
    Dtype(String),
    Device(String),
    Pointer(u64),
    Tensor(TensorSummary),
    /// What means something to the server only.
    Handle(&'static str),
}

impl ReturnedValue {
    /// Takes the value out of an output, and a look at it if it is a tensor.
    pub(crate) fn of(output: Output) -> Result<Self> {
        Ok(match output {
            Output::None => Self::None,
            Output::Bool(value) => Self::Bool(value),
            Output::Int(value) => Self::Int(value),
            Output::Float(value) => Self::Float(value),
            Output::Str(text) => Self::Str(text),
            Output::Bytes(bytes) => Self::Bytes(bytes),
            Output::DataType(dtype) => Self::Dtype(dtype.to_string()),
            Output::Device(device) => Self::Device(device.to_string()),
            Output::Pointer(address) => Self::Pointer(address),
            Output::Tensor(tensor) => Self::Tensor(TensorSummary::look_at(&tensor)?),
            other => Self::Handle(other.kind()),
        })
    }
}

impl fmt::Display for ReturnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => fmt::Debug::fmt(value, f),
            Self::Bytes(bytes) => match printable(bytes) {
                Some(text) => f.write_str(text),
                None => f.write_str(&hex(bytes)),
            },
            Self::Str(text) | Self::Dtype(text) | Self::Device(text) => f.write_str(text),
            Self::Pointer(address) => write!(f, "{address:#x}"),
            Self::Tensor(tensor) => tensor.fmt(f),
            Self::Handle(kind) => write!(f, "{kind} of the server"),
        }
    }
}

/// A look at a tensor.
#[derive(Debug, Serialize)]
pub(crate) struct TensorSummary {
    dtype: String,
    shape: Vec<i64>,
    /// None if the tensor is too large or its type has no numbers.
    #[serde(flatten)]
    numbers: Option<NumberSummary>,
}

/// Numbers that are not numbers count in the mean only. Of no numbers, there is nothing but `first`.
#[derive(Debug, Serialize)]
struct NumberSummary {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    first: Vec<Number>,
}

impl TensorSummary {
    /// Fetches the tensor, unless it is large, for a look at it.
    pub(crate) fn look_at(tensor: &Tensor) -> Result<Self> {
        if tensor.nbytes() <= LARGEST_PREVIEW {
            return Ok(Self::of(&LocalTensor::fetch(tensor)?));
        }
        Ok(Self {
            dtype: tensor.dtype().to_string(),
            shape: tensor.shape().to_vec(),
            numbers: None,
        })
    }

    pub(crate) fn of(tensor: &LocalTensor) -> Self {
        Self {
            dtype: tensor.dtype.to_string(),
            shape: tensor.shape.clone(),
            numbers: tensor.numbers().map(NumberSummary::of),
        }
    }
}

impl NumberSummary {
    fn of(numbers: impl Iterator<Item = Number>) -> Self {
        let (mut min, mut max, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0);
        let mut first = Vec::new();
        for number in numbers {
            let float = number.to_f64();
            min = min.min(float);
            max = max.max(float);
            sum += float;
            count += 1.0;
            if first.len() < SHOWN {
                first.push(number);
            }
        }
        let ordered = min <= max;
        Self {
            min: ordered.then_some(min),
            max: ordered.then_some(max),
            mean: (count > 0.0).then_some(sum / count),
            first,
        }
    }
}

impl fmt::Display for TensorSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)?;
        let Some(numbers) = &self.numbers else {
            return f.write_str(" (not fetched, or of a type without numbers)");
        };
        if let (Some(min), Some(max), Some(mean)) = (numbers.min, numbers.max, numbers.mean) {
            let [min, max, mean] = [min, max, mean].map(six_digits);
            write!(f, " min {min} max {max} mean {mean}")?;
        }
        let rounded = |number: &Number| match number {
            Number::Int(int) => int.to_string(),
            Number::Float(float) => six_digits(*float).to_string(),
        };
        let first: Vec<_> = numbers.first.iter().map(rounded).collect();
        let elements = self
            .shape
            .iter()
            .fold(1_i64, |n, size| n.saturating_mul(*size));
        let more = match usize::try_from(elements) {
            Ok(elements) if elements <= first.len() => "",
            _ => " …",
        };
        write!(f, " [{}{more}]", first.join(" "))
    }
}

/// Rounded to as many digits as a person wants to see; a float of 32 bits has no more anyway.
fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// The text in `bytes`, if it can be shown as it is.
fn printable(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let shown = |c: char| !c.is_control() || c == '\n' || c == '\t';
    text.chars().all(shown).then_some(text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn as_hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn floats(shape: &[i64], numbers: &[f32]) -> TensorSummary {
        TensorSummary::of(&LocalTensor {
            dtype: rpc_proto::DataType::FLOAT32,
            shape: shape.to_vec(),
            bytes: numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        })
    }

    #[test]
    fn values_for_people_and_for_programs() {
        for (value, text, document) in [
            (ReturnedValue::None, "none", json!({"type": "none"})),
            (
                ReturnedValue::Int(-1),
                "-1",
                json!({"type": "int", "value": -1}),
            ),
            (
                ReturnedValue::Float(2.0),
                "2.0",
                json!({"type": "float", "value": 2.0}),
            ),
            (
                ReturnedValue::Bytes(vec![0, 255]),
                "00ff",
                json!({"type": "bytes", "value": "00ff"}),
            ),
            (
                ReturnedValue::Bytes(b"a\n".to_vec()),
                "a\n",
                json!({"type": "bytes", "value": "610a"}),
            ),
            (
                ReturnedValue::Pointer(16),
                "0x10",
                json!({"type": "pointer", "value": 16}),
            ),
            (
                ReturnedValue::Handle("a module"),
                "a module of the server",
                json!({"type": "handle", "value": "a module"}),
            ),
        ] {
            assert_eq!(value.to_string(), text);
            assert_eq!(serde_json::to_value(&value).unwrap(), document);
        }
    }

    #[test]
    fn a_tensor_is_summed_up() {
        let summary = floats(&[2, 2], &[1.0, -2.0, 3.5, 0.5]);
        let text = "float32[2, 2] min -2 max 3.5 mean 0.75 [1 -2 3.5 0.5]";
        assert_eq!(summary.to_string(), text);
        let document = json!({
            "dtype": "float32", "shape": [2, 2],
            "min": -2.0, "max": 3.5, "mean": 0.75, "first": [1.0, -2.0, 3.5, 0.5],
        });
        assert_eq!(serde_json::to_value(&summary).unwrap(), document);
        let third = floats(&[1], &[1.0 / 3.0]).to_string();
        assert_eq!(
            third,
            "float32[1] min 0.333333 max 0.333333 mean 0.333333 [0.333333]"
        );
        let long = floats(&[9], &[1.0; 9]).to_string();
        assert_eq!(long, "float32[9] min 1 max 1 mean 1 [1 1 1 1 1 1 1 1 …]");
    }

    #[test]
    fn tensors_of_nothing_and_of_no_numbers() {
        assert_eq!(floats(&[0], &[]).to_string(), "float32[0] []");
        let summary = floats(&[2], &[f32::NAN, f32::NAN]);
        assert_eq!(summary.to_string(), "float32[2] [NaN NaN]");
    }
}

//! The numbers in tensors, as bytes of the little endian order that tensors have.

use std::fmt;

use half::{bf16, f16};
use rpc_proto::DataType;
use serde::Serialize;

use crate::scalar;

/// A number outside of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Number {
    /// Of an integer type, or a bool as 0 or 1. Holds every integer of 64 bits, with a sign or without.
    Int(i128),
    Float(f64),
}

impl Number {
    /// Reads an integer or a float.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if scalar::is_integer(text) {
            text.parse().ok().map(Self::Int)
        } else {
            scalar::float(text).map(Self::Float)
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a float is the nearest one, as everywhere"
    )]
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
        }
    }
}

/// An element type that numbers can be made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

/// Largest number that [`ElementType::random`] gives for integers: the largest that fits all of them.
const LARGEST_RANDOM: u8 = 127;

impl ElementType {
    /// The element type of `dtype`, unless there are no numbers for it here (vectors, floats of 8 bits,
    /// …).
    pub(crate) fn of(dtype: DataType) -> Option<Self> {
        Some(match dtype {
            DataType::BOOL => Self::Bool,
            DataType::INT8 => Self::I8,
            DataType::INT16 => Self::I16,
            DataType::INT32 => Self::I32,
            DataType::INT64 => Self::I64,
            DataType::UINT8 => Self::U8,
            DataType::UINT16 => Self::U16,
            DataType::UINT32 => Self::U32,
            DataType::UINT64 => Self::U64,
            DataType::FLOAT16 => Self::F16,
            DataType::BFLOAT16 => Self::Bf16,
            DataType::FLOAT32 => Self::F32,
            DataType::FLOAT64 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of one element.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// Appends `number`. False, and nothing is appended, if this type has no such number; floats are
    /// rounded.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "floats are rounded to the type"
    )]
    pub(crate) fn push(self, number: Number, bytes: &mut Vec<u8>) -> bool {
        let float = number.to_f64();
        match (self, number) {
            (Self::F16, _) => bytes.extend(f16::from_f64(float).to_le_bytes()),
            (Self::Bf16, _) => bytes.extend(bf16::from_f64(float).to_le_bytes()),
            (Self::F32, _) => bytes.extend((float as f32).to_le_bytes()),
            (Self::F64, _) => bytes.extend(float.to_le_bytes()),
            (_, Number::Int(int)) => return self.push_int(int, bytes),
            (_, Number::Float(_)) => return false,
        }
        true
    }

    fn push_int(self, int: i128, bytes: &mut Vec<u8>) -> bool {
        macro_rules! push {
            ($type:ty) => {
                match <$type>::try_from(int) {
                    Ok(int) => bytes.extend(int.to_le_bytes()),
                    Err(_) => return false,
                }
            };
        }
        match self {
            Self::Bool if !(0..=1).contains(&int) => return false,
            Self::Bool | Self::U8 => push!(u8),
            Self::I8 => push!(i8),
            Self::I16 => push!(i16),
            Self::I32 => push!(i32),
            Self::I64 => push!(i64),
            Self::U16 => push!(u16),
            Self::U32 => push!(u32),
            Self::U64 => push!(u64),
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => return false,
        }
        true
    }

    /// The numbers in `bytes`; bytes that make no whole element at the end are left out.
    pub(crate) fn numbers(self, bytes: &[u8]) -> impl Iterator<Item = Number> {
        bytes
            .chunks_exact(self.width())
            .map(move |element| self.number(element))
    }

    /// The number in the bytes of one element.
    fn number(self, element: &[u8]) -> Number {
        let mut wide = [0; 8];
        wide[..element.len()].copy_from_slice(element);
        let [b0, b1, b2, b3, ..] = wide;
        match self {
            Self::Bool | Self::U8 => Number::Int(b0.into()),
            Self::I8 => Number::Int(b0.cast_signed().into()),
            Self::I16 => Number::Int(i16::from_le_bytes([b0, b1]).into()),
            Self::I32 => Number::Int(i32::from_le_bytes([b0, b1, b2, b3]).into()),
            Self::I64 => Number::Int(i64::from_le_bytes(wide).into()),
            Self::U16 => Number::Int(u16::from_le_bytes([b0, b1]).into()),
            Self::U32 => Number::Int(u32::from_le_bytes([b0, b1, b2, b3]).into()),
            Self::U64 => Number::Int(u64::from_le_bytes(wide).into()),
            Self::F16 => Number::Float(f16::from_le_bytes([b0, b1]).to_f64()),
            Self::Bf16 => Number::Float(bf16::from_le_bytes([b0, b1]).to_f64()),
            Self::F32 => Number::Float(f32::from_le_bytes([b0, b1, b2, b3]).into()),
            Self::F64 => Number::Float(f64::from_le_bytes(wide)),
        }
    }

    /// A random number: a float from 0 up to 1, an integer from 0 to 127, a bool.
    pub(crate) fn random(self, rng: &mut fastrand::Rng) -> Number {
        match self {
            Self::Bool => Number::Int(rng.bool().into()),
            _ if self.is_float() => Number::Float(rng.f64()),
            _ => Number::Int(rng.u8(0..=LARGEST_RANDOM).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn element(dtype: &str) -> ElementType {
        ElementType::of(dtype.parse().unwrap()).unwrap()
    }

    fn bytes(dtype: &str, number: Number) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        element(dtype).push(number, &mut bytes).then_some(bytes)
    }

    #[test]
    fn numbers_are_stored_as_numpy_stores_them() {
        use Number::{Float, Int};
        // numpy.array(x, dtype).tobytes(), bfloat16 as ml_dtypes has it.
        for (dtype, number, expected) in [
            ("bool", Int(1), &[1][..]),
            ("int8", Int(-1), &[0xff]),
            ("uint8", Int(255), &[0xff]),
            ("int16", Int(-2), &[0xfe, 0xff]),
            ("int32", Int(1), &[1, 0, 0, 0]),
            ("int64", Int(-1), &[0xff; 8]),
            ("uint64", Int(u64::MAX.into()), &[0xff; 8]),
            ("float16", Float(1.5), &[0x00, 0x3e]),
            ("bfloat16", Float(1.5), &[0xc0, 0x3f]),
            ("float32", Int(1), &[0, 0, 0x80, 0x3f]),
            ("float64", Float(-2.0), &[0, 0, 0, 0, 0, 0, 0, 0xc0]),
        ] {
            assert_eq!(bytes(dtype, number).as_deref(), Some(expected), "{dtype}");
            let back: Vec<_> = element(dtype).numbers(expected).collect();
            assert_eq!(back[0].to_f64(), number.to_f64(), "{dtype}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (dtype, text) in [
            ("bool", "2"),
            ("int8", "128"),
            ("uint8", "-1"),
            ("uint64", "18446744073709551616"),
            ("int32", "1.5"),
        ] {
            assert_eq!(bytes(dtype, Number::parse(text).unwrap()), None, "{dtype}");
        }
    }

    #[test]
    fn vectors_and_small_floats_have_no_numbers_here() {
        for dtype in ["float32x4", "float8_e4m3fn", "int4", "handle"] {
            assert_eq!(ElementType::of(dtype.parse().unwrap()), None, "{dtype}");
        }
    }

    proptest! {
        #[test]
        fn random_numbers_fit_every_type(seed: u64) {
            let mut rng = fastrand::Rng::with_seed(seed);
            for dtype in ["bool", "int8", "uint64", "float16", "bfloat16", "float32"] {
                let number = element(dtype).random(&mut rng);
                prop_assert!(element(dtype).push(number, &mut Vec::new()));
                prop_assert!((0.0..=127.0).contains(&number.to_f64()));
            }
        }
    }
}

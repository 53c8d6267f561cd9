//! Element types of tensors.

use std::fmt;
use std::str::FromStr;

use crate::codes::open_code;

open_code! {
    /// The kind of number in a [`DataType`].
    TypeCode(u8) {
        /// Signed integer.
        INT = 0, "int";
        /// Unsigned integer.
        UINT = 1, "uint";
        /// IEEE float.
        FLOAT = 2, "float";
        /// An address, or (with no bits) nothing.
        HANDLE = 3, "handle";
        /// The upper half of a 32-bit float.
        BFLOAT = 4, "bfloat";
        /// Complex number.
        COMPLEX = 5, "complex";
        /// Truth value, eight bits wide.
        BOOL = 6, "bool";
        /// 8-bit float, 3 exponent and 4 mantissa bits.
        FLOAT8_E3M4 = 7, "float8_e3m4";
        /// 8-bit float, 4 exponent and 3 mantissa bits.
        FLOAT8_E4M3 = 8, "float8_e4m3";
        /// 8-bit float, bias 11, finite, no negative zero.
        FLOAT8_E4M3B11FNUZ = 9, "float8_e4m3b11fnuz";
        /// 8-bit float, finite.
        FLOAT8_E4M3FN = 10, "float8_e4m3fn";
        /// 8-bit float, finite, no negative zero.
        FLOAT8_E4M3FNUZ = 11, "float8_e4m3fnuz";
        /// 8-bit float, 5 exponent and 2 mantissa bits.
        FLOAT8_E5M2 = 12, "float8_e5m2";
        /// 8-bit float, finite, no negative zero.
        FLOAT8_E5M2FNUZ = 13, "float8_e5m2fnuz";
        /// 8-bit power of two.
        FLOAT8_E8M0FNU = 14, "float8_e8m0fnu";
        /// 6-bit float, finite.
        FLOAT6_E2M3FN = 15, "float6_e2m3fn";
        /// 6-bit float, finite.
        FLOAT6_E3M2FN = 16, "float6_e3m2fn";
        /// 4-bit float, finite.
        FLOAT4_E2M1FN = 17, "float4_e2m1fn";
    }
}

/// Kinds whose width follows a name without a fixed width, with the width meant when none is given.
const WIDE: [(TypeCode, u8); 6] = [
    (TypeCode::BFLOAT, 16),
    (TypeCode::COMPLEX, 64),
    (TypeCode::FLOAT, 32),
    (TypeCode::HANDLE, 64),
    (TypeCode::INT, 32),
    (TypeCode::UINT, 32),
];

/// Kinds whose name says their width.
const FIXED: [(TypeCode, u8); 12] = [
    (TypeCode::BOOL, 8),
    (TypeCode::FLOAT8_E3M4, 8),
    (TypeCode::FLOAT8_E4M3, 8),
    (TypeCode::FLOAT8_E4M3B11FNUZ, 8),
    (TypeCode::FLOAT8_E4M3FN, 8),
    (TypeCode::FLOAT8_E4M3FNUZ, 8),
    (TypeCode::FLOAT8_E5M2, 8),
    (TypeCode::FLOAT8_E5M2FNUZ, 8),
    (TypeCode::FLOAT8_E8M0FNU, 8),
    (TypeCode::FLOAT6_E2M3FN, 6),
    (TypeCode::FLOAT6_E3M2FN, 6),
    (TypeCode::FLOAT4_E2M1FN, 4),
];

/// The type of a tensor's elements: kind, bits of one lane, and lanes of one element.
///
/// It is printed and parsed as TVM writes it: `float32`, `int8x4`, `bool`, `bfloat16`,
/// `float8_e4m3fn`, `handle`, `void`.
///
/// ```
/// use rpc_proto::DataType;
///
/// let dtype: DataType = "float32x4".parse()?;
/// assert_eq!((dtype.bits, dtype.lanes), (32, 4));
/// assert_eq!(dtype.to_string(), "float32x4");
/// # Ok::<(), rpc_proto::ParseDataTypeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataType {
    /// The kind of number.
    pub code: TypeCode,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of one element. A scalable vector of n lanes is the two's complement of n.
    pub lanes: u16,
}

macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident = $code:ident, $bits:literal;)*) => {
        $($(#[$doc])* pub const $name: Self = Self::scalar(TypeCode::$code, $bits);)*
    };
}

impl DataType {
    scalars! {
        /// `bool`: one byte, 0 or 1.
        BOOL = BOOL, 8;
        /// `int8`
        INT8 = INT, 8;
        /// `int16`
        INT16 = INT, 16;
        /// `int32`
        INT32 = INT, 32;
        /// `int64`
        INT64 = INT, 64;
        /// `uint8`
        UINT8 = UINT, 8;
        /// `uint16`
        UINT16 = UINT, 16;
        /// `uint32`
        UINT32 = UINT, 32;
        /// `uint64`
        UINT64 = UINT, 64;
        /// `float16`
        FLOAT16 = FLOAT, 16;
        /// `float32`
        FLOAT32 = FLOAT, 32;
        /// `float64`
        FLOAT64 = FLOAT, 64;
        /// `bfloat16`
        BFLOAT16 = BFLOAT, 16;
        /// `handle`: an address of 64 bits.
        HANDLE = HANDLE, 64;
    }

    /// `void`: no value at all.
    pub const VOID: Self = Self {
        code: TypeCode::HANDLE,
        bits: 0,
        lanes: 0,
    };

    /// A type of one lane.
    #[must_use]
    pub const fn scalar(code: TypeCode, bits: u8) -> Self {
        Self {
            code,
            bits,
            lanes: 1,
        }
    }

    /// Bytes of `count` elements stored one after the other, or `None` above 64 bits.
    ///
    /// Types narrower than a byte are packed, but for `uint1`, which takes a byte each: so the
    /// reference stores them.
    #[must_use]
    pub fn bytes_of(self, count: u64) -> Option<u64> {
        if self == Self::scalar(TypeCode::UINT, 1) {
            return Some(count);
        }
        let bits = u128::from(count) * u128::from(self.bits) * u128::from(self.lanes);
        u64::try_from(bits.div_ceil(8)).ok()
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::VOID {
            return f.write_str("void");
        }
        let name_says_all = FIXED.contains(&(self.code, self.bits))
            || (self.code, self.bits) == (TypeCode::HANDLE, 64) && self.lanes == 1;
        let wide = WIDE.iter().any(|&(code, _)| code == self.code);
        match self.code.name() {
            Some(name) if name_says_all => f.write_str(name)?,
            Some(name) if wide => write!(f, "{name}{}", self.bits)?,
            _ => write!(f, "custom[{}]{}", self.code.0, self.bits)?,
        }
        match self.lanes.cast_signed() {
            1 => Ok(()),
            n if n < 0 => write!(f, "xvscalex{}", n.unsigned_abs()),
            _ => write!(f, "x{}", self.lanes),
        }
    }
}

/// A text that is no [`DataType`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a data type; expected for example float32, int8x4, bool, bfloat16, float8_e4m3fn or handle"
)]
pub struct ParseDataTypeError(String);

impl FromStr for DataType {
    type Err = ParseDataTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParseDataTypeError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<DataType> {
    if text == "void" {
        return Some(DataType::VOID);
    }
    let (code, bits, rest) = fixed_width(text)
        .or_else(|| custom_kind(text))
        .or_else(|| named_kind(text))?;
    Some(DataType {
        code,
        bits,
        lanes: lanes(rest)?,
    })
}

/// A kind with its width in its name, and what follows it.
fn fixed_width(text: &str) -> Option<(TypeCode, u8, &str)> {
    FIXED.iter().find_map(|&(code, bits)| {
        let rest = text.strip_prefix(code.name()?)?;
        (rest.is_empty() || rest.starts_with('x')).then_some((code, bits, rest))
    })
}

/// `custom[CODE]BITS`, as a kind without a name is printed.
fn custom_kind(text: &str) -> Option<(TypeCode, u8, &str)> {
    let (code, rest) = text.strip_prefix("custom[")?.split_once(']')?;
    let (bits, rest) = split_digits(rest);
    Some((TypeCode(code.parse().ok()?), bits.parse().ok()?, rest))
}

/// A kind with a name, its width (or its usual width), and what follows.
fn named_kind(text: &str) -> Option<(TypeCode, u8, &str)> {
    let name_end = text
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    let names = WIDE.iter().chain(&FIXED);
    let (code, usual) = names.copied().find(|(code, _)| code.name() == Some(name))?;
    let (bits, rest) = split_digits(rest);
    let bits = if bits.is_empty() {
        usual
    } else {
        bits.parse().ok()?
    };
    Some((code, bits, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// `""`, `x4` or `xvscalex4`.
fn lanes(text: &str) -> Option<u16> {
    if text.is_empty() {
        return Some(1);
    }
    let (digits, scalable) = match text.strip_prefix("xvscalex") {
        Some(digits) => (digits, true),
        None => (text.strip_prefix('x')?, false),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let lanes: i16 = digits.parse().ok().filter(|&n| n > 0)?;
    Some(if scalable { -lanes } else { lanes }.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Text, code, bits and lanes as apache-tvm 0.27.0.post1 reports them.
    const KNOWN: [(&str, u8, u8, u16); 27] = [
        ("float32", 2, 32, 1),
        ("float32x4", 2, 32, 4),
        ("int8", 0, 8, 1),
        ("bool", 6, 8, 1),
        ("boolx8", 6, 8, 8),
        ("uint1", 1, 1, 1),
        ("uint8", 1, 8, 1),
        ("bfloat16", 4, 16, 1),
        ("bfloat16x2", 4, 16, 2),
        ("float8_e3m4", 7, 8, 1),
        ("float8_e4m3", 8, 8, 1),
        ("float8_e4m3b11fnuz", 9, 8, 1),
        ("float8_e4m3fn", 10, 8, 1),
        ("float8_e4m3fnx2", 10, 8, 2),
        ("float8_e4m3fnuz", 11, 8, 1),
        ("float8_e5m2", 12, 8, 1),
        ("float8_e5m2fnuz", 13, 8, 1),
        ("float8_e8m0fnu", 14, 8, 1),
        ("float6_e2m3fn", 15, 6, 1),
        ("float6_e3m2fn", 16, 6, 1),
        ("float4_e2m1fn", 17, 4, 1),
        ("handle", 3, 64, 1),
        ("handle32", 3, 32, 1),
        ("handle64x2", 3, 64, 2),
        ("void", 3, 0, 0),
        ("int65", 0, 65, 1),
        ("int32xvscalex4", 0, 32, 65532),
    ];

    #[test]
    fn reads_and_prints_what_the_reference_does() {
        for (text, code, bits, lanes) in KNOWN {
            let dtype = DataType {
                code: TypeCode(code),
                bits,
                lanes,
            };
            assert_eq!(text.parse(), Ok(dtype), "{text}");
            assert_eq!(dtype.to_string(), text);
        }
    }

    #[test]
    fn names_without_a_width_have_the_usual_one() {
        for (short, long) in [("int", "int32"), ("float", "float32"), ("uint", "uint32")] {
            assert_eq!(short.parse::<DataType>(), long.parse());
        }
        assert_eq!("bfloat".parse(), Ok(DataType::BFLOAT16));
    }

    #[test]
    fn refuses_what_is_no_type() {
        for text in [
            "",
            "32",
            "float32x",
            "float32x0",
            "float32y4",
            "int999",
            "x4",
            "float32x4x4",
            "float32x+4",
            "float32x-4",
            "custom[1",
            "custom[300]8",
            " float32",
            "float8_e4m3fn8x",
        ] {
            assert!(text.parse::<DataType>().is_err(), "{text:?} was read");
        }
    }

    #[test]
    fn sizes() {
        let bytes = |text: &str, n| text.parse::<DataType>().unwrap().bytes_of(n);
        assert_eq!(bytes("float32x4", 3), Some(48));
        assert_eq!(bytes("int4", 3), Some(2));
        assert_eq!(bytes("uint1", 3), Some(3));
        assert_eq!(bytes("bool", 3), Some(3));
        assert_eq!(bytes("float64", u64::MAX), None);
    }

    proptest! {
        #[test]
        fn every_type_survives_its_text(code: u8, bits: u8, lanes in 1u16..) {
            // 32768 lanes is the one number whose negative it is itself.
            prop_assume!(lanes != 0x8000);
            let dtype = DataType { code: TypeCode(code), bits, lanes };
            prop_assert_eq!(dtype.to_string().parse(), Ok(dtype));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<DataType>();
        }
    }
}

//! The result of a call, as it stands in its sequence in every dialect: first the number of the type that
//! it had at the peer, then the value, and behind a tensor the handle of its owner.

use crate::{DecodeError, Returned, Value, Values};

/// Numbers of types that say how many values there are.
pub(super) struct Types {
    pub(super) none: i32,
    /// A tensor with an owner, and one without.
    pub(super) tensors: [i32; 2],
}

/// A result, as far as it is the same in every dialect.
pub(super) enum Parts<'a> {
    /// Nothing or a tensor.
    Known(Returned<'a>),
    /// A value under the number of its type.
    Other(i32, Value<'a>),
}

/// Takes the sequence at `offset` apart.
pub(super) fn parts<'a>(
    values: Values<'a>,
    offset: u64,
    types: &Types,
) -> Result<Parts<'a>, DecodeError> {
    let wrong = |expected, found: String| wrong(offset, expected, found);
    let count = values.len();
    let mut values = values.into_iter();
    let number = match values.next() {
        Some(Value::Int(number)) => number,
        Some(other) => return Err(wrong("the number of a type first", other.kind().to_owned())),
        None => return Err(wrong("the number of a type first", "no value".to_owned())),
    };
    let number = i32::try_from(number)
        .map_err(|_| wrong("the number of a type in 32 bits", number.to_string()))?;
    if number == types.none && count == 1 {
        return Ok(Parts::Known(Returned::Value(Value::None)));
    }
    let is_tensor = types.tensors.contains(&number);
    let expected = if is_tensor { 3 } else { 2 };
    let value = match values.next() {
        Some(value) if count == expected => value,
        _ => {
            return Err(wrong(
                "2 values, or 3 for a tensor",
                format!("{count} values"),
            ));
        }
    };
    Ok(match (value, values.next()) {
        (value, None) => Parts::Other(number, value),
        (Value::Tensor(tensor), Some(Value::Pointer(handle))) => {
            Parts::Known(Returned::Tensor { tensor, handle })
        }
        (Value::Tensor(tensor), Some(Value::None)) => {
            Parts::Known(Returned::Tensor { tensor, handle: 0 })
        }
        _ => {
            return Err(wrong(
                "a tensor and its handle",
                "something else".to_owned(),
            ));
        }
    })
}

/// The value is not of the type before it.
pub(super) fn mismatch(offset: u64, number: i32, value: &Value<'_>) -> DecodeError {
    let found = format!("{} under type {number}", value.kind());
    wrong(offset, "a value of the type that stands before it", found)
}

fn wrong(offset: u64, expected: &'static str, found: String) -> DecodeError {
    DecodeError::Unexpected {
        field: "result of a call",
        offset,
        expected,
        found,
    }
}

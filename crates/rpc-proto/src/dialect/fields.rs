//! Fields that are the same in every dialect.

use crate::tensor;
use crate::wire::{Put, Reader};
use crate::{DataType, DecodeError};

pub(super) fn put_count(count: usize, out: &mut Vec<u8>) {
    let count = i32::try_from(count).expect("the caller keeps sequences below Limits::arguments");
    out.put_i32(count);
}

/// Text or bytes behind their length.
pub(super) fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.put_u64(bytes.len() as u64);
    out.put(bytes);
}

pub(super) fn sized<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let len = reader.u64("length")?;
    reader.bytes(field, len)
}

pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let len = reader.u64("length")?;
    reader.text("text", len)
}

/// The text of an exception. What is not UTF-8 in it is replaced.
pub(super) fn lossy_text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let len = reader.u64("length")?;
    Ok(reader.lossy_text("text", len)?.into_owned())
}

/// The values of an exception hold something else.
pub(super) fn no_text(offset: u64, found: impl std::fmt::Display) -> DecodeError {
    DecodeError::unexpected("exception", offset, "a text", found)
}

/// A data type that is a value of its own fills eight bytes.
pub(super) fn put_dtype(dtype: DataType, out: &mut Vec<u8>) {
    tensor::put_dtype(dtype, out);
    out.put_i32(0);
}

pub(super) fn dtype(reader: &mut Reader<'_>) -> Result<DataType, DecodeError> {
    let dtype = tensor::dtype(reader)?;
    reader.i32("padding of a data type")?;
    Ok(dtype)
}

//! The `ffi` dialect: a count, then for each value its type index and its bytes.

mod argument;
mod returned;

use std::borrow::Cow;

pub(super) use argument::{bulk_argument, values_before_bulk};
pub(super) use returned::{bulk_return, put_bulk_return, put_returned, returned};

use super::Place;
use crate::tensor;
use crate::wire::{Put, Reader};
use crate::{Bulk, BulkKind, DecodeError, Limits, Value, Values};

// Type indices of tvm-ffi that appear on the wire.
const NONE: i32 = 0;
const INT: i32 = 1;
const BOOL: i32 = 2;
const FLOAT: i32 = 3;
const POINTER: i32 = 4;
const DATA_TYPE: i32 = 5;
const DEVICE: i32 = 6;
const TENSOR_VIEW: i32 = 7;
const RAW_STR: i32 = 8;
const BYTES_VIEW: i32 = 9;
const SMALL_STR: i32 = 11;
const SMALL_BYTES: i32 = 12;
/// From here on an index means an object.
const FIRST_OBJECT: i32 = 64;
const STR: i32 = 65;
const BYTES: i32 = 66;
const FUNCTION: i32 = 68;
const TENSOR: i32 = 70;
const MODULE: i32 = 73;
const REMOTE_OBJECT: i32 = 115;

/// The longest text or bytes that tvm-ffi keeps inside a value.
const SMALL: u64 = 7;

pub(super) fn put_values(
    place: Place,
    values: &[Value<'_>],
    bulk: Option<Bulk>,
    out: &mut Vec<u8>,
) {
    put_count(values.len() + usize::from(bulk.is_some()), out);
    for value in values {
        put_value(place, value, out);
    }
    match bulk {
        None => {}
        Some(Bulk { kind, nbytes }) => match kind {
            BulkKind::Text => put_text_head(nbytes, out),
            BulkKind::Bytes => put_bytes_head(nbytes, out),
        },
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    let count = i32::try_from(count).expect("the caller keeps sequences below Limits::arguments");
    out.put_i32(count);
}

fn put_value(place: Place, value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::None => out.put_i32(NONE),
        Value::Int(value) => {
            out.put_i32(INT);
            out.put_i64(*value);
        }
        Value::Bool(value) => {
            out.put_i32(BOOL);
            out.put_i64(i64::from(*value));
        }
        Value::Float(value) => {
            out.put_i32(FLOAT);
            out.put_f64(*value);
        }
        Value::Pointer(address) => put_handle(POINTER, *address, out),
        Value::DataType(dtype) => {
            out.put_i32(DATA_TYPE);
            tensor::put_dtype(*dtype, out);
            out.put_i32(0);
        }
        Value::Device(device) => {
            out.put_i32(DEVICE);
            tensor::put_device(*device, out);
        }
        Value::Tensor(view) => {
            out.put_i32(TENSOR_VIEW);
            tensor::put(view, out);
        }
        Value::Str(text) => put_text(place, text, out),
        Value::Bytes(bytes) if place == Place::Return => {
            out.put_i32(BYTES_VIEW);
            put_sized(bytes, out);
        }
        Value::Bytes(bytes) => {
            put_bytes_head(bytes.len() as u64, out);
            out.put(bytes);
        }
        Value::Function(handle) => put_handle(FUNCTION, *handle, out),
        Value::Module(handle) => put_handle(MODULE, *handle, out),
        Value::Object(handle) => {
            out.put_i32(REMOTE_OBJECT);
            put_handle(REMOTE_OBJECT, *handle, out);
        }
    }
}

fn put_handle(index: i32, handle: u64, out: &mut Vec<u8>) {
    out.put_i32(index);
    out.put_u64(handle);
}

fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.put_u64(bytes.len() as u64);
    out.put(bytes);
}

fn put_text(place: Place, text: &str, out: &mut Vec<u8>) {
    // A receiver ends a raw string at its first NUL, so such a text travels as an object.
    let as_object = place == Place::Init || place == Place::Call && text.contains('\0');
    if as_object {
        put_text_head(text.len() as u64, out);
        out.put(text.as_bytes());
    } else {
        out.put_i32(RAW_STR);
        put_sized(text.as_bytes(), out);
    }
}

/// What stands before the bytes of a text object.
fn put_text_head(len: u64, out: &mut Vec<u8>) {
    out.put_i32(str_index(len));
    out.put_i32(STR);
    out.put_u64(len);
}

fn str_index(len: u64) -> i32 {
    if len <= SMALL { SMALL_STR } else { STR }
}

fn bytes_index(len: u64) -> i32 {
    if len <= SMALL { SMALL_BYTES } else { BYTES }
}

/// What stands before the bytes of a bytes argument.
fn put_bytes_head(len: u64, out: &mut Vec<u8>) {
    out.put_i32(bytes_index(len));
    out.put_i32(BYTES);
    out.put_u64(len);
}

pub(super) fn values<'a>(
    reader: &mut Reader<'a>,
    limits: Limits,
) -> Result<Values<'a>, DecodeError> {
    let count = reader.count("number of values", limits.arguments)?;
    (0..count).map(|_| value(reader, limits)).collect()
}

fn value<'a>(reader: &mut Reader<'a>, limits: Limits) -> Result<Value<'a>, DecodeError> {
    let offset = reader.offset();
    let index = reader.i32("type index")?;
    Ok(match index {
        NONE => Value::None,
        INT => Value::Int(reader.i64("integer")?),
        BOOL => Value::Bool(reader.i64("bool")? != 0),
        FLOAT => Value::Float(reader.f64("float")?),
        POINTER => Value::Pointer(reader.u64("pointer")?),
        DATA_TYPE => {
            let dtype = tensor::dtype(reader)?;
            reader.i32("padding of a data type")?;
            Value::DataType(dtype)
        }
        DEVICE => Value::Device(tensor::device(reader)?),
        TENSOR_VIEW => Value::Tensor(tensor::view(reader, limits)?),
        RAW_STR => Value::Str(Cow::Borrowed(text(reader)?)),
        BYTES_VIEW => Value::Bytes(Cow::Borrowed(sized(reader, "bytes")?)),
        SMALL_STR | STR => {
            inner_index(reader, STR, "65 inside a text")?;
            Value::Str(Cow::Borrowed(text(reader)?))
        }
        SMALL_BYTES | BYTES => {
            inner_index(reader, BYTES, "66 inside bytes")?;
            Value::Bytes(Cow::Borrowed(sized(reader, "bytes")?))
        }
        FUNCTION => Value::Function(reader.u64("function handle")?),
        MODULE => Value::Module(reader.u64("module handle")?),
        TENSOR => return Err(bad_index(offset, index)),
        FIRST_OBJECT.. => {
            inner_index(reader, REMOTE_OBJECT, "115 inside an object")?;
            Value::Object(reader.u64("object handle")?)
        }
        _ => return Err(bad_index(offset, index)),
    })
}

fn bad_index(offset: u64, index: i32) -> DecodeError {
    let expected = "an index that a packet may hold (0 to 9, 11, 12, or an object other than 70)";
    DecodeError::unexpected("type index", offset, expected, index)
}

fn inner_index(
    reader: &mut Reader<'_>,
    wanted: i32,
    expected: &'static str,
) -> Result<(), DecodeError> {
    let offset = reader.offset();
    let index = reader.i32("inner type index")?;
    if index == wanted {
        Ok(())
    } else {
        Err(DecodeError::unexpected(
            "inner type index",
            offset,
            expected,
            index,
        ))
    }
}

fn sized<'a>(reader: &mut Reader<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let len = reader.u64("length")?;
    reader.bytes(field, len)
}

fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let bytes = sized(reader, "text")?;
    let start = reader.offset() - bytes.len() as u64;
    std::str::from_utf8(bytes).map_err(|error| DecodeError::NotUtf8 {
        field: "text",
        offset: start + error.valid_up_to() as u64,
    })
}

pub(super) fn exception_text(
    reader: &mut Reader<'_>,
    limits: Limits,
) -> Result<String, DecodeError> {
    let start = reader.offset();
    if reader.count("number of values", limits.arguments)? == 0 {
        return Err(DecodeError::unexpected(
            "exception",
            start,
            "a text",
            "no value",
        ));
    }
    let offset = reader.offset();
    match reader.i32("type index")? {
        RAW_STR | BYTES_VIEW => {}
        SMALL_STR | STR | SMALL_BYTES | BYTES => {
            reader.i32("inner type index")?;
        }
        index => {
            return Err(DecodeError::unexpected(
                "exception",
                offset,
                "a text",
                index,
            ));
        }
    }
    Ok(String::from_utf8_lossy(sized(reader, "text")?).into_owned())
}

//! The `ffi` dialect: a count, then for each value its type index and its bytes.

mod argument;
mod returned;

use std::borrow::Cow;

pub(super) use argument::{bulk_argument, values_before_bulk};
pub(super) use returned::{bulk_return, put_bulk_return, put_returned, returned};

use super::Place;
use super::fields::{dtype, lossy_text, no_text, put_count, put_dtype, put_sized, sized, text};
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

/// The names of indices in tvm-ffi, without those that differ from process to process.
pub(super) fn type_name(index: i64) -> Option<&'static str> {
    Some(match index {
        0 => "None",
        1 => "Int",
        2 => "Bool",
        3 => "Float",
        4 => "OpaquePtr",
        5 => "DataType",
        6 => "Device",
        7 => "DLTensorPtr",
        8 => "RawStr",
        9 => "ByteArrayPtr",
        10 => "ObjectRValueRef",
        11 => "SmallStr",
        12 => "SmallBytes",
        64 => "Object",
        65 => "Str",
        66 => "Bytes",
        67 => "Error",
        68 => "Function",
        69 => "Shape",
        70 => "Tensor",
        71 => "Array",
        72 => "Map",
        73 => "Module",
        74 => "OpaquePyObject",
        115 => "RPCObjectRef",
        _ => return None,
    })
}

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
            put_dtype(*dtype, out);
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
    let values = (0..count).map(|index| {
        reader.item(Some(index));
        value(reader, limits)
    });
    let values = values.collect();
    reader.item(None);
    values
}

fn value<'a>(reader: &mut Reader<'a>, limits: Limits) -> Result<Value<'a>, DecodeError> {
    let offset = reader.offset();
    let index = reader.i32("type index")?;
    reader.means(|| type_name(index.into()));
    Ok(match index {
        NONE => Value::None,
        INT => Value::Int(reader.i64("integer")?),
        BOOL => Value::Bool(reader.i64("bool")? != 0),
        FLOAT => Value::Float(reader.f64("float")?),
        POINTER => Value::Pointer(reader.address("pointer")?),
        DATA_TYPE => Value::DataType(dtype(reader)?),
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
        FUNCTION => Value::Function(reader.address("function handle")?),
        MODULE => Value::Module(reader.address("module handle")?),
        TENSOR => return Err(bad_index(offset, index)),
        FIRST_OBJECT.. => {
            inner_index(reader, REMOTE_OBJECT, "115 inside an object")?;
            Value::Object(reader.address("object handle")?)
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
    reader.means(|| type_name(index.into()));
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

pub(super) fn exception_text(
    reader: &mut Reader<'_>,
    limits: Limits,
) -> Result<String, DecodeError> {
    let start = reader.offset();
    if reader.count("number of values", limits.arguments)? == 0 {
        return Err(no_text(start, "no value"));
    }
    let offset = reader.offset();
    reader.item(Some(0));
    let index = reader.i32("type index")?;
    reader.means(|| type_name(index.into()));
    match index {
        RAW_STR | BYTES_VIEW => {}
        SMALL_STR | STR | SMALL_BYTES | BYTES => {
            reader.i32("inner type index")?;
        }
        index => return Err(no_text(offset, index)),
    }
    let text = lossy_text(reader)?;
    reader.item(None);
    Ok(text)
}

//! The `legacy` dialect: a count, the type codes of all values, then the bytes of each.

mod argument;
mod returned;

use std::borrow::Cow;

use smallvec::SmallVec;

pub(super) use argument::{bulk_argument, values_before_bulk};
pub(super) use returned::{bulk_return, put_bulk_return, put_returned, returned};

use super::fields::{dtype, lossy_text, no_text, put_count, put_dtype, put_sized, sized, text};
use crate::tensor;
use crate::wire::{Put, Reader};
use crate::{Bulk, BulkKind, DecodeError, HandleKind, Limits, Value, Values};

// Type codes that appear on the wire.
const INT: i32 = 0;
const UINT: i32 = 1;
const FLOAT: i32 = 2;
const POINTER: i32 = 3;
const NONE: i32 = 4;
const DATA_TYPE: i32 = 5;
const DEVICE: i32 = 6;
const TENSOR_VIEW: i32 = 7;
const OBJECT: i32 = 8;
const MODULE: i32 = 9;
const FUNCTION: i32 = 10;
const STR: i32 = 11;
const BYTES: i32 = 12;
const TENSOR: i32 = 13;
/// Only from TVM 0.18 on.
const BOOL: i32 = 15;

/// What stands before the handle of an object.
const REMOTE_OBJECT: i32 = 9;

/// The names of type codes in TVM.
pub(super) fn type_name(code: i64) -> Option<&'static str> {
    Some(match code {
        0 => "Int",
        1 => "UInt",
        2 => "Float",
        3 => "OpaqueHandle",
        4 => "Null",
        5 => "DataType",
        6 => "Device",
        7 => "DLTensorHandle",
        8 => "ObjectHandle",
        9 => "ModuleHandle",
        10 => "PackedFuncHandle",
        11 => "Str",
        12 => "Bytes",
        13 => "NDArrayHandle",
        14 => "ObjectRValueRefArg",
        15 => "ArgBool",
        _ => return None,
    })
}

/// The type code by which the syscall that frees a handle says what it stands for. Of an unknown one
/// it is an object, as which all of them but tensors are freed alike.
pub(super) fn code_of_handle(kind: Option<HandleKind>) -> i32 {
    match kind {
        Some(HandleKind::Function) => FUNCTION,
        Some(HandleKind::Module) => MODULE,
        Some(HandleKind::Tensor) => TENSOR,
        Some(HandleKind::Object) | None => OBJECT,
    }
}

pub(super) fn handle_of_code(code: i64) -> Option<HandleKind> {
    Some(match i32::try_from(code).ok()? {
        FUNCTION => HandleKind::Function,
        MODULE => HandleKind::Module,
        TENSOR => HandleKind::Tensor,
        OBJECT => HandleKind::Object,
        _ => return None,
    })
}

pub(super) fn put_values(values: &[Value<'_>], bulk: Option<Bulk>, out: &mut Vec<u8>) {
    put_count(values.len() + usize::from(bulk.is_some()), out);
    for value in values {
        out.put_i32(code_of(value));
    }
    if let Some(bulk) = bulk {
        out.put_i32(code_of_bulk(bulk.kind));
    }
    for value in values {
        put_value(value, out);
    }
    if let Some(bulk) = bulk {
        out.put_u64(bulk.nbytes);
    }
}

/// The type code under which a value is sent.
fn code_of(value: &Value<'_>) -> i32 {
    match value {
        Value::None => NONE,
        // Peers before TVM 0.18 know no bool, and those since then take an integer for one.
        Value::Int(_) | Value::Bool(_) => INT,
        Value::Float(_) => FLOAT,
        Value::Pointer(_) => POINTER,
        Value::DataType(_) => DATA_TYPE,
        Value::Device(_) => DEVICE,
        Value::Tensor(_) => TENSOR_VIEW,
        Value::Str(_) => STR,
        Value::Bytes(_) => BYTES,
        Value::Function(_) => FUNCTION,
        Value::Module(_) => MODULE,
        Value::Object(_) => OBJECT,
    }
}

fn code_of_bulk(kind: BulkKind) -> i32 {
    match kind {
        BulkKind::Text => STR,
        BulkKind::Bytes => BYTES,
    }
}

/// Writes the bytes of a value, without its type code.
fn put_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::None => {}
        Value::Int(value) => out.put_i64(*value),
        Value::Bool(value) => out.put_i64(i64::from(*value)),
        Value::Float(value) => out.put_f64(*value),
        Value::Pointer(word) | Value::Function(word) | Value::Module(word) => out.put_u64(*word),
        Value::DataType(dtype) => put_dtype(*dtype, out),
        Value::Device(device) => tensor::put_device(*device, out),
        Value::Tensor(view) => tensor::put(view, out),
        Value::Str(text) => put_sized(text.as_bytes(), out),
        Value::Bytes(bytes) => put_sized(bytes, out),
        Value::Object(handle) => {
            out.put_i32(REMOTE_OBJECT);
            out.put_u64(*handle);
        }
    }
}

/// The type codes of a sequence.
struct Codes {
    /// Where the first one stands.
    offset: u64,
    codes: SmallVec<[i32; 8]>,
}

impl Codes {
    fn read(reader: &mut Reader<'_>, limits: Limits) -> Result<Self, DecodeError> {
        let count = reader.count("number of values", limits.arguments)?;
        let offset = reader.offset();
        let needed = LENGTH_OF_CODE * u64::from(count);
        // All are missing where one is, and are not waited for one by one.
        if reader.remaining() < needed {
            return Err(DecodeError::Truncated {
                field: "type codes",
                offset,
                needed,
                available: reader.remaining(),
            });
        }
        let codes = (0..count).map(|item| {
            reader.item(Some(item));
            let code = reader.i32("type code of a value")?;
            reader.means(|| type_name(code.into()));
            Ok(code)
        });
        let codes = codes.collect::<Result<_, _>>()?;
        reader.item(None);
        Ok(Self { offset, codes })
    }

    /// Reads the values of the first `count` codes.
    fn values<'a>(
        &self,
        count: usize,
        reader: &mut Reader<'a>,
        limits: Limits,
    ) -> Result<Values<'a>, DecodeError> {
        let values = (0_u32..).zip(&self.codes).take(count);
        let values = values.map(|(item, &code)| {
            reader.item(Some(item));
            let offset = self.offset + LENGTH_OF_CODE * u64::from(item);
            value(code, offset, reader, limits)
        });
        let values = values.collect();
        reader.item(None);
        values
    }
}

const LENGTH_OF_CODE: u64 = 4;

pub(super) fn values<'a>(
    reader: &mut Reader<'a>,
    limits: Limits,
) -> Result<Values<'a>, DecodeError> {
    let codes = Codes::read(reader, limits)?;
    codes.values(codes.codes.len(), reader, limits)
}

/// Reads a value whose type code stands at `offset`.
fn value<'a>(
    code: i32,
    offset: u64,
    reader: &mut Reader<'a>,
    limits: Limits,
) -> Result<Value<'a>, DecodeError> {
    Ok(match code {
        INT | UINT => Value::Int(reader.i64("integer")?),
        FLOAT => Value::Float(reader.f64("float")?),
        POINTER => Value::Pointer(reader.address("pointer")?),
        NONE => Value::None,
        DATA_TYPE => Value::DataType(dtype(reader)?),
        DEVICE => Value::Device(tensor::device(reader)?),
        TENSOR_VIEW => Value::Tensor(tensor::view(reader, limits)?),
        OBJECT => {
            inner_index(reader)?;
            Value::Object(reader.address("object handle")?)
        }
        MODULE => Value::Module(reader.address("module handle")?),
        FUNCTION => Value::Function(reader.address("function handle")?),
        STR => Value::Str(Cow::Borrowed(text(reader)?)),
        BYTES => Value::Bytes(Cow::Borrowed(sized(reader, "bytes")?)),
        BOOL => Value::Bool(reader.i64("bool")? != 0),
        _ => {
            let expected = "a code that a packet may hold (0 to 12, or 15)";
            let field = "type code of a value";
            return Err(DecodeError::unexpected(field, offset, expected, code));
        }
    })
}

fn inner_index(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let offset = reader.offset();
    let field = "inner type index";
    let index = reader.i32(field)?;
    if index == REMOTE_OBJECT {
        reader.means(|| Some("RPCObjectRef"));
        return Ok(());
    }
    let expected = "9 inside an object";
    Err(DecodeError::unexpected(field, offset, expected, index))
}

pub(super) fn exception_text(
    reader: &mut Reader<'_>,
    limits: Limits,
) -> Result<String, DecodeError> {
    let start = reader.offset();
    let codes = Codes::read(reader, limits)?;
    match codes.codes.first() {
        None => Err(no_text(start, "no value")),
        Some(&(STR | BYTES)) => {
            reader.item(Some(0));
            let text = lossy_text(reader)?;
            reader.item(None);
            Ok(text)
        }
        Some(&code) => Err(no_text(codes.offset, code)),
    }
}

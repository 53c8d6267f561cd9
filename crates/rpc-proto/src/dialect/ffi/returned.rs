//! The result of a call: first the type index that the value had at the peer, then the value.

use super::{
    BOOL, BYTES, BYTES_VIEW, DATA_TYPE, DEVICE, FIRST_OBJECT, FLOAT, FUNCTION, INT, MODULE, NONE,
    POINTER, RAW_STR, REMOTE_OBJECT, SMALL_BYTES, SMALL_STR, STR, TENSOR, TENSOR_VIEW, bytes_index,
    put_count, put_handle, put_value, str_index,
};
use crate::dialect::result::{Parts, Types, mismatch, parts};
use crate::dialect::{Place, Tail};
use crate::packet::START;
use crate::tensor;
use crate::wire::{Put, Reader};
use crate::{Bulk, BulkKind, DecodeError, Returned, TensorView, Value, Values};

const TYPES: Types = Types {
    none: NONE,
    tensors: [TENSOR, TENSOR_VIEW],
};

/// From here to the objects no index means anything.
const FIRST_UNKNOWN: i32 = 13;

pub(in crate::dialect) fn put_returned(returned: &Returned<'_>, out: &mut Vec<u8>) {
    match returned {
        Returned::Tensor { tensor, handle } => put_tensor_returned(TENSOR, tensor, *handle, out),
        Returned::Value(Value::Tensor(tensor)) => {
            put_tensor_returned(TENSOR_VIEW, tensor, 0, out);
        }
        Returned::Object { type_index, handle } => put_handle_returned(*type_index, *handle, out),
        Returned::Value(Value::Function(handle)) => {
            put_handle_returned(FUNCTION.into(), *handle, out);
        }
        Returned::Value(Value::Module(handle)) => put_handle_returned(MODULE.into(), *handle, out),
        Returned::Value(Value::Object(handle)) => {
            put_handle_returned(REMOTE_OBJECT.into(), *handle, out);
        }
        Returned::Value(value) => {
            put_count(2, out);
            put_value(Place::Return, &Value::Int(index_of(value).into()), out);
            put_value(Place::Return, value, out);
        }
    }
}

fn put_tensor_returned(index: i32, tensor: &TensorView, handle: u64, out: &mut Vec<u8>) {
    put_count(3, out);
    put_value(Place::Return, &Value::Int(index.into()), out);
    out.put_i32(TENSOR_VIEW);
    tensor::put(tensor, out);
    put_handle(POINTER, handle, out);
}

fn put_handle_returned(type_index: i64, handle: u64, out: &mut Vec<u8>) {
    put_count(2, out);
    put_value(Place::Return, &Value::Int(type_index), out);
    put_handle(POINTER, handle, out);
}

pub(in crate::dialect) fn put_bulk_return(bulk: Bulk, out: &mut Vec<u8>) {
    let Bulk { kind, nbytes } = bulk;
    let (outer, inner) = match kind {
        BulkKind::Text => (str_index(nbytes), RAW_STR),
        BulkKind::Bytes => (bytes_index(nbytes), BYTES_VIEW),
    };
    put_count(2, out);
    put_value(Place::Return, &Value::Int(outer.into()), out);
    out.put_i32(inner);
    out.put_u64(nbytes);
}

/// The index that stands first in the result of a call.
fn index_of(value: &Value<'_>) -> i32 {
    match value {
        Value::None => NONE,
        Value::Int(_) => INT,
        Value::Bool(_) => BOOL,
        Value::Float(_) => FLOAT,
        Value::Pointer(_) => POINTER,
        Value::DataType(_) => DATA_TYPE,
        Value::Device(_) => DEVICE,
        Value::Tensor(_) => TENSOR_VIEW,
        Value::Str(text) => str_index(text.len() as u64),
        Value::Bytes(bytes) => bytes_index(bytes.len() as u64),
        Value::Function(_) => FUNCTION,
        Value::Module(_) => MODULE,
        Value::Object(_) => REMOTE_OBJECT,
    }
}

pub(in crate::dialect) fn returned(
    values: Values<'_>,
    offset: u64,
) -> Result<Returned<'_>, DecodeError> {
    let (index, value) = match parts(values, offset, &TYPES)? {
        Parts::Known(returned) => return Ok(returned),
        Parts::Other(index, value) => (index, value),
    };
    Ok(match (index, value) {
        (FUNCTION, Value::Pointer(handle)) => Returned::Value(Value::Function(handle)),
        (MODULE, Value::Pointer(handle)) => Returned::Value(Value::Module(handle)),
        (FIRST_OBJECT.., Value::Pointer(handle)) => Returned::Object {
            type_index: index.into(),
            handle,
        },
        // An index that nobody knows says nothing of the pointer under it.
        (FIRST_UNKNOWN.., value @ Value::Pointer(_))
        | (RAW_STR | SMALL_STR | STR, value @ Value::Str(_))
        | (BYTES_VIEW | SMALL_BYTES | BYTES, value @ Value::Bytes(_)) => Returned::Value(value),
        (index, value) if index_of(&value) == index => Returned::Value(value),
        (index, value) => return Err(mismatch(offset, index, &value)),
    })
}

pub(in crate::dialect) fn bulk_return(packet: &[u8]) -> Result<Option<Tail>, DecodeError> {
    let field = "head of a result";
    let mut reader = Reader::new(packet, 0);
    reader.bytes(field, START)?;
    if reader.i32(field)? != 2 || reader.i32(field)? != INT {
        return Ok(None);
    }
    let kind = match i32::try_from(reader.i64(field)?) {
        Ok(RAW_STR | SMALL_STR | STR) => BulkKind::Text,
        Ok(BYTES_VIEW | SMALL_BYTES | BYTES) => BulkKind::Bytes,
        _ => return Ok(None),
    };
    match (kind, reader.i32(field)?) {
        (BulkKind::Text, RAW_STR) | (BulkKind::Bytes, BYTES_VIEW) => {}
        (BulkKind::Text, SMALL_STR | STR) | (BulkKind::Bytes, SMALL_BYTES | BYTES) => {
            reader.i32(field)?;
        }
        _ => return Ok(None),
    }
    let nbytes = reader.u64(field)?;
    Ok(Some(Tail {
        head: reader.offset(),
        bulk: Bulk { kind, nbytes },
    }))
}

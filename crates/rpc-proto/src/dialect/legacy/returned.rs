//! The result of a call: first the type code that the value had at the peer, then the value.

use super::{
    BOOL, BYTES, FUNCTION, INT, MODULE, NONE, OBJECT, POINTER, STR, TENSOR, TENSOR_VIEW, UINT,
    code_of, code_of_bulk, put_count, put_value,
};
use crate::dialect::Tail;
use crate::dialect::result::{Parts, Types, mismatch, parts};
use crate::packet::START;
use crate::tensor;
use crate::wire::{Put, Reader};
use crate::{Bulk, BulkKind, DecodeError, Returned, TensorView, Value, Values};

const TYPES: Types = Types {
    none: NONE,
    tensors: [TENSOR, TENSOR_VIEW],
};

/// From here on no type code means anything in a result.
const FIRST_UNKNOWN: i32 = 14;

pub(in crate::dialect) fn put_returned(returned: &Returned<'_>, out: &mut Vec<u8>) {
    match returned {
        Returned::Tensor { tensor, handle } => put_tensor(TENSOR, tensor, *handle, out),
        Returned::Value(Value::Tensor(tensor)) => put_tensor(TENSOR_VIEW, tensor, 0, out),
        // There is one type code for all objects, whatever number the type has elsewhere.
        Returned::Object { handle, .. } | Returned::Value(Value::Object(handle)) => {
            put_handle(OBJECT, *handle, out);
        }
        Returned::Value(Value::Function(handle)) => put_handle(FUNCTION, *handle, out),
        Returned::Value(Value::Module(handle)) => put_handle(MODULE, *handle, out),
        Returned::Value(value) => {
            let code = code_of(value);
            put_head(code, &[code], out);
            put_value(value, out);
        }
    }
}

/// Writes the type codes of a result, and what it was at the peer.
fn put_head(code_at_peer: i32, codes: &[i32], out: &mut Vec<u8>) {
    put_count(1 + codes.len(), out);
    for &code in [INT].iter().chain(codes) {
        out.put_i32(code);
    }
    out.put_i64(code_at_peer.into());
}

fn put_tensor(code: i32, tensor: &TensorView, handle: u64, out: &mut Vec<u8>) {
    put_head(code, &[TENSOR_VIEW, POINTER], out);
    tensor::put(tensor, out);
    out.put_u64(handle);
}

fn put_handle(code: i32, handle: u64, out: &mut Vec<u8>) {
    put_head(code, &[POINTER], out);
    out.put_u64(handle);
}

pub(in crate::dialect) fn put_bulk_return(bulk: Bulk, out: &mut Vec<u8>) {
    let code = code_of_bulk(bulk.kind);
    put_head(code, &[code], out);
    out.put_u64(bulk.nbytes);
}

pub(in crate::dialect) fn returned(
    values: Values<'_>,
    offset: u64,
) -> Result<Returned<'_>, DecodeError> {
    let (code, value) = match parts(values, offset, &TYPES)? {
        Parts::Known(returned) => return Ok(returned),
        Parts::Other(code, value) => (code, value),
    };
    Ok(match (code, value) {
        (FUNCTION, Value::Pointer(handle)) => Returned::Value(Value::Function(handle)),
        (MODULE, Value::Pointer(handle)) => Returned::Value(Value::Module(handle)),
        (OBJECT, Value::Pointer(handle)) => Returned::Object {
            type_index: OBJECT.into(),
            handle,
        },
        // A code that nobody knows says nothing of the pointer under it.
        (FIRST_UNKNOWN.., value @ Value::Pointer(_))
        | (UINT, value @ Value::Int(_))
        | (BOOL, value @ Value::Bool(_)) => Returned::Value(value),
        (code, value) if code_of(&value) == code => Returned::Value(value),
        (code, value) => return Err(mismatch(offset, code, &value)),
    })
}

pub(in crate::dialect) fn bulk_return(packet: &[u8]) -> Result<Option<Tail>, DecodeError> {
    let field = "head of a result";
    let mut reader = Reader::new(packet, 0);
    reader.bytes(field, START)?;
    if reader.i32(field)? != 2 || reader.i32(field)? != INT {
        return Ok(None);
    }
    let code = reader.i32(field)?;
    let kind = match code {
        STR => BulkKind::Text,
        BYTES => BulkKind::Bytes,
        _ => return Ok(None),
    };
    if reader.i64(field)? != i64::from(code) {
        return Ok(None);
    }
    let nbytes = reader.u64(field)?;
    Ok(Some(Tail {
        head: reader.offset(),
        bulk: Bulk { kind, nbytes },
    }))
}

//! Bytes put together by hand, from the layouts as the specification has them. `rpc-proto` has no part in
//! it, so that what it makes of these bytes is a second opinion.

use rpc_proto::Dialect;

pub(super) fn i32(value: i32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

pub(super) fn u64(value: u64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

pub(super) fn i64(value: i64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

pub(super) fn f64(value: f64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

/// One after the other.
pub(super) fn all(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.concat()
}

/// Length in 64 bits, code, body.
pub(super) fn packet(code: i32, body: &[Vec<u8>]) -> Vec<u8> {
    let body = all(body);
    all(&[u64(body.len() as u64 + 4), i32(code), body])
}

/// The same with a length that is off by so much.
pub(super) fn packet_off_by(off: i64, code: i32, body: &[Vec<u8>]) -> Vec<u8> {
    let mut packet = packet(code, body);
    let (length, _) = packet.split_at_mut(8);
    let right = i64::from_le_bytes(length.try_into().expect("eight bytes"));
    length.copy_from_slice(&(right + off).to_le_bytes());
    packet
}

/// Length in 32 bits, text.
pub(super) fn frame(text: &[u8]) -> Vec<u8> {
    let length = i32::try_from(text.len()).expect("a short text");
    all(&[i32(length), text.to_vec()])
}

/// Magic or code, length in 32 bits, key.
pub(super) fn handshake(magic: i32, key: &[u8]) -> Vec<u8> {
    let length = i32::try_from(key.len()).expect("a short key");
    all(&[i32(magic), i32(length), key.to_vec()])
}

/// Length in 64 bits, bytes.
pub(super) fn sized(bytes: &[u8]) -> Vec<u8> {
    all(&[u64(bytes.len() as u64), bytes.to_vec()])
}

pub(super) fn device(kind: i32, id: i32) -> Vec<u8> {
    all(&[i32(kind), i32(id)])
}

/// Code, bits and lanes.
pub(super) type Dtype = (u8, u8, u16);

pub(super) const FLOAT32: Dtype = (2, 32, 1);
pub(super) const INT64: Dtype = (0, 64, 1);

pub(super) fn dtype((code, bits, lanes): Dtype) -> Vec<u8> {
    [&[code, bits][..], &lanes.to_le_bytes()].concat()
}

/// A tensor on the first processor.
pub(super) fn tensor(data: u64, dtype: Dtype, shape: &[i64], byte_offset: u64) -> Vec<u8> {
    let dimensions = i32(i32::try_from(shape.len()).expect("few dimensions"));
    let shape: Vec<_> = shape.iter().flat_map(|size| i64(*size)).collect();
    all(&[
        u64(data),
        device(1, 0),
        dimensions,
        self::dtype(dtype),
        shape,
        u64(byte_offset),
    ])
}

/// A packed value: the number of its type, and its bytes.
pub(super) type Packed = (i32, Vec<u8>);

/// A sequence of packed values: in the `ffi` dialect each behind its type, in the `legacy` dialect all
/// behind all types.
pub(super) fn values(dialect: Dialect, values: &[Packed]) -> Vec<u8> {
    let count = i32(i32::try_from(values.len()).expect("few values"));
    let types = values.iter().map(|(kind, _)| i32(*kind));
    let bytes = values.iter().map(|(_, bytes)| bytes.clone());
    match dialect {
        Dialect::Legacy => all(&[count, types.flatten().collect(), bytes.flatten().collect()]),
        _ => {
            let each = types.zip(bytes).flat_map(|(kind, bytes)| [kind, bytes]);
            all(&[count, each.flatten().collect()])
        }
    }
}

/// How a dialect packs a value where it needs no object for it.
pub(super) fn packed(dialect: Dialect, value: &Value<'_>) -> Packed {
    let pick = |ffi, legacy| match dialect {
        Dialect::Legacy => legacy,
        _ => ffi,
    };
    match value {
        Value::None => (pick(0, 4), Vec::new()),
        Value::Int(value) => (pick(1, 0), i64(*value)),
        Value::Bool(value) => (pick(2, 0), i64((*value).into())),
        Value::Float(value) => (pick(3, 2), f64(*value)),
        Value::Pointer(address) => (pick(4, 3), u64(*address)),
        // Four bytes of padding.
        Value::Dtype(value) => (5, all(&[dtype(*value), i32(0)])),
        Value::Device(kind, id) => (6, device(*kind, *id)),
        Value::Tensor(bytes) => (7, bytes.clone()),
        Value::Str(text) => (pick(8, 11), sized(text.as_bytes())),
        Value::Bytes(bytes) => (pick(9, 12), sized(bytes)),
        Value::Function(handle) => (pick(68, 10), u64(*handle)),
        Value::Module(handle) => (pick(73, 9), u64(*handle)),
        Value::Object(handle) => {
            let inner = i32(pick(115, 9));
            (pick(115, 8), all(&[inner, u64(*handle)]))
        }
    }
}

/// Text that tvm-ffi keeps as an object, or small enough inside a value.
pub(super) fn ffi_text_object(text: &str) -> Packed {
    let outer = if text.len() <= 7 { 11 } else { 65 };
    (outer, all(&[i32(65), sized(text.as_bytes())]))
}

/// Bytes of that kind.
pub(super) fn ffi_bytes_object(bytes: &[u8]) -> Packed {
    let outer = if bytes.len() <= 7 { 12 } else { 66 };
    (outer, all(&[i32(66), sized(bytes)]))
}

/// A value to pack.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    None,
    Int(i64),
    Bool(bool),
    Float(f64),
    Pointer(u64),
    Dtype(Dtype),
    Device(i32, i32),
    Tensor(Vec<u8>),
    Str(&'a str),
    Bytes(&'a [u8]),
    Function(u64),
    Module(u64),
    Object(u64),
}

//! Values, requests and answers written by hand, byte for byte, in every spelling that there is.

use rpc_proto::Device;
use rpc_proto::codes::PacketCode;

// Type indices, as they stand in packets.
pub(super) const NONE: i32 = 0;
pub(super) const INT: i32 = 1;
pub(super) const BOOL: i32 = 2;
pub(super) const FLOAT: i32 = 3;
pub(super) const POINTER: i32 = 4;
pub(super) const DATA_TYPE: i32 = 5;
pub(super) const DEVICE: i32 = 6;
pub(super) const TENSOR_VIEW: i32 = 7;
pub(super) const RAW_STR: i32 = 8;
pub(super) const RAW_BYTES: i32 = 9;
pub(super) const SMALL_STR: i32 = 11;
pub(super) const SMALL_BYTES: i32 = 12;
pub(super) const STR: i32 = 65;
pub(super) const BYTES: i32 = 66;
pub(super) const FUNCTION: i32 = 68;
pub(super) const SHAPE: i32 = 69;
pub(super) const TENSOR: i32 = 70;
pub(super) const MODULE: i32 = 73;
pub(super) const OBJECT: i32 = 115;

/// The longest text that a server may call small.
pub(super) const SMALL: usize = 7;

/// A value: its type index, and its bytes.
pub(super) fn value(index: i32, bytes: &[u8]) -> Vec<u8> {
    [&index.to_le_bytes(), bytes].concat()
}

pub(super) fn none() -> Vec<u8> {
    value(NONE, &[])
}

pub(super) fn int(number: i64) -> Vec<u8> {
    value(INT, &number.to_le_bytes())
}

pub(super) fn boolean(number: i64) -> Vec<u8> {
    value(BOOL, &number.to_le_bytes())
}

pub(super) fn float(number: f64) -> Vec<u8> {
    value(FLOAT, &number.to_le_bytes())
}

pub(super) fn pointer(address: u64) -> Vec<u8> {
    value(POINTER, &address.to_le_bytes())
}

pub(super) fn device(kind: i32, id: i32) -> Vec<u8> {
    value(DEVICE, &[kind.to_le_bytes(), id.to_le_bytes()].concat())
}

/// Text or bytes right behind their length: as 8 and 9.
pub(super) fn raw(index: i32, bytes: &[u8]) -> Vec<u8> {
    value(index, &sized(bytes))
}

/// Text or bytes behind an inner type index and their length: as 11 and 65, 12 and 66.
pub(super) fn boxed(index: i32, inner: i32, bytes: &[u8]) -> Vec<u8> {
    value(index, &value(inner, &sized(bytes)))
}

/// A text in each spelling that a receiver has to take, with the name of the spelling.
pub(super) fn texts(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = text.as_bytes();
    let mut spelled = vec![
        ("as-8", raw(RAW_STR, bytes)),
        ("as-65", boxed(STR, STR, bytes)),
    ];
    if bytes.len() <= SMALL {
        spelled.push(("as-11", boxed(SMALL_STR, STR, bytes)));
    }
    spelled
}

/// The same for bytes.
pub(super) fn byte_strings(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut spelled = vec![
        ("as-9", raw(RAW_BYTES, bytes)),
        ("as-66", boxed(BYTES, BYTES, bytes)),
    ];
    if bytes.len() <= SMALL {
        spelled.push(("as-12", boxed(SMALL_BYTES, BYTES, bytes)));
    }
    spelled
}

/// A tensor, without the index before it: its address, device, data type, sizes and byte offset.
pub(super) fn tensor(
    data: u64,
    device: Device,
    (code, bits, lanes): (u8, u8, u16),
    shape: &[i64],
    byte_offset: u64,
) -> Vec<u8> {
    let dimensions = u32::try_from(shape.len()).unwrap_or(u32::MAX);
    let mut out = data.to_le_bytes().to_vec();
    out.extend_from_slice(&device.device_type.0.to_le_bytes());
    out.extend_from_slice(&device.id.to_le_bytes());
    out.extend_from_slice(&dimensions.to_le_bytes());
    out.extend_from_slice(&[code, bits]);
    out.extend_from_slice(&lanes.to_le_bytes());
    out.extend(shape.iter().flat_map(|size| size.to_le_bytes()));
    out.extend_from_slice(&byte_offset.to_le_bytes());
    out
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

/// A sequence of values: how many, and each.
pub(super) fn sequence(values: &[Vec<u8>]) -> Vec<u8> {
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    [&count.to_le_bytes(), values.concat().as_slice()].concat()
}

/// A packet: its length, its code and its body.
pub(super) fn packet(code: PacketCode, body: &[u8]) -> Vec<u8> {
    let nbytes = body.len() as u64 + 4;
    [&nbytes.to_le_bytes(), &code.0.to_le_bytes()[..], body].concat()
}

/// The call of a function.
pub(super) fn call(function: u64, args: &[Vec<u8>]) -> Vec<u8> {
    let body = [&function.to_le_bytes(), sequence(args).as_slice()].concat();
    packet(PacketCode::CALL_FUNC, &body)
}

/// A syscall.
pub(super) fn syscall(code: PacketCode, args: &[Vec<u8>]) -> Vec<u8> {
    packet(code, &sequence(args))
}

/// An init packet of this version.
pub(super) fn init(version: &str, constructor: &[Vec<u8>]) -> Vec<u8> {
    let body = [sized(version.as_bytes()), sequence(constructor)].concat();
    packet(PacketCode::INIT_SERVER, &body)
}

/// A return packet of these values.
pub(super) fn returned(values: &[Vec<u8>]) -> Vec<u8> {
    packet(PacketCode::RETURN, &sequence(values))
}

/// The result of a call: a type index, and the value.
pub(super) fn result(index: i32, value: Vec<u8>) -> Vec<u8> {
    returned(&[int(index.into()), value])
}

/// The ways in which a server may return a text.
pub(super) fn text_results(text: &str) -> Vec<Vec<u8>> {
    let value = raw(RAW_STR, text.as_bytes());
    let mut allowed = vec![result(STR, value.clone())];
    if text.len() <= SMALL {
        allowed.push(result(SMALL_STR, value));
    }
    allowed
}

/// The ways in which a server may return bytes.
pub(super) fn bytes_results(bytes: &[u8]) -> Vec<Vec<u8>> {
    let value = raw(RAW_BYTES, bytes);
    let mut allowed = vec![result(BYTES, value.clone())];
    if bytes.len() <= SMALL {
        allowed.push(result(SMALL_BYTES, value));
    }
    allowed
}

/// The answer by an exception.
pub(super) fn exception(text: &str) -> Vec<u8> {
    let body = sequence(&[raw(RAW_STR, text.as_bytes())]);
    packet(PacketCode::EXCEPTION, &body)
}

//! Defects of memory and of copies.

use rpc_proto::codes::PacketCode;
use rpc_proto::{Packet, Syscall, Value};

use super::{answers, bytes, code, packet, values};
use crate::broken::{Memory, Out, Way, on};

/// Where the byte offset of the tensor of a copy packet is.
pub(in crate::broken) fn offset_of_copy(message: &[u8]) -> Option<std::ops::Range<usize>> {
    let dimensions = message
        .get(28..32)?
        .try_into()
        .map(i32::from_le_bytes)
        .ok()?;
    let start = 36 + 8 * usize::try_from(dimensions).ok()?;
    (start + 8 <= message.len()).then_some(start..start + 8)
}

fn offset_lost(way: Way, mut message: Vec<u8>, of: PacketCode) -> Vec<Out> {
    if way == Way::Request
        && code(&message) == Some(of)
        && let Some(offset) = offset_of_copy(&message)
    {
        message[offset].fill(0);
    }
    on(message)
}

pub(super) fn offset_lost_up(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    offset_lost(way, message, PacketCode::COPY_TO_REMOTE)
}

pub(super) fn offset_lost_down(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    offset_lost(way, message, PacketCode::COPY_FROM_REMOTE)
}

/// Changes the bytes behind the code of a copy ack.
fn copied(way: Way, message: Vec<u8>, change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && code(&message) == Some(PacketCode::COPY_ACK) {
        let body = change(&message[12..]);
        let length = body.len() as u64 + 4;
        return on([&length.to_le_bytes()[..], &message[8..12], &body].concat());
    }
    on(message)
}

pub(super) fn copy_one_byte_short(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    copied(way, message, |data| {
        data[..data.len().saturating_sub(1)].to_vec()
    })
}

pub(super) fn copy_with_length(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    copied(way, message, |data| {
        [&(data.len() as u64).to_le_bytes()[..], data].concat()
    })
}

pub(super) fn null_memory(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let allocated = answers(memory, PacketCode::DEV_ALLOC_DATA)
        || answers(memory, PacketCode::DEV_ALLOC_DATA_WITH_SCOPE);
    values(way, message, |values| {
        if allocated {
            vec![Value::Pointer(0)]
        } else {
            values
        }
    })
}

pub(super) fn no_processor(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    let asked = answers(memory, PacketCode::DEV_GET_ATTR);
    values(way, message, |values| match values[..] {
        [Value::Int(1)] if asked => vec![Value::Int(0)],
        _ => values,
    })
}

pub(super) fn scope_lost(_: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request
        && let Some(Packet::Syscall(Syscall::AllocDataWithScope { tensor, .. })) = packet(&message)
    {
        let scope = None;
        return on(bytes(&Packet::Syscall(Syscall::AllocDataWithScope {
            tensor,
            scope,
        })));
    }
    on(message)
}

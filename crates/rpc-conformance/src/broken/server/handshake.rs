//! Defects of the handshake.

use rpc_proto::codes::HandshakeCode;

use crate::broken::{Memory, Out, Way, on};
use crate::roles::server::introduction;

pub(super) fn any_match_key(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && memory.is_first(way) && message.len() == 4 {
        let accepted = [&introduction(b"server:key")[4..]].concat();
        return on([&HandshakeCode::SUCCESS.0.to_le_bytes()[..], &accepted].concat());
    }
    on(message)
}

pub(super) fn mismatch_as_duplicate(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && memory.is_first(way) && message.len() == 4 {
        return on(HandshakeCode::DUPLICATE.0.to_le_bytes().to_vec());
    }
    on(message)
}

pub(super) fn key_missing(memory: &mut Memory, way: Way, mut message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && memory.is_first(way) {
        message.truncate(4);
    }
    on(message)
}

pub(super) fn handshake_unanswered(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Answer && memory.is_first(way) {
        return Vec::new();
    }
    on(message)
}

/// The handshake of a client without the options behind its match key.
pub(in crate::broken) fn timeout_lost(memory: &mut Memory, way: Way, message: Vec<u8>) -> Vec<Out> {
    if way == Way::Request && memory.is_first(way) && message.len() > 8 {
        let key = &message[8..];
        let options = key
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(key.len());
        return on(introduction(&key[..options]));
    }
    on(message)
}

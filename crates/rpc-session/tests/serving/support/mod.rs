//! Clients, sessions and streams that do what a test tells them.

use std::sync::OnceLock;
use std::time::Duration;

use rpc_proto::packet::encode_returned;
use rpc_proto::{
    DataType, Device, Dialect, Limits, OwnedValue, Packet, Returned, Syscall, TensorView, Value,
    Values,
};

pub(crate) mod client;
pub(crate) mod memory;
pub(crate) mod stage;

pub(crate) use client::Client;
pub(crate) use stage::{Act, Gate, Stage};

/// When something that ought to happen has not happened for too long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Two numbers, from the second on, in the middle of the memory of a device.
pub(crate) fn tensor() -> TensorView {
    TensorView {
        data: 0x1000,
        device: Device::cpu(1),
        dtype: DataType::FLOAT32,
        shape: [2, 1].as_slice().into(),
        byte_offset: 4,
    }
}

/// Bytes of which each part tells where it stands; at most 64 MiB.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    static LONGEST: OnceLock<Vec<u8>> = OnceLock::new();
    let byte = |at: usize| (at ^ (at >> 8) ^ (at >> 16)).to_le_bytes()[0];
    let longest = LONGEST.get_or_init(|| (0..64 << 20).map(byte).collect());
    longest[..length].to_vec()
}

fn limits() -> Limits {
    Limits::default().with_packet(1 << 40).with_payload(1 << 62)
}

pub(crate) fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(Dialect::Ffi, limits(), &mut out).unwrap();
    out
}

pub(crate) fn encoded_returned(returned: &Returned<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_returned(Dialect::Ffi, returned, limits(), &mut out).unwrap();
    out
}

pub(crate) fn init() -> Packet<'static> {
    Packet::init(Values::default())
}

/// An init packet that asks for this constructor.
pub(crate) fn init_with<const N: usize>(values: [OwnedValue; N]) -> Packet<'static> {
    Packet::init(Values::from_iter(values))
}

pub(crate) fn call<const N: usize>(function: u64, args: [OwnedValue; N]) -> Packet<'static> {
    Packet::Call {
        function,
        args: Values::from_iter(args),
        bulk: None,
    }
}

pub(crate) fn look_up(name: &'static str) -> Packet<'static> {
    Packet::Syscall(Syscall::GetGlobalFunc { name: name.into() })
}

pub(crate) fn pointer(address: u64) -> Packet<'static> {
    Packet::Return(Values::from_iter([Value::Pointer(address)]))
}

pub(crate) fn exception(text: &str) -> Packet<'_> {
    Packet::Exception { text: text.into() }
}

/// An error with all of its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

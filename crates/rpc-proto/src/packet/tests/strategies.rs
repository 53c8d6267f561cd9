//! Packets of every kind, at random.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::num::f64::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
use proptest::option;
use proptest::prelude::*;

use crate::{
    Bulk, BulkKind, DataType, Device, DeviceAttr, DeviceType, OwnedValue, Packet, Returned, Shape,
    Syscall, TensorView, TypeCode, Value, Values,
};

/// Sizes that the protocol carries as signed integers.
fn size() -> impl Strategy<Value = u64> {
    0..=i64::MAX.unsigned_abs()
}

/// Texts around the length at which tvm-ffi stops to keep them inside a value.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,3}", "[a-z]{6,9}", any::<String>()]
}

fn device() -> impl Strategy<Value = Device> {
    (any::<i32>(), any::<i32>())
        .prop_map(|(device_type, id)| Device::new(DeviceType(device_type), id))
}

fn dtype() -> impl Strategy<Value = DataType> {
    (any::<u8>(), any::<u8>(), any::<u16>()).prop_map(|(code, bits, lanes)| DataType {
        code: TypeCode(code),
        bits,
        lanes,
    })
}

fn tensor() -> impl Strategy<Value = TensorView> {
    let shape = vec(any::<i64>(), 0..=64).prop_map(Shape::from_iter);
    (any::<u64>(), device(), dtype(), shape, any::<u64>()).prop_map(
        |(data, device, dtype, shape, byte_offset)| TensorView {
            data,
            device,
            dtype,
            shape,
            byte_offset,
        },
    )
}

/// Every kind of value. NaN is left out, since it does not equal itself.
fn value() -> impl Strategy<Value = OwnedValue> {
    let float = POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE;
    prop_oneof![
        Just(Value::None),
        any::<i64>().prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        float.prop_map(Value::Float),
        any::<u64>().prop_map(Value::Pointer),
        dtype().prop_map(Value::DataType),
        device().prop_map(Value::Device),
        tensor().prop_map(Value::Tensor),
        text().prop_map(Value::from),
        vec(any::<u8>(), 0..20).prop_map(Value::from),
        any::<u64>().prop_map(Value::Function),
        any::<u64>().prop_map(Value::Module),
        any::<u64>().prop_map(Value::Object),
    ]
}

pub(crate) fn values() -> impl Strategy<Value = Values<'static>> {
    vec(value(), 0..6).prop_map(Values::from_iter)
}

/// Every kind of result. Objects have the type indices that objects have at a peer and no other result
/// uses.
pub(crate) fn returned() -> impl Strategy<Value = Returned<'static>> {
    let object = prop_oneof![
        Just(69),
        Just(71),
        Just(72),
        Just(74),
        115..=i64::from(i32::MAX)
    ];
    prop_oneof![
        value().prop_map(Returned::Value),
        (object, any::<u64>())
            .prop_map(|(type_index, handle)| Returned::Object { type_index, handle }),
        (tensor(), any::<u64>()).prop_map(|(tensor, handle)| Returned::Tensor { tensor, handle }),
    ]
}

/// All thirteen syscalls, as the `ffi` dialect carries them.
fn syscall() -> impl Strategy<Value = Syscall<'static>> {
    let on_device = (device(), any::<u64>(), 0..7).prop_map(|(device, word, which)| match which {
        0 => Syscall::SetDevice { device },
        1 => Syscall::FreeData { device, data: word },
        2 => Syscall::StreamSync {
            device,
            stream: word,
        },
        3 => Syscall::CreateStream { device },
        4 => Syscall::FreeStream {
            device,
            stream: word,
        },
        5 => Syscall::SetStream {
            device,
            stream: word,
        },
        _ => Syscall::GetCurrentStream { device },
    });
    prop_oneof![
        7 => on_device,
        1 => text().prop_map(|name| Syscall::GetGlobalFunc { name: Cow::Owned(name) }),
        1 => any::<u64>().prop_map(|handle| Syscall::FreeHandle { handle, kind: None }),
        1 => (device(), any::<i32>()).prop_map(|(device, attr)| Syscall::GetAttr {
            device,
            attr: DeviceAttr(attr),
        }),
        1 => (device(), size(), size(), dtype()).prop_map(|(device, nbytes, alignment, dtype)| {
            Syscall::AllocData { device, nbytes, alignment, dtype }
        }),
        1 => (tensor(), tensor(), any::<u64>())
            .prop_map(|(from, to, stream)| Syscall::CopyAmong { from, to, stream }),
        1 => (tensor(), option::of(text())).prop_map(|(tensor, scope)| {
            Syscall::AllocDataWithScope { tensor, scope: scope.map(Cow::Owned) }
        }),
    ]
}

/// What a client sends. The last argument of a call is bulk only from a certain length on.
pub(crate) fn request() -> impl Strategy<Value = Packet<'static>> {
    prop_oneof![
        1 => Just(Packet::Shutdown),
        1 => (text(), values()).prop_map(|(version, constructor)| Packet::Init {
            version: Cow::Owned(version),
            constructor,
        }),
        2 => (any::<u64>(), values(), option::of(bulk())).prop_map(|(function, args, bulk)| {
            Packet::Call { function, args, bulk }
        }),
        1 => (tensor(), payload())
            .prop_map(|(tensor, nbytes)| Packet::CopyFrom { tensor, nbytes }),
        1 => (tensor(), payload()).prop_map(|(tensor, nbytes)| Packet::CopyTo { tensor, nbytes }),
        4 => syscall().prop_map(Packet::Syscall),
    ]
}

fn bulk() -> impl Strategy<Value = Bulk> {
    (bulk_kind(), 65_536..1_u64 << 36).prop_map(|(kind, nbytes)| Bulk { kind, nbytes })
}

pub(crate) fn bulk_kind() -> impl Strategy<Value = BulkKind> {
    prop_oneof![Just(BulkKind::Text), Just(BulkKind::Bytes)]
}

/// What a server sends. A result of text or bytes is bulk only from a certain length on.
pub(crate) fn answer() -> impl Strategy<Value = Packet<'static>> {
    prop_oneof![
        values().prop_map(Packet::Return),
        bulk().prop_map(|Bulk { kind, nbytes }| Packet::BulkReturn { kind, nbytes }),
        any::<String>().prop_map(|text| Packet::Exception {
            text: Cow::Owned(text)
        }),
        payload().prop_map(|nbytes| Packet::CopyAck { nbytes }),
    ]
}

pub(crate) fn packet() -> impl Strategy<Value = Packet<'static>> {
    prop_oneof![2 => request(), 1 => answer()]
}

/// Lengths of a payload within the default limits.
fn payload() -> impl Strategy<Value = u64> {
    prop_oneof![0..64_u64, 0..=64_u64 << 30]
}

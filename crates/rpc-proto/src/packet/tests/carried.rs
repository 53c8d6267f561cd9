//! What a dialect makes of packets: not every dialect can say everything.

use super::*;

/// The packet as it arrives.
pub(super) fn carried(packet: Packet<'_>, dialect: Dialect) -> Packet<'_> {
    match packet {
        Packet::Init {
            version,
            constructor,
        } => Packet::Init {
            version,
            constructor: carried_values(constructor, dialect),
        },
        Packet::Call {
            function,
            args,
            bulk,
        } => Packet::Call {
            function,
            args: carried_values(args, dialect),
            bulk,
        },
        Packet::Return(values) => Packet::Return(carried_values(values, dialect)),
        Packet::Syscall(Syscall::FreeHandle { handle, kind }) => {
            let kind = match dialect {
                Dialect::Ffi => None,
                Dialect::Legacy => Some(kind.unwrap_or(HandleKind::Object)),
            };
            Packet::Syscall(Syscall::FreeHandle { handle, kind })
        }
        packet => packet,
    }
}

/// The result of a call as it arrives.
pub(super) fn carried_result(returned: Returned<'_>, dialect: Dialect) -> Returned<'_> {
    match returned {
        // A kind of its own only as an argument: in results objects have the number of their type.
        Returned::Value(Value::Object(handle)) => object(115, handle, dialect),
        Returned::Object { type_index, handle } => object(type_index, handle, dialect),
        // A tensor has a handle.
        Returned::Value(Value::Tensor(tensor)) => Returned::Tensor { tensor, handle: 0 },
        Returned::Value(value) => Returned::Value(carried_value(value, dialect)),
        same => same,
    }
}

fn object(type_index: i64, handle: u64, dialect: Dialect) -> Returned<'static> {
    let type_index = match dialect {
        Dialect::Ffi => type_index,
        Dialect::Legacy => 8,
    };
    Returned::Object { type_index, handle }
}

fn carried_values(values: Values<'_>, dialect: Dialect) -> Values<'_> {
    let values = values.into_iter();
    values.map(|value| carried_value(value, dialect)).collect()
}

fn carried_value(value: Value<'_>, dialect: Dialect) -> Value<'_> {
    match (value, dialect) {
        (Value::Bool(value), Dialect::Legacy) => Value::Int(value.into()),
        (value, _) => value,
    }
}

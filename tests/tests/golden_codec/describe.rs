//! Packets in the words of the recorder, which read them with a decoder of its own.

use rpc_proto::{DataType, Device, HandleKind, Packet, Syscall, TensorView, Value};
use serde_json::{Value as Json, json};

/// What a packet says: code, and as its kind has them version, function, arguments, tensor and number of
/// bytes.
pub(crate) fn packet(packet: &Packet<'_>) -> Json {
    let code = packet.code().0;
    match packet {
        Packet::Shutdown => json!({"code": code}),
        Packet::Init {
            version,
            constructor,
        } => {
            json!({"code": code, "version": version, "args": values(constructor)})
        }
        Packet::Call { function, args, .. } => {
            json!({"code": code, "func": address(*function), "args": values(args)})
        }
        Packet::Return(args) => json!({"code": code, "args": values(args)}),
        Packet::Exception { text } => json!({"code": code, "args": [text]}),
        Packet::CopyFrom { tensor, nbytes } | Packet::CopyTo { tensor, nbytes } => {
            json!({"code": code, "tensor": self::tensor(tensor), "data_bytes": nbytes})
        }
        Packet::CopyAck { .. } => json!({"code": code}),
        Packet::Syscall(call) => json!({"code": code, "args": syscall(call)}),
        other => panic!("{other:?} is not in the recordings"),
    }
}

/// The same of what the recorder says, without offsets and the forms of texts and bytes.
pub(crate) fn recorded(decoded: &Json) -> Json {
    let mut said = decoded.as_object().unwrap().clone();
    said.retain(|key, _| {
        ["code", "version", "func", "args", "tensor", "data_bytes"].contains(&&**key)
    });
    if let Some(Json::Array(args)) = said.get_mut("args") {
        for arg in args {
            let value = &arg["value"];
            let inside = value
                .get("inner_type")
                .and_then(|_| value.get("value").or(value.get("handle")));
            *arg = inside.unwrap_or(value).clone();
        }
    }
    said.into()
}

fn syscall(syscall: &Syscall<'_>) -> Json {
    match syscall {
        Syscall::GetGlobalFunc { name } => json!([name]),
        Syscall::FreeHandle { handle, kind: None } => json!([address(*handle)]),
        Syscall::FreeHandle {
            handle,
            kind: Some(kind),
        } => json!([address(*handle), type_code(*kind)]),
        Syscall::SetDevice { device: d }
        | Syscall::CreateStream { device: d }
        | Syscall::GetCurrentStream { device: d } => json!([device(*d)]),
        Syscall::GetAttr { device: d, attr } => json!([device(*d), attr.0]),
        Syscall::AllocData {
            device: d,
            nbytes,
            alignment,
            dtype: t,
        } => {
            json!([device(*d), nbytes, alignment, dtype(*t)])
        }
        Syscall::FreeData {
            device: d,
            data: pointer,
        }
        | Syscall::StreamSync {
            device: d,
            stream: pointer,
        }
        | Syscall::FreeStream {
            device: d,
            stream: pointer,
        }
        | Syscall::SetStream {
            device: d,
            stream: pointer,
        } => json!([device(*d), address(*pointer)]),
        Syscall::CopyAmong { from, to, stream } => {
            json!([tensor(from), tensor(to), address(*stream)])
        }
        Syscall::AllocDataWithScope { tensor: t, scope } => json!([tensor(t), scope]),
        other => panic!("{other:?} is not in the recordings"),
    }
}

fn type_code(kind: HandleKind) -> i32 {
    match kind {
        HandleKind::Object => 8,
        HandleKind::Module => 9,
        HandleKind::Function => 10,
        HandleKind::Tensor => 13,
        other => panic!("{other:?} is not in the recordings"),
    }
}

fn values(values: &[Value<'_>]) -> Json {
    values.iter().map(value).collect()
}

fn value(value: &Value<'_>) -> Json {
    match value {
        Value::None => Json::Null,
        Value::Int(int) => json!(int),
        Value::Bool(bool) => json!(u8::from(*bool)),
        Value::Float(float) if float.is_finite() => json!(float),
        Value::Float(float) => json!(float.to_string().to_lowercase()),
        Value::DataType(t) => json!(dtype(*t)),
        Value::Device(d) => device(*d),
        Value::Tensor(t) => tensor(t),
        Value::Str(text) => json!(text),
        Value::Bytes(bytes) => json!(hex(bytes)),
        Value::Pointer(word)
        | Value::Function(word)
        | Value::Module(word)
        | Value::Object(word) => {
            json!(address(*word))
        }
        other => panic!("{other:?} is not in the recordings"),
    }
}

fn tensor(tensor: &TensorView) -> Json {
    json!({
        "data": address(tensor.data),
        "device": device(tensor.device),
        "ndim": tensor.shape.len(),
        "dtype": dtype(tensor.dtype),
        "shape": &*tensor.shape,
        "byte_offset": tensor.byte_offset,
    })
}

fn device(device: Device) -> Json {
    json!([device.device_type.0, device.id])
}

/// The recorder writes 32 bytes and how many there are.
fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 32;
    let shown = bytes
        .iter()
        .take(SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if bytes.len() <= SHOWN {
        shown
    } else {
        format!("{shown}..({} bytes)", bytes.len())
    }
}

/// The recorder writes a bool's width.
fn dtype(dtype: DataType) -> String {
    if dtype == DataType::BOOL {
        "bool8".to_owned()
    } else {
        dtype.to_string()
    }
}

fn address(address: u64) -> String {
    format!("{address:#x}")
}

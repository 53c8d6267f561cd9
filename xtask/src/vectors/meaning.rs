//! What a message comes to, in words that no language has for its own.

use rpc_proto::handshake::{SessionKey, explain_answer, explain_opening};
use rpc_proto::tracker::{Allocation, Reply, Request, ServerAddr, ServerInfo, Summary};
use rpc_proto::{
    DataType, Dialect, Limits, Packet, Returned, TensorView, Value, codes::HandshakeCode, packet,
};
use rpc_recording::{Direction, Kind};
use serde_json::{Value as Json, json};

use super::vector::Vector;

/// The meaning of a message beyond its fields, if it has one; or what is wrong with it as an answer.
pub(super) fn of(vector: &Vector, dialect: Dialect) -> Result<Option<Json>, Json> {
    let bytes = &vector.bytes;
    Ok(match (vector.kind, vector.direction) {
        (Kind::Json, Direction::C2s) => bytes
            .get(4..)
            .and_then(|text| Request::decode(text).ok())
            .map(|asked| request(&asked)),
        (Kind::Json, Direction::S2c) => bytes
            .get(4..)
            .and_then(|text| Reply::decode(text).ok())
            .map(|answer| reply(&answer)),
        (Kind::Handshake, Direction::C2s) => opening(bytes),
        (Kind::Handshake, Direction::S2c) => answer(bytes),
        (Kind::Packet, _) if vector.answers_call => return result(bytes, dialect),
        _ => None,
    })
}

fn request(request: &Request) -> Json {
    match request {
        Request::Ping => json!({"request": "PING"}),
        Request::Stop { stop_key } => json!({"request": "STOP", "stop_key": stop_key}),
        Request::Put {
            key,
            port,
            match_key,
            custom_addr,
        } => json!({
            "request": "PUT", "key": key, "port": port, "match_key": match_key,
            "custom_addr": custom_addr,
        }),
        Request::Request {
            key,
            user,
            priority,
        } => json!({
            "request": "REQUEST", "key": key, "user": user, "priority": priority.get(),
        }),
        Request::UpdateInfo(info) => json!({"request": "UPDATE_INFO", "server": server(info)}),
        Request::Summary => json!({"request": "SUMMARY"}),
        Request::PendingMatchKeys => json!({"request": "GET_PENDING_MATCHKEYS"}),
        other => json!({"request": format!("{other:?}")}),
    }
}

fn server(info: &ServerInfo) -> Json {
    let ServerInfo { key, addr } = info;
    match addr {
        Some(ServerAddr { host, port }) => {
            json!({"key": key, "host": host, "port": port.number()})
        }
        None => json!({"key": key}),
    }
}

fn reply(reply: &Reply) -> Json {
    match reply {
        Reply::Done => json!({"reply": "done"}),
        Reply::Granted(Allocation {
            host,
            port,
            match_key,
        }) => json!({"reply": "granted", "host": host, "port": port, "match_key": match_key}),
        Reply::Summary(Summary { queues, servers }) => json!({
            "reply": "summary",
            "queues": queues,
            "servers": servers.iter().map(server).collect::<Json>(),
        }),
        Reply::PendingMatchKeys(keys) => json!({"reply": "pending match keys", "keys": keys}),
        Reply::Refused(_) => json!({"reply": "refused"}),
        other => json!({"reply": format!("{other:?}")}),
    }
}

fn opening(bytes: &[u8]) -> Option<Json> {
    let key = explain_opening(bytes, Limits::default()).result.ok()?;
    if let Some(server) = key.strip_prefix("server:") {
        return Some(json!({"role": "server", "key": server}));
    }
    let client = SessionKey::parse(key).ok()?;
    let timeout = client.timeout().map(|timeout| timeout.as_secs_f64());
    Some(json!({
        "role": "client", "match_key": client.match_key(), "session_timeout": timeout,
    }))
}

fn answer(bytes: &[u8]) -> Option<Json> {
    let answer = explain_answer(bytes, Limits::default()).result.ok()?;
    let said = match answer.code {
        HandshakeCode::SUCCESS => "accepted",
        HandshakeCode::DUPLICATE => "duplicate key",
        _ => "key mismatch",
    };
    Some(match answer.key {
        Some(key) => json!({"answer": said, "key": key}),
        None => json!({"answer": said}),
    })
}

/// The result of a call.
fn result(bytes: &[u8], dialect: Dialect) -> Result<Option<Json>, Json> {
    let explained = packet::explain(bytes, dialect, Limits::default());
    let values = match explained.result {
        Ok(Some(Packet::Return(values))) => values,
        _ => return Ok(None),
    };
    match Packet::returned(values, dialect) {
        Ok(returned) => Ok(Some(json!({"result": describe(&returned)}))),
        Err(error) => Err(json!({
            "offset": error.offset(), "field": error.field(), "why": error.to_string(),
        })),
    }
}

fn describe(returned: &Returned<'_>) -> Json {
    match returned {
        Returned::Value(value) => {
            let kind = value.kind();
            let kind = kind
                .strip_prefix("an ")
                .or(kind.strip_prefix("a "))
                .unwrap_or(kind);
            json!({"kind": kind, "value": plain(value)})
        }
        Returned::Object { type_index, handle } => {
            json!({"kind": "object", "type": type_index, "value": address(*handle)})
        }
        Returned::Tensor { tensor, handle } => {
            json!({"kind": "tensor", "value": view(tensor), "handle": address(*handle)})
        }
        other => json!(format!("{other:?}")),
    }
}

fn plain(value: &Value<'_>) -> Json {
    match value {
        Value::None => Json::Null,
        Value::Int(value) => json!(value),
        Value::Bool(value) => json!(value),
        Value::Float(value) if value.is_finite() => json!(value),
        Value::Float(value) => json!(value.to_string().to_lowercase()),
        Value::DataType(dtype) => json!(dtype.to_string()),
        Value::Device(device) => json!([device.device_type.0, device.id]),
        Value::Tensor(tensor) => view(tensor),
        Value::Str(text) => json!(text),
        Value::Bytes(bytes) => json!(super::vector::hex(bytes)),
        Value::Pointer(word)
        | Value::Function(word)
        | Value::Module(word)
        | Value::Object(word) => address(*word),
        other => json!(format!("{other:?}")),
    }
}

fn view(tensor: &TensorView) -> Json {
    let dtype: DataType = tensor.dtype;
    json!({
        "data": address(tensor.data),
        "device": [tensor.device.device_type.0, tensor.device.id],
        "dtype": dtype.to_string(),
        "shape": &*tensor.shape,
        "byte_offset": tensor.byte_offset,
    })
}

fn address(address: u64) -> Json {
    json!(format!("{address:#x}"))
}

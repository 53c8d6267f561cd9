//! The reading in one line.

use rpc_proto::codes::{HandshakeCode, PacketCode};
use rpc_proto::explain::Explanation;
use rpc_proto::handshake::{Answer, KeyError, SessionKey};
use rpc_proto::{DecodeError, Packet};
use serde_json::Value as Json;

use super::Stop;
use super::items::Item;
use super::packet::Parts;

pub(super) fn stopped(what: &str, error: &DecodeError) -> String {
    format!("{what} that cannot be read: {error}")
}

/// The key of a connecting peer; a server says `server:KEY` to a proxy.
pub(super) fn opening(key: &str) -> (String, Option<Stop>) {
    let client = match SessionKey::parse(key) {
        Ok(client) => client,
        Err(KeyError::NotAClient { .. }) if key.starts_with("server:") => {
            return (format!("handshake of a server, key {key:?}"), None);
        }
        Err(error) => {
            let stop = Stop {
                offset: 8,
                field: "key of the peer".to_owned(),
                why: error.to_string(),
            };
            return (format!("handshake, key {key:?}: {error}"), Some(stop));
        }
    };
    let mut note = format!("handshake of a client, match key {:?}", client.match_key());
    if let Some(timeout) = client.timeout() {
        note += &format!(", session timeout {timeout:?}");
    }
    (note, None)
}

pub(super) fn answer(answer: &Answer<'_>) -> String {
    match (&answer.key, answer.code) {
        (Some(key), _) => format!("handshake accepted, key {key:?}"),
        (None, HandshakeCode::DUPLICATE) => "handshake refused: duplicate key".to_owned(),
        (None, HandshakeCode::MISMATCH) => "handshake refused: key mismatch".to_owned(),
        (None, code) => format!("handshake answered: {code}"),
    }
}

pub(super) fn packet(
    code: Option<PacketCode>,
    parts: &Parts<'_>,
    items: &[Item],
    explanation: &Explanation<'_, Option<Packet<'_>>>,
    omitted: u64,
) -> String {
    let Some(code) = code else {
        return match &explanation.result {
            Ok(_) => "packet of no bytes, which means nothing".to_owned(),
            Err(error) => stopped("packet", error),
        };
    };
    let Some(name) = code.name() else {
        return format!("packet of the unknown code {}", code.0);
    };
    let mut note = name.to_owned();
    let values = |items: &[Item]| {
        let texts: Vec<_> = items.iter().map(|item| item.text.clone()).collect();
        texts.join(", ")
    };
    match code {
        PacketCode::SHUTDOWN => {}
        PacketCode::INIT_SERVER => {
            if let Some(version) = parts.version {
                note += &format!(" version {version:?}");
            }
            if !items.is_empty() {
                note += &format!(" ({})", values(items));
            }
        }
        PacketCode::CALL_FUNC => {
            if let Some(function) = parts.function {
                note += &format!(" {function:#x}({})", values(items));
            }
        }
        PacketCode::RETURN => match items {
            [first, rest @ ..] if !rest.is_empty() && first.type_name.as_deref() == Some("Int") => {
                note += " of a call: ";
                if rest[0].value != Json::Null {
                    note += first.meaning.as_ref().unwrap_or(&first.text);
                    note += " ";
                }
                note += &values(rest);
            }
            [] => note += " of no value",
            _ => note += &format!(" {}", values(items)),
        },
        PacketCode::EXCEPTION => note += &format!(" {}", values(items)),
        PacketCode::COPY_FROM_REMOTE | PacketCode::COPY_TO_REMOTE => {
            if let (Some((_, tensor)), Some(nbytes)) = (&parts.tensor, parts.copied) {
                note += &format!(": {nbytes} bytes of {tensor}");
            }
        }
        PacketCode::COPY_ACK => {
            let data = parts.data.map_or(0, |data| data.len() as u64) + omitted;
            note += &format!(": {data} bytes");
        }
        _ => note += &format!("({})", values(items)),
    }
    match &explanation.result {
        Err(_) if omitted > 0 => note += &format!("; {omitted} bytes of it were not recorded"),
        Err(error) => note += &format!("; wrong: {error}"),
        Ok(_) => {}
    }
    note
}

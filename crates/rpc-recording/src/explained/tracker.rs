//! What is said at a tracker.

use rpc_proto::Limits;
use rpc_proto::tracker::{
    Allocation, MessageError, Reply, Request, ServerAddr, explain_frame, explain_greeting,
};
use serde_json::Value as Json;

use super::{Explained, Stop, note};
use crate::Direction;

pub(super) fn greeting(bytes: &[u8]) -> Explained {
    let explanation = explain_greeting(bytes);
    let mut explained = Explained::of(&explanation, &[]);
    explained.note = match &explanation.result {
        Ok(()) => "greeting of a tracker".to_owned(),
        Err(error) => note::stopped("greeting", error),
    };
    explained
}

pub(super) fn frame(bytes: &[u8], direction: Direction, limits: Limits) -> Explained {
    let limit = match direction {
        Direction::C2s => limits.tracker_frame,
        Direction::S2c => limits.tracker_reply,
    };
    let explanation = explain_frame(bytes, limit);
    let mut explained = Explained::of(&explanation, &[]);
    let text = match explanation.result {
        Ok(text) => text,
        Err(error) => {
            explained.note = note::stopped("frame", &error);
            return explained;
        }
    };
    explained.decoded = serde_json::from_slice::<Json>(text).ok();
    let said = match direction {
        Direction::C2s => Request::decode(text).map(|request| describe_request(&request)),
        Direction::S2c => Reply::decode(text).map(|reply| describe_reply(&reply)),
    };
    match said {
        Ok(said) => {
            explained.note = said;
            explained.volatile = crate::volatile::of_frame(text, direction);
        }
        Err(error) => {
            let what = match direction {
                Direction::C2s => "request",
                Direction::S2c => "reply",
            };
            explained.note = format!("{what} that cannot be read: {error}");
            explained.stop = Some(Stop {
                // Where the text starts.
                offset: 4,
                field: match &error {
                    MessageError::Unexpected { field, .. } => (*field).to_owned(),
                    _ => "JSON".to_owned(),
                },
                why: error.to_string(),
            });
        }
    }
    explained
}

fn describe_request(request: &Request) -> String {
    match request {
        Request::Ping => "PING".to_owned(),
        Request::Stop { stop_key } => format!("STOP, stop key {stop_key:?}"),
        Request::Put {
            key,
            port,
            match_key,
            custom_addr,
        } => {
            let at = custom_addr.as_ref();
            let at = at.map(|addr| format!("{addr:?} ")).unwrap_or_default();
            format!("PUT {key:?}: at {at}port {port}, match key {match_key:?}")
        }
        Request::Request {
            key,
            user,
            priority,
        } => {
            let user = match user.as_str() {
                "" => String::new(),
                user => format!(" for {user:?}"),
            };
            format!("REQUEST {key:?}{user}, priority {}", priority.get())
        }
        Request::UpdateInfo(info) => {
            let at = match &info.addr {
                Some(ServerAddr { host: None, port }) => format!(" at port {}", number(port)),
                Some(ServerAddr {
                    host: Some(host),
                    port,
                }) => format!(" at {host:?} port {}", number(port)),
                None => String::new(),
            };
            format!("UPDATE_INFO {:?}{at}", info.key)
        }
        Request::Summary => "SUMMARY".to_owned(),
        Request::PendingMatchKeys => "GET_PENDING_MATCHKEYS".to_owned(),
        _ => "request".to_owned(),
    }
}

fn number(port: &rpc_proto::tracker::Port) -> String {
    port.number()
        .map_or_else(|| "of no number".to_owned(), |port| port.to_string())
}

fn describe_reply(reply: &Reply) -> String {
    match reply {
        Reply::Done => "reply: done".to_owned(),
        Reply::Granted(Allocation {
            host,
            port,
            match_key,
        }) => format!("reply: granted {host:?} port {port}, match key {match_key:?}"),
        Reply::Summary(summary) => format!(
            "reply: summary of {} queues and {} servers",
            summary.queues.len(),
            summary.servers.len()
        ),
        Reply::PendingMatchKeys(keys) => format!("reply: pending match keys {keys:?}"),
        Reply::Refused(reply) => format!("reply: refused, {reply:?}"),
        _ => "reply".to_owned(),
    }
}

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::json::{self, MessageError, string, whole};
use super::summary::{Port, ServerInfo};
use crate::codes::tracker as code;
use crate::{Limits, OverLimit};

/// What a client or a server asks of a tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Is the tracker alive? Answered by [`Reply::Done`](super::Reply::Done).
    Ping,
    /// Ends the tracker. Answered by [`Reply::Done`](super::Reply::Done), or refused.
    Stop {
        /// The secret that the tracker was started with.
        stop_key: String,
    },
    /// Offers a device. Answered by [`Reply::Done`](super::Reply::Done).
    Put {
        /// The key of the queue.
        key: String,
        /// Where the server listens, 1 to 65535.
        port: u16,
        /// What a client must name to the server; good for one session.
        match_key: String,
        /// The address that clients shall use, instead of the one that this connection comes from.
        custom_addr: Option<String>,
    },
    /// Asks for a device. Answered by [`Reply::Granted`](super::Reply::Granted) once there is one,
    /// which may take for ever; to give up is to close the connection.
    Request {
        /// The key of the queue.
        key: String,
        /// Who asks; no known tracker looks at it, and clients leave it empty.
        user: String,
        /// Who is served first; clients say 1 if nobody tells them otherwise.
        priority: Priority,
    },
    /// Says who this connection belongs to: a server names itself `server:KEY`. Its port is within
    /// 1 to 65535. Answered by [`Reply::Done`](super::Reply::Done).
    UpdateInfo(ServerInfo),
    /// Asks for the state of queues and servers. Answered by
    /// [`Reply::Summary`](super::Reply::Summary).
    Summary,
    /// Asks for the match keys that this connection offered and nobody took yet. Answered by
    /// [`Reply::PendingMatchKeys`](super::Reply::PendingMatchKeys).
    PendingMatchKeys,
}

impl Request {
    /// Appends the request as one frame, length and text, so that it can leave in one write.
    ///
    /// # Errors
    ///
    /// The text is longer than [`Limits::tracker_frame`]; nothing is appended.
    pub fn encode(&self, limits: Limits, out: &mut Vec<u8>) -> Result<(), OverLimit> {
        let limit = limits.tracker_frame;
        match self {
            Self::Ping => json::put_frame(&[code::PING], limit, out),
            Self::Stop { stop_key } => json::put_frame(&(code::STOP, stop_key), limit, out),
            Self::Put {
                key,
                port,
                match_key,
                custom_addr,
            } => json::put_frame(
                &(code::PUT, key, (port, match_key), custom_addr),
                limit,
                out,
            ),
            Self::Request {
                key,
                user,
                priority,
            } => json::put_frame(&(code::REQUEST, key, user, priority), limit, out),
            Self::UpdateInfo(info) => json::put_frame(&(code::UPDATE_INFO, info), limit, out),
            Self::Summary => json::put_frame(&[code::SUMMARY], limit, out),
            Self::PendingMatchKeys => json::put_frame(&[code::GET_PENDING_MATCHKEYS], limit, out),
        }
    }

    /// Reads the text of a frame, as a tracker does.
    ///
    /// Known peers differ, and all of their forms are read: a port is a number or a string of digits,
    /// an UPDATE_INFO may lack the address and a PUT the custom address, and an empty custom address
    /// is none.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or not a request.
    pub fn decode(text: &[u8]) -> Result<Self, MessageError> {
        let value = json::parse(text)?;
        let unexpected = |expected| MessageError::unexpected("request", expected, &value);
        let Value::Array(items) = &value else {
            return Err(unexpected("an array that starts with a code"));
        };
        let Some(code) = items.first().and_then(whole) else {
            return Err(unexpected("an array that starts with a code"));
        };
        match (code, &items[1..]) {
            (code::PING, _) => Ok(Self::Ping),
            (code::STOP, [stop_key, ..]) => Ok(Self::Stop {
                stop_key: string("stop key", stop_key)?,
            }),
            (code::STOP, _) => Err(unexpected("[2, stop key]")),
            (code::PUT, [key, Value::Array(offer), rest @ ..]) if offer.len() == 2 => {
                Ok(Self::Put {
                    key: string("key", key)?,
                    port: port(&offer[0])?,
                    match_key: string("match key", &offer[1])?,
                    custom_addr: custom_addr(rest.first())?,
                })
            }
            (code::PUT, _) => Err(unexpected("[3, key, [port, match key], address or null]")),
            (code::REQUEST, [key, user, priority, ..]) => Ok(Self::Request {
                key: string("key", key)?,
                user: string("user", user)?,
                priority: Priority::read(priority)?,
            }),
            (code::REQUEST, _) => Err(unexpected("[4, key, user, priority]")),
            (code::UPDATE_INFO, [info, ..]) => {
                let read = ServerInfo::read(info)?;
                match (&read.addr, info.get("addr")) {
                    (Some(addr), _) if addr.port.number().is_some() => Ok(Self::UpdateInfo(read)),
                    (None, None | Some(Value::Null)) => Ok(Self::UpdateInfo(read)),
                    (_, addr) => Err(MessageError::unexpected(
                        "address of a server",
                        "[host or null, port from 1 to 65535]",
                        addr.unwrap_or(&Value::Null),
                    )),
                }
            }
            (code::UPDATE_INFO, _) => Err(unexpected("[5, {\"key\": …, \"addr\": [host, port]}]")),
            (code::SUMMARY, _) => Ok(Self::Summary),
            (code::GET_PENDING_MATCHKEYS, _) => Ok(Self::PendingMatchKeys),
            _ => Err(unexpected("a code from 1 to 7")),
        }
    }
}

pub(super) fn port(value: &Value) -> Result<u16, MessageError> {
    Port::read(value)
        .and_then(|port| port.number())
        .ok_or_else(|| MessageError::unexpected("port", "a number from 1 to 65535", value))
}

fn custom_addr(value: Option<&Value>) -> Result<Option<String>, MessageError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            string("custom address", value).map(|addr| Some(addr).filter(|addr| !addr.is_empty()))
        }
    }
}

/// The priority of a request: a finite number, the highest one is served first.
///
/// A whole number is written without a decimal point, as clients do. Numbers beyond 2⁵³ are rounded
/// to the nearest one that a float holds, as JSON allows.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Priority(f64);

impl Priority {
    /// A priority, unless `number` is infinite or not a number.
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        // Adding 0 turns -0 into 0, so that equal priorities compare equal in every way.
        number.is_finite().then_some(Self(number + 0.0))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    fn read(value: &Value) -> Result<Self, MessageError> {
        value
            .as_f64()
            .and_then(Self::new)
            .ok_or_else(|| MessageError::unexpected("priority", "a number", value))
    }
}

impl Default for Priority {
    /// What clients say if nobody tells them otherwise: 1.
    fn default() -> Self {
        Self(1.0)
    }
}

impl From<i32> for Priority {
    fn from(number: i32) -> Self {
        Self(number.into())
    }
}

// Finite, so that every priority equals itself.
impl Eq for Priority {}

impl Serialize for Priority {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match whole(&self.0.into()) {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(self.0),
        }
    }
}

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::json::{MessageError, string, whole};

/// The state of a tracker: its queues, and the servers that are connected to it.
///
/// Serializes as the tracker itself sends it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The queue of each key.
    #[serde(rename = "queue_info")]
    pub queues: BTreeMap<String, QueueStatus>,
    /// The connections that said that a server is behind them.
    #[serde(rename = "server_info")]
    pub servers: Vec<ServerInfo>,
}

/// The state of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueStatus {
    /// Devices that nobody has.
    pub free: u64,
    /// Requests that wait for a device.
    pub pending: u64,
}

/// What a server says of itself: the object of an UPDATE_INFO, and a row of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `server:KEY`; a proxy says `server:proxy[KEY,KEY]` for the servers behind it.
    pub key: String,
    /// Where it listens. Old servers do not say, and what cannot be read in a summary is left out:
    /// one odd server does not hide the others.
    pub addr: Option<ServerAddr>,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddr {
    /// Name or address; none for the one that the server's connection to the tracker comes from, which
    /// the tracker fills in.
    pub host: Option<String>,
    /// The port.
    pub port: Port,
}

/// A port as a server wrote it: the reference's C++ server sends a string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Port {
    /// A number.
    Number(i64),
    /// A string, of digits if the server means well.
    Text(String),
}

impl Summary {
    /// Servers by device key: busy ones too, and those behind a proxy under their own keys.
    #[must_use]
    pub fn servers_by_key(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for key in self.servers.iter().flat_map(ServerInfo::device_keys) {
            *counts.entry(key).or_default() += 1;
        }
        counts
    }

    /// The tables that the reference's query tool prints, letter for letter.
    ///
    /// Totals are [`Summary::servers_by_key`], so that they are also right for keys with colons and
    /// for servers behind proxies, and each key of a server has its row.
    #[must_use]
    pub fn text_summary(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_tables(&mut text);
        text
    }

    fn write_tables(&self, out: &mut String) -> fmt::Result {
        const RULE: &str = "------------------------------";
        writeln!(out, "Server List\n{RULE}")?;
        writeln!(out, "server-address           key\n{RULE}")?;
        let mut servers: Vec<_> = self.servers.iter().collect();
        servers.sort_by(|a, b| a.key.cmp(&b.key));
        for server in servers {
            let addr = server.addr.as_ref();
            let addr = addr.map_or_else(|| "-".to_owned(), ToString::to_string);
            writeln!(out, "{addr:<21}    {}", server.key)?;
        }
        writeln!(out, "{RULE}\n")?;

        let totals = self.servers_by_key();
        let mut rows: BTreeMap<&str, QueueStatus> = totals
            .keys()
            .map(|key| (*key, QueueStatus::default()))
            .collect();
        rows.extend(
            self.queues
                .iter()
                .map(|(key, queue)| (key.as_str(), *queue)),
        );
        let width = rows.keys().map(|key| key.chars().count()).max();
        let width = width.unwrap_or(0);
        let title = format!("{:<width$}   total  free  pending", "key");
        // One dash for the line feed as well.
        let rule = "-".repeat(title.chars().count() + 1);
        writeln!(out, "Queue Status\n{rule}\n{title}\n{rule}")?;
        for (key, QueueStatus { free, pending }) in rows {
            let total = totals.get(key).copied().unwrap_or(0);
            if total > 0 || pending > 0 {
                writeln!(out, "{key:<width$}   {total:<5}  {free:<4}  {pending:<7}")?;
            }
        }
        writeln!(out, "{rule}")
    }

    pub(super) fn read(value: &Value) -> Result<Self, MessageError> {
        let (Some(Value::Object(queues)), Some(Value::Array(servers))) =
            (value.get("queue_info"), value.get("server_info"))
        else {
            return Err(MessageError::unexpected(
                "summary",
                "{\"queue_info\": {…}, \"server_info\": […]}",
                value,
            ));
        };
        Ok(Self {
            queues: queues
                .iter()
                .map(|(key, queue)| Ok((key.clone(), QueueStatus::read(queue)?)))
                .collect::<Result<_, MessageError>>()?,
            servers: servers
                .iter()
                .map(ServerInfo::read)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl QueueStatus {
    fn read(value: &Value) -> Result<Self, MessageError> {
        let count = |name| u64::try_from(value.get(name).and_then(whole)?).ok();
        match (count("free"), count("pending")) {
            (Some(free), Some(pending)) => Ok(Self { free, pending }),
            _ => Err(MessageError::unexpected(
                "queue of a summary",
                "{\"free\": count, \"pending\": count}",
                value,
            )),
        }
    }
}

impl ServerInfo {
    /// The keys of the devices behind this connection; none if it does not call itself a server.
    pub fn device_keys(&self) -> impl Iterator<Item = &str> {
        let key = self.key.strip_prefix("server:");
        let proxied = key.and_then(|key| key.strip_prefix("proxy[")?.strip_suffix(']'));
        let own = if proxied.is_some() { None } else { key };
        let behind = proxied.into_iter().flat_map(|keys| keys.split(','));
        own.into_iter().chain(behind.filter(|key| !key.is_empty()))
    }

    pub(super) fn read(value: &Value) -> Result<Self, MessageError> {
        let Some(key) = value.get("key") else {
            return Err(MessageError::unexpected(
                "server",
                "{\"key\": …, \"addr\": [host, port]}",
                value,
            ));
        };
        Ok(Self {
            key: string("key", key)?,
            addr: value.get("addr").and_then(ServerAddr::read),
        })
    }
}

impl Serialize for ServerInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &self.key)?;
        if let Some(ServerAddr { host, port }) = &self.addr {
            map.serialize_entry("addr", &(host, port))?;
        }
        map.end()
    }
}

impl ServerAddr {
    fn read(value: &Value) -> Option<Self> {
        let [host, port, ..] = value.as_array()?.as_slice() else {
            return None;
        };
        Some(Self {
            host: match host {
                Value::Null => None,
                host => Some(host.as_str()?.to_owned()),
            },
            port: Port::read(port)?,
        })
    }
}

impl fmt::Display for ServerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The reference's tool prints its own word for no host.
        write!(
            f,
            "{}:{}",
            self.host.as_deref().unwrap_or("None"),
            self.port
        )
    }
}

impl Port {
    /// The port to connect to, unless this is none from 1 to 65535.
    #[must_use]
    pub fn number(&self) -> Option<u16> {
        let port = match self {
            Self::Number(number) => u16::try_from(*number).ok(),
            Self::Text(digits) => digits.parse().ok(),
        };
        port.filter(|port| *port != 0)
    }

    pub(super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => whole(value).map(Self::Number),
        }
    }
}

impl From<u16> for Port {
    fn from(port: u16) -> Self {
        Self::Number(port.into())
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests;

//! What a tracker tells of itself, and what servers tell it of themselves.

use std::collections::BTreeMap;

use rpc_proto::tracker::{Port, QueueStatus, Reply, ServerAddr, ServerInfo, Summary};

use super::{ConnectionId, Queues};

/// Keys that are remembered when their servers are gone.
const REMEMBERED: usize = 1024;

impl Queues {
    /// The queues and the servers that are connected.
    ///
    /// A queue is listed while something is in it, and from when a server of its key registered, however
    /// busy or gone that is by now, as the reference does; of such keys 1024 are remembered.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let connected = self.servers.values().flat_map(ServerInfo::device_keys);
        let mut queues: BTreeMap<_, _> = connected
            .chain(self.known.iter().map(String::as_str))
            .map(|key| (key.to_owned(), QueueStatus::default()))
            .collect();
        let used = self.queues.iter();
        queues.extend(used.map(|(key, queue)| (key.to_string(), queue.status())));
        Summary {
            queues,
            servers: self.servers.values().cloned().collect(),
        }
    }

    pub(super) fn pending_match_keys(&self, of: ConnectionId) -> Reply {
        let offers = self
            .connections
            .get(&of)
            .map(|connection| &connection.offers);
        let keys = offers.into_iter().flat_map(BTreeMap::keys);
        Reply::PendingMatchKeys(keys.map(|key| key.to_string()).collect())
    }

    pub(super) fn update_info(&mut self, from: ConnectionId, info: ServerInfo) -> Reply {
        let host = info.addr.as_ref().and_then(|addr| addr.host.as_deref());
        let port = match info.addr.as_ref().map(|addr| &addr.port) {
            Some(Port::Text(digits)) => Some(digits.as_str()),
            _ => None,
        };
        if !self.fits([Some(info.key.as_str()), host, port]) {
            return Reply::refused();
        }
        let Some(connection) = self.connections.get_mut(&from) else {
            return Reply::refused();
        };
        let known = self.servers.remove(&from).and_then(|info| info.addr);
        let was_known = known.is_some() && !connection.is_port_unknown;
        connection.is_port_unknown = info.addr.is_none() && !was_known;
        let addr = info.addr.or(known).unwrap_or_else(|| ServerAddr {
            host: None,
            port: connection.port.map_or(Port::Number(0), Port::from),
        });
        // Readers of a summary take the device key from behind the colon: a client that calls itself
        // something else is not listed.
        if info.key.starts_with("server:") {
            let host = addr.host.filter(|host| !host.is_empty());
            let host = host.unwrap_or_else(|| connection.peer.host());
            let addr = ServerAddr {
                host: Some(host),
                port: addr.port,
            };
            let info = ServerInfo {
                key: info.key,
                addr: Some(addr),
            };
            for key in info.device_keys() {
                if self.known.len() < REMEMBERED {
                    self.known.insert(key.to_owned());
                }
            }
            self.servers.insert(from, info);
        }
        Reply::Done
    }
}

use std::fmt;

use rpc_proto::tracker::Summary;

use crate::TrackerClientError;
use rpc_transport::Chain;

/// Why a request for a key would wait or fail, as far as the tracker can be asked.
///
/// Whether a server can be reached from here only shows in a request: it names the server then, in
/// [`TrackerClientError::Connect`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Diagnosis {
    /// Nobody answers at the tracker's address.
    Unreachable(TrackerClientError),
    /// Something else than a tracker answers there.
    NotATracker(TrackerClientError),
    /// A tracker is there, but does not say what it has.
    NoSummary(TrackerClientError),
    /// No server of that key is registered.
    NoServer {
        /// The keys of the servers that are, in order.
        registered: Vec<String>,
    },
    /// There are servers of that key, and none is free.
    AllBusy {
        /// Servers of the key.
        servers: u64,
        /// Requests that wait already.
        pending: u64,
    },
    /// A device is free.
    Available {
        /// Servers of the key. Less than `free` if some did not say who they are.
        servers: u64,
        /// Free devices.
        free: u64,
    },
}

impl Diagnosis {
    /// What a summary says of a key.
    #[must_use]
    pub fn of(summary: &Summary, key: &str) -> Self {
        let registered = summary.servers_by_key();
        let servers = registered.get(key).copied().unwrap_or(0);
        let queue = summary.queues.get(key).copied().unwrap_or_default();
        match (queue.free, servers) {
            (0, 0) => Self::NoServer {
                registered: registered.into_keys().map(str::to_owned).collect(),
            },
            (0, _) => Self::AllBusy {
                servers,
                pending: queue.pending,
            },
            (free, _) => Self::Available { servers, free },
        }
    }
}

/// With all causes of an error: a diagnosis is no error, so that nobody else prints them.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => {
                write!(f, "the tracker cannot be reached: {}", Chain(error))
            }
            Self::NotATracker(error) => write!(f, "this is not a tracker: {}", Chain(error)),
            Self::NoSummary(error) => write!(f, "the tracker gives no summary: {}", Chain(error)),
            Self::NoServer { registered } if registered.is_empty() => {
                f.write_str("no server is registered, of any key")
            }
            Self::NoServer { registered } => {
                write!(
                    f,
                    "no server of this key is registered, only of {}",
                    registered.join(", ")
                )
            }
            Self::AllBusy { servers, pending } => {
                match servers {
                    1 => f.write_str("its only server is busy")?,
                    _ => write!(f, "all {servers} servers are busy")?,
                }
                match pending {
                    0 => Ok(()),
                    1 => f.write_str(", 1 request waits already"),
                    _ => write!(f, ", {pending} requests wait already"),
                }
            }
            Self::Available { servers, free } => write!(f, "{free} of {servers} servers are free"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rpc_proto::tracker::{QueueStatus, ServerInfo};

    use super::*;

    fn summary(servers: &[&str], queues: &[(&str, u64, u64)]) -> Summary {
        let server = |key: &&str| ServerInfo {
            key: (*key).to_owned(),
            addr: None,
        };
        Summary {
            servers: servers.iter().map(server).collect(),
            queues: queues
                .iter()
                .map(|&(key, free, pending)| (key.to_owned(), QueueStatus { free, pending }))
                .collect(),
        }
    }

    #[test]
    fn the_cause_is_told() {
        let peer = "t:1".to_owned();
        let source = std::io::Error::other("connection refused");
        let unreachable = rpc_transport::TransportError::Connect { peer, source };
        assert_eq!(
            Diagnosis::Unreachable(unreachable.into()).to_string(),
            "the tracker cannot be reached: cannot connect to t:1: connection refused"
        );
    }

    #[test]
    fn a_summary_tells_missing_busy_and_free_apart() {
        let check = |servers: &[&str], queues: &[(&str, u64, u64)]| {
            Diagnosis::of(&summary(servers, queues), "a:b").to_string()
        };
        for (found, expected) in [
            (check(&[], &[]), "no server is registered, of any key"),
            // A queue stays when its servers are gone.
            (
                check(&["server:a"], &[("a:b", 0, 3)]),
                "no server of this key is registered, only of a",
            ),
            (
                check(&["server:a:b", "server:proxy[a:b,c]"], &[("a:b", 0, 3)]),
                "all 2 servers are busy, 3 requests wait already",
            ),
            (
                check(&["server:a:b"], &[("a:b", 0, 0)]),
                "its only server is busy",
            ),
            (
                check(&["server:a:b"], &[("a:b", 0, 1)]),
                "its only server is busy, 1 request waits already",
            ),
            (
                check(&["server:a:b", "server:a:b"], &[("a:b", 1, 0)]),
                "1 of 2 servers are free",
            ),
            (check(&[], &[("a:b", 1, 0)]), "1 of 0 servers are free"),
        ] {
            assert_eq!(found, expected);
        }
    }
}

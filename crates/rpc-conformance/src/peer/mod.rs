//! The peer under test: one that runs already, or one that the suite starts, and starts again when a
//! case was the end of it.

mod process;
mod used;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use process::Process;
pub use used::Used;

use crate::broken::{Defect, Relay};

/// How a tracker or server under test is reached.
#[derive(Debug, Clone)]
pub enum Peer {
    /// It runs already, at this address (host and port).
    Running(String),
    /// The suite starts it with this command, split into words as a shell does. `{host}` and `{port}`
    /// stand for where it has to listen, `{key}` for the key of a server. Without `{port}` it has to
    /// print `listening on HOST:PORT` on its standard output.
    Command(String),
}

/// Why there is no peer to test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The address means nothing.
    #[error("{address} is no address")]
    Address {
        /// What was given.
        address: String,
        /// Why it is none.
        #[source]
        source: std::io::Error,
    },
    /// Nobody listens there.
    #[error("nobody answers at {address}")]
    Unreachable {
        /// Where the peer should be.
        address: String,
        /// What came instead.
        #[source]
        source: std::io::Error,
    },
    /// The command cannot be split into words, or cannot be started.
    #[error("cannot start {command:?}")]
    Start {
        /// The command.
        command: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no socket for the relay that spoils the peer.
    #[error("no relay")]
    Relay(#[source] std::io::Error),
    /// The command was started but accepted no connection in time.
    #[error("{command:?} accepted no connection within {waited:.0?}; its last words: {stderr}")]
    NotReady {
        /// The command.
        command: String,
        /// How long it was waited for.
        waited: Duration,
        /// The end of its standard error.
        stderr: String,
    },
}

/// A peer that can be connected to.
#[derive(Debug)]
pub(crate) struct Running {
    peer: Peer,
    key: String,
    patience: Duration,
    /// What is put in the way to it.
    defect: Option<&'static Defect>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    addr: SocketAddr,
    process: Option<Process>,
    relay: Option<Relay>,
}

impl Current {
    /// Puts a relay with this defect in the way.
    fn spoilt(mut self, defect: Option<&'static Defect>) -> Result<Self, PeerError> {
        if let Some(defect) = defect {
            let relay = Relay::start(defect, self.addr).map_err(PeerError::Relay)?;
            self.relay = Some(relay);
        }
        Ok(self)
    }
}

impl Running {
    /// Finds or starts the peer. A process may take `patience` until it accepts connections.
    pub(crate) fn new(
        peer: &Peer,
        key: &str,
        patience: Duration,
        defect: Option<&'static Defect>,
    ) -> Result<Self, PeerError> {
        let current = match peer {
            Peer::Running(address) => {
                let addr = resolve(address)?;
                reach(addr, patience).map_err(|source| PeerError::Unreachable {
                    address: address.clone(),
                    source,
                })?;
                Current {
                    addr,
                    process: None,
                    relay: None,
                }
            }
            Peer::Command(command) => start(command, key, patience)?,
        };
        Ok(Self {
            peer: peer.clone(),
            key: key.to_owned(),
            patience,
            defect,
            current: Mutex::new(current.spoilt(defect)?),
        })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        let current = self.lock();
        current.relay.as_ref().map_or(current.addr, Relay::addr)
    }

    /// Whether the suite can start it again.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.peer, Peer::Command(_))
    }

    /// Starts the peer anew, in place of one that ended or does not answer; one that the suite did not
    /// start has to come back by itself.
    pub(crate) fn again(&self) -> Result<(), PeerError> {
        let mut current = self.lock();
        match &self.peer {
            Peer::Running(address) => {
                reach(current.addr, self.patience).map_err(|source| PeerError::Unreachable {
                    address: address.clone(),
                    source,
                })
            }
            Peer::Command(command) => {
                current.process = None;
                *current = start(command, &self.key, self.patience)?.spoilt(self.defect)?;
                Ok(())
            }
        }
    }

    /// The last lines of its standard error.
    pub(crate) fn stderr(&self) -> Vec<String> {
        self.lock()
            .process
            .as_ref()
            .map(Process::stderr)
            .unwrap_or_default()
    }

    /// What its process uses, where the suite started it and the system tells.
    pub(crate) fn used(&self) -> Option<Used> {
        Used::by(self.lock().process.as_ref()?.pid())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resolve(address: &str) -> Result<SocketAddr, PeerError> {
    let none = || std::io::Error::other("the name has no address");
    let found = address.to_socket_addrs();
    found
        .and_then(|mut found| found.next().ok_or_else(none))
        .map_err(|source| PeerError::Address {
            address: address.to_owned(),
            source,
        })
}

fn start(command: &str, key: &str, patience: Duration) -> Result<Current, PeerError> {
    let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let failed = |source| PeerError::Start {
        command: command.to_owned(),
        source,
    };
    let port = if command.contains("{port}") {
        Some(free_port(host).map_err(failed)?)
    } else {
        None
    };
    let shown = port.map(|port| port.to_string()).unwrap_or_default();
    let given = [
        ("{host}", host.to_string()),
        ("{port}", shown),
        ("{key}", key.to_owned()),
    ];
    let words = words(command, &given).map_err(failed)?;
    let mut process = Process::start(&words, &[]).map_err(failed)?;
    let began = Instant::now();
    let not_ready = |process: &Process| PeerError::NotReady {
        command: command.to_owned(),
        waited: began.elapsed(),
        stderr: process.stderr().join("\n"),
    };
    let addr = match port {
        Some(port) => SocketAddr::new(host, port),
        None => process
            .listening_on(began + patience)
            .ok_or_else(|| not_ready(&process))?,
    };
    while began.elapsed() < patience && !process.has_ended() {
        if TcpStream::connect_timeout(&addr, patience).is_ok() {
            return Ok(Current {
                addr,
                process: Some(process),
                relay: None,
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(not_ready(&process))
}

/// A port that was free a moment ago.
fn free_port(host: IpAddr) -> std::io::Result<u16> {
    Ok(TcpListener::bind((host, 0))?.local_addr()?.port())
}

fn reach(addr: SocketAddr, patience: Duration) -> std::io::Result<()> {
    let began = Instant::now();
    loop {
        match TcpStream::connect_timeout(&addr, patience) {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() >= patience => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// The words of a command, with what stands for something replaced in each.
pub(crate) fn words(command: &str, given: &[(&str, String)]) -> std::io::Result<Vec<String>> {
    let words = shlex::split(command)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| std::io::Error::other("no command, or a quote that is not closed"))?;
    let replaced = words.into_iter().map(|word| {
        given
            .iter()
            .fold(word, |word, (name, value)| word.replace(name, value))
    });
    Ok(replaced.collect())
}

/// The last lines of a text that never ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Lines that are kept.
    const KEPT: usize = 20;

    pub(crate) fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == Self::KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

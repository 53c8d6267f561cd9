//! The peer under test: one that runs already, or one that the suite starts, and starts again when a
//! case was the end of it.

mod process;
mod used;

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use process::Process;
pub use process::kill_peers;
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
    /// The command was started but accepted no connection: it ended, said nothing of where it listens, or
    /// took too long.
    #[error("{command:?} {instead} after {waited:.1?}{}", last_words(.stderr))]
    NotReady {
        /// The command.
        command: String,
        /// What it did instead.
        instead: Instead,
        /// How long it was waited for.
        waited: Duration,
        /// The end of its standard error.
        stderr: String,
    },
    /// The run was to stop while the peer was waited for.
    #[error("interrupted while the peer was waited for")]
    Interrupted,
}

/// What a peer did instead of accepting connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Instead {
    /// Its process ended.
    Ended,
    /// It did not say where it listens.
    SaidNothing,
    /// Nobody could connect to it.
    AcceptedNobody,
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "ended",
            Self::SaidNothing => "did not print \"listening on HOST:PORT\"",
            Self::AcceptedNobody => "accepted no connection",
        })
    }
}

fn last_words(stderr: &str) -> String {
    match stderr {
        "" => String::new(),
        words => format!("; its last words: {words}"),
    }
}

/// How a peer is started and waited for.
#[derive(Debug, Clone)]
pub(crate) struct Care {
    /// The key that a server is told.
    pub(crate) key: String,
    /// How long it may take until it accepts connections.
    pub(crate) patience: Duration,
    /// What is put in the way to it.
    pub(crate) defect: Option<&'static Defect>,
    /// Once this is set it is not waited for any longer.
    pub(crate) stop: Arc<AtomicBool>,
}

/// A peer that can be connected to.
#[derive(Debug)]
pub(crate) struct Running {
    peer: Peer,
    care: Care,
    current: Mutex<Current>,
}

/// Which of the processes that were started one after the other it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life(u64);

#[derive(Debug)]
struct Current {
    addr: SocketAddr,
    process: Option<Process>,
    relay: Option<Relay>,
    life: Life,
    /// Why it could not be started again.
    gone: Option<String>,
}

impl Current {
    fn at(addr: SocketAddr, process: Option<Process>) -> Self {
        Self {
            addr,
            process,
            relay: None,
            life: Life(0),
            gone: None,
        }
    }

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
    /// Finds or starts the peer.
    pub(crate) fn new(peer: &Peer, care: Care) -> Result<Self, PeerError> {
        let current = match peer {
            Peer::Running(address) => {
                let addr = resolve(address)?;
                reach(addr, address, &care)?;
                Current::at(addr, None)
            }
            Peer::Command(command) => start(command, &care)?,
        };
        Ok(Self {
            peer: peer.clone(),
            current: Mutex::new(current.spoilt(care.defect)?),
            care,
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

    /// Whether the run is to stop.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.care.stop.load(Ordering::Relaxed)
    }

    /// Which process it is at this time.
    pub(crate) fn life(&self) -> Life {
        self.lock().life
    }

    /// How its process ended, if it did.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.lock().process.as_mut()?.ended()
    }

    /// How its process ended, if it did. Its connections end a moment before it does.
    pub(crate) fn ended_lately(&self) -> Option<ExitStatus> {
        let deadline = Instant::now() + Duration::from_millis(200);
        self.lock().process.as_mut()?.wait(deadline)
    }

    /// Why there is no peer any more, if it could not be started again.
    pub(crate) fn gone(&self) -> Option<String> {
        self.lock().gone.clone()
    }

    /// Starts the peer anew, in place of one that ended or does not answer, unless another case has done
    /// that since `life`. One that the suite did not start has to come back by itself.
    pub(crate) fn again(&self, life: Life) -> Result<(), PeerError> {
        let mut current = self.lock();
        if current.life != life {
            return Ok(());
        }
        let again = match &self.peer {
            Peer::Running(address) => reach(current.addr, address, &self.care),
            Peer::Command(command) => {
                current.process = None;
                let started = start(command, &self.care);
                started
                    .and_then(|started| started.spoilt(self.care.defect))
                    .map(|started| *current = started)
            }
        };
        current.life = Life(life.0 + 1);
        let why = |error: &PeerError| format!("the peer does not come back: {error}");
        current.gone = again.as_ref().err().map(why);
        again
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

fn start(command: &str, care: &Care) -> Result<Current, PeerError> {
    let started = start_once(command, care);
    match &started {
        // Somebody may have taken the port that was free a moment ago.
        Err(PeerError::NotReady {
            instead: Instead::Ended,
            ..
        }) if command.contains("{port}") => start_once(command, care),
        _ => started,
    }
}

fn start_once(command: &str, care: &Care) -> Result<Current, PeerError> {
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
        ("{key}", care.key.clone()),
    ];
    let words = words(command, &given).map_err(failed)?;
    let mut process = Process::start(&words, &[]).map_err(failed)?;
    let began = Instant::now();
    let mut addr = port.map(|port| SocketAddr::new(host, port));
    loop {
        // First whether it runs, so that an answer is its own.
        let has_ended = process.ended().is_some();
        addr = addr.or_else(|| process.listening_on(began + LOOK));
        let answers = addr.filter(|addr| TcpStream::connect_timeout(addr, MOMENT).is_ok());
        let instead = match (answers, addr) {
            _ if has_ended => Instead::Ended,
            (Some(addr), _) => return Ok(Current::at(addr, Some(process))),
            _ if care.stop.load(Ordering::Relaxed) => return Err(PeerError::Interrupted),
            _ if began.elapsed() < care.patience => {
                std::thread::sleep(LOOK);
                continue;
            }
            (None, None) => Instead::SaidNothing,
            (None, Some(_)) => Instead::AcceptedNobody,
        };
        return Err(PeerError::NotReady {
            command: command.to_owned(),
            instead,
            waited: began.elapsed(),
            stderr: process.stderr().join("\n"),
        });
    }
}

/// Between two looks whether a peer is ready.
const LOOK: Duration = Duration::from_millis(10);
/// How long one attempt to connect may take: an interrupt is noticed between two.
const MOMENT: Duration = Duration::from_secs(1);

/// A port that was free a moment ago.
fn free_port(host: IpAddr) -> std::io::Result<u16> {
    Ok(TcpListener::bind((host, 0))?.local_addr()?.port())
}

fn reach(addr: SocketAddr, address: &str, care: &Care) -> Result<(), PeerError> {
    let began = Instant::now();
    loop {
        match TcpStream::connect_timeout(&addr, MOMENT.min(care.patience)) {
            Ok(_) => return Ok(()),
            Err(_) if care.stop.load(Ordering::Relaxed) => return Err(PeerError::Interrupted),
            Err(source) if began.elapsed() >= care.patience => {
                return Err(PeerError::Unreachable {
                    address: address.to_owned(),
                    source,
                });
            }
            Err(_) => std::thread::sleep(LOOK),
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
    /// Characters of a line that are kept.
    const OF_LINE: usize = 2000;

    pub(crate) fn push(&self, mut line: String) {
        if let Some((end, _)) = line.char_indices().nth(Self::OF_LINE) {
            line.truncate(end);
            line.shrink_to_fit();
        }
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

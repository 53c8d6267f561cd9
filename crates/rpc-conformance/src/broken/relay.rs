//! The relay between the suite and a healthy peer.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rpc_proto::codes::{RPC_MAGIC, TRACKER_MAGIC};
use rpc_recording::{Cutter, Direction, Stage};

use super::{Defect, Memory, Out, Twist, Way};
use crate::case::Role;

/// A relay that has one defect. It ends when it is dropped.
#[derive(Debug)]
pub struct Relay {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
}

/// What is said on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Talk {
    /// The tracker's protocol.
    Tracker,
    /// A handshake and packets.
    Session,
}

impl Talk {
    /// Whether a request may begin so.
    fn begins(self, bytes: &[u8]) -> bool {
        let magic = match self {
            Self::Tracker => TRACKER_MAGIC.to_le_bytes(),
            Self::Session => RPC_MAGIC.to_le_bytes(),
        };
        bytes
            .iter()
            .zip(magic)
            .all(|(byte, expected)| *byte == expected)
    }
}

/// Between two looks whether the relay is to end.
const LOOK: Duration = Duration::from_millis(20);

impl Relay {
    /// Starts a relay to `to` on a free port of the loopback interface. For the role of a client, `to` is
    /// the tracker, and the servers that it grants are reached through relays of their own.
    ///
    /// # Errors
    /// No socket could be had.
    pub fn start(defect: &'static Defect, to: SocketAddr) -> io::Result<Self> {
        let talk = match defect.role {
            Role::Server => Talk::Session,
            Role::Tracker | Role::Client => Talk::Tracker,
        };
        Self::with(defect, to, talk)
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn with(defect: &'static Defect, to: SocketAddr, talk: Talk) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let relay = Arc::new(Shared {
            defect,
            to,
            talk,
            stop: Arc::clone(&stop),
            number: Arc::default(),
            turn: Mutex::default(),
            servers: Mutex::default(),
        });
        std::thread::spawn(move || {
            while !relay.stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let relay = Arc::clone(&relay);
                        // A connection that cannot be relayed ends, which its peer sees.
                        std::thread::spawn(move || relay.serve(stream).is_ok());
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Ok(Self { addr, stop })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What the connections of a relay share.
#[derive(Debug)]
struct Shared {
    defect: &'static Defect,
    to: SocketAddr,
    talk: Talk,
    stop: Arc<AtomicBool>,
    number: Arc<AtomicU64>,
    /// Held by the connection that is served, where only one is.
    turn: Mutex<()>,
    /// Relays to servers that a tracker granted.
    servers: Mutex<Vec<Relay>>,
}

impl Shared {
    fn serve(self: Arc<Self>, asking: TcpStream) -> io::Result<()> {
        let _turn = matches!(self.defect.twist, Twist::OneAtATime)
            .then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        asking.set_nonblocking(false)?;
        let answering = TcpStream::connect(self.to)?;
        asking.set_nodelay(true)?;
        answering.set_nodelay(true)?;
        let memory = Arc::new(Mutex::new(Memory {
            in_session: self.talk == Talk::Session,
            shared: Arc::clone(&self.number),
            ..Memory::default()
        }));
        let back = {
            let (relay, memory) = (Arc::clone(&self), Arc::clone(&memory));
            let (from, to) = (answering.try_clone()?, asking.try_clone()?);
            std::thread::spawn(move || relay.pump(Way::Answer, from, to, &memory))
        };
        let ended = self.pump(Way::Request, asking, answering, &memory);
        let _ = back.join();
        ended
    }

    /// Carries one way until it ends.
    fn pump(
        &self,
        way: Way,
        mut from: TcpStream,
        mut to: TcpStream,
        memory: &Mutex<Memory>,
    ) -> io::Result<()> {
        let direction = match way {
            Way::Request => Direction::C2s,
            Way::Answer => Direction::S2c,
        };
        let mut cutter = Cutter::new(direction, Stage::Beginning, usize::MAX);
        let mut piece = vec![0; 64 * 1024];
        let (mut is_first, mut strange) = (true, false);
        from.set_read_timeout(Some(LOOK))?;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                end(&from, &to);
                return Ok(());
            }
            let read = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    continue;
                }
                Err(_) => break,
            };
            let piece = &piece[..read];
            strange |= way == Way::Request && is_first && !self.talk.begins(piece);
            is_first = false;
            let mut messages = Vec::new();
            // What is no message goes on as it comes.
            if strange {
                messages.push(piece.to_vec());
            } else {
                cutter.push(piece, |cut| messages.push(cut.bytes));
                messages.extend(cutter.take_unknown().map(|cut| cut.bytes));
            }
            if way == Way::Request && matches!(self.defect.twist, Twist::OneMessageAPiece) {
                messages.truncate(1);
            }
            for message in messages {
                for out in self.twisted(memory, way, message) {
                    match out {
                        Out::On(bytes) => to.write_all(&bytes)?,
                        Out::Back(bytes) => from.write_all(&bytes)?,
                        Out::End => {
                            end(&from, &to);
                            return Ok(());
                        }
                    }
                }
            }
            let broken_off = way == Way::Request
                && matches!(self.defect.twist, Twist::OnlyWholeMessages)
                && !cutter.is_between_messages();
            if broken_off {
                end(&from, &to);
                return Ok(());
            }
        }
        if matches!(self.defect.twist, Twist::EndsAreKept) && way == Way::Request {
            // Kept open for as long as the relay lives.
            while !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
            }
        }
        if let Some(rest) = cutter.end() {
            to.write_all(&rest.bytes)?;
        }
        to.shutdown(Shutdown::Write)
    }

    fn twisted(&self, memory: &Mutex<Memory>, way: Way, message: Vec<u8>) -> Vec<Out> {
        let message = match (self.defect.role, self.talk, way) {
            (Role::Client, Talk::Tracker, Way::Answer) => self.through_a_relay(message),
            _ => message,
        };
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        if self.talk == Talk::Session && way == Way::Request {
            memory.unanswered.extend(super::answered_code(&message));
        }
        let out = match self.defect.twist {
            Twist::Messages(twist) => twist(&mut memory, way, message),
            _ => super::on(message),
        };
        match way {
            Way::Request => memory.requests += 1,
            Way::Answer => {
                // The first answers the handshake, which is no packet.
                if memory.answers > 0 {
                    memory.unanswered.pop_front();
                }
                memory.answers += 1;
            }
        }
        out
    }

    /// A grant names a relay instead of the server.
    fn through_a_relay(&self, message: Vec<u8>) -> Vec<u8> {
        let text = message.get(4..).unwrap_or_default();
        let Ok(mut grant) = serde_json::from_slice::<serde_json::Value>(text) else {
            return message;
        };
        let parts = (grant[1][0].as_str(), grant[1][1].as_u64());
        let (Some(host), Some(port)) = parts else {
            return message;
        };
        let Ok(server) = format!("{host}:{port}").parse() else {
            return message;
        };
        let Ok(relay) = Relay::with(self.defect, server, Talk::Session) else {
            return message;
        };
        grant[1][1] = relay.addr().port().into();
        self.servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(relay);
        crate::roles::tracker::frame(crate::roles::tracker::spaced(&grant).as_bytes())
    }
}

fn end(one: &TcpStream, other: &TcpStream) {
    // Either may be gone already.
    let _ = one.shutdown(Shutdown::Both);
    let _ = other.shutdown(Shutdown::Both);
}

//! A WebSocket as a carrier.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::stream::{Carrier, Stream, TIME_IS_UP};
use crate::socket::quick_ack;
use crate::websocket::{Inbound, NORMAL, Next, Outbound, Role, Violation};
use crate::{Deadline, TransportError};

/// What is said on behalf of those who read, or who leave, has this long to get into the connection.
const MOMENT: Duration = Duration::from_secs(1);

/// And this long if the peer did not take what was said before.
const NO_TIME: Duration = Duration::from_millis(1);

/// The stream of bytes that is in the binary messages of a WebSocket, on a TCP connection that was upgraded
/// to one, as its client.
///
/// The bounds of messages mean nothing. Frames of any length are read as they come; of the connection's
/// memory at most 80 KiB are used, whatever the peer does.
///
/// * **Reading** gives 0 bytes when the peer sent a close frame, which is answered, or closed the
///   connection. Pings are answered while reading, and do not make its time longer. A text message, and
///   whatever else is no WebSocket of binary messages, is an error of the kind
///   [`InvalidData`](ErrorKind::InvalidData), and the peer is told by a close frame.
/// * **Writing** puts what is written into a frame of at most 64 KiB, which leaves at once. If its time is
///   up in the middle of a frame, the rest leaves ahead of what is written next, or with a flush.
/// * **Shutting down** sends a close frame. What the peer still says can be read until it has answered.
///
/// A [clone](Carrier::try_clone) writes behind what others write. Who waits for a read holds up the reads of
/// clones only.
pub struct WebSocket(Arc<Shared>);

struct Shared {
    socket: TcpStream,
    read_limit: Mutex<Option<Duration>>,
    reading: Mutex<Inbound>,
    writing: Mutex<Writing>,
    /// What whoever writes next shall say on behalf of those who read. It has a lock of its own, so that no
    /// reader waits for a writer.
    aside: Mutex<Option<Aside>>,
}

enum Aside {
    Pong(Vec<u8>),
    Close(Option<u16>),
    Refuse(Violation),
}

struct Writing {
    outbound: Outbound,
    limit: Option<Duration>,
    /// Something that was said on behalf of others did not get into the connection.
    is_stuck: bool,
}

impl WebSocket {
    /// A WebSocket on a connection that a server has upgraded. `unread` was read behind the server's answer
    /// already: nothing, or what `asynchronous::WebSocket::into_parts` gave.
    ///
    /// The socket has to be one that blocks, without time limits.
    #[must_use]
    pub fn opened(socket: TcpStream, unread: &[u8]) -> Self {
        Self(Arc::new(Shared {
            socket,
            read_limit: Mutex::new(None),
            reading: Mutex::new(Inbound::new(Role::Client, unread)),
            writing: Mutex::new(Writing {
                outbound: Outbound::new(Role::Client),
                limit: None,
                is_stuck: false,
            }),
            aside: Mutex::new(None),
        }))
    }

    pub(super) fn into_stream(self, peer: String) -> Stream {
        Stream::new(self, peer)
    }
}

/// No panic can leave these states half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limit of a read, which is one for all that it takes to get some payload.
struct Patience {
    limit: Option<Duration>,
    since: Instant,
    /// The socket has a shorter limit than that.
    shortened: bool,
}

impl Shared {
    fn read(&self, target: &mut [u8]) -> io::Result<usize> {
        let mut inbound = lock(&self.reading);
        let mut patience = Patience {
            limit: *lock(&self.read_limit),
            since: Instant::now(),
            shortened: false,
        };
        let read = self.read_payload(&mut inbound, target, &mut patience);
        if patience.shortened {
            self.socket.set_read_timeout(patience.limit)?;
        }
        read
    }

    fn read_payload(
        &self,
        inbound: &mut Inbound,
        target: &mut [u8],
        patience: &mut Patience,
    ) -> io::Result<usize> {
        let mut socket = &self.socket;
        let mut is_first = true;
        loop {
            let next = inbound.next(target);
            if !matches!(next, Ok(Next::Ping(_))) {
                self.say_aside();
            }
            if matches!(next, Ok(Next::More | Next::Straight(_))) {
                if !is_first {
                    self.shorten(patience)?;
                }
                is_first = false;
            }
            match next {
                Ok(Next::Payload(count)) => return Ok(count),
                Ok(Next::Straight(most)) => {
                    let count = socket.read(&mut target[..most])?;
                    inbound.came_straight(&mut target[..count]);
                    return Ok(count);
                }
                Ok(Next::More) => {
                    let count = socket.read(inbound.room())?;
                    inbound.came(count);
                }
                // Those behind it may be others, and one answer is enough.
                Ok(Next::Ping(payload)) => *lock(&self.aside) = Some(Aside::Pong(payload)),
                Ok(Next::Close(code)) => {
                    *lock(&self.aside) = Some(Aside::Close(code));
                    self.say_aside();
                    return Ok(0);
                }
                Ok(Next::End) => return Ok(0),
                Err(violation) => {
                    *lock(&self.aside) = Some(Aside::Refuse(violation));
                    self.say_aside();
                    return Err(io::Error::new(ErrorKind::InvalidData, violation));
                }
            }
        }
    }

    /// The next wait may take what is left.
    fn shorten(&self, patience: &mut Patience) -> io::Result<()> {
        let Some(limit) = patience.limit else {
            return Ok(());
        };
        match limit.checked_sub(patience.since.elapsed()) {
            None | Some(Duration::ZERO) => Err(TIME_IS_UP.into()),
            left => {
                patience.shortened = true;
                self.socket.set_read_timeout(left)
            }
        }
    }

    /// Has said what there is to say on behalf of those who read. If somebody is writing, that one does.
    fn say_aside(&self) {
        if lock(&self.aside).is_some()
            && let Ok(mut writing) = self.writing.try_lock()
        {
            self.send_for_a_moment(&mut writing);
        }
    }

    /// If it cannot be sent, those who write will see.
    fn send_for_a_moment(&self, writing: &mut Writing) {
        let limit = writing.limit;
        let moment = if writing.is_stuck { NO_TIME } else { MOMENT };
        let moment = limit.map_or(moment, |limit| limit.min(moment));
        if self.socket.set_write_timeout(Some(moment)).is_ok() {
            writing.is_stuck = self.send(writing).is_err();
            let _ = self.socket.set_write_timeout(limit);
        }
    }

    /// Has `work` done by the one who writes.
    fn writing<T>(&self, work: impl FnOnce(&mut Writing) -> T) -> T {
        let mut writing = lock(&self.writing);
        let done = work(&mut writing);
        drop(writing);
        // A reader may have left it to us at the last moment.
        self.say_aside();
        done
    }

    fn write(&self, writing: &mut Writing, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(writing)?;
        let count = writing.outbound.put(slices)?;
        match self.send(writing) {
            Err(error) if !matches!(error.kind(), TIME_IS_UP | ErrorKind::Interrupted) => {
                Err(error)
            }
            // It is in the frame, so it counts as written.
            _ => Ok(count),
        }
    }

    /// Sends what has to be sent.
    fn send(&self, writing: &mut Writing) -> io::Result<()> {
        loop {
            match lock(&self.aside).take() {
                Some(Aside::Pong(payload)) => writing.outbound.pong(payload),
                Some(Aside::Close(code)) => writing.outbound.close(code),
                Some(Aside::Refuse(violation)) => writing.outbound.refuse(violation),
                None => {}
            }
            let unsent = writing.outbound.unsent()?;
            if unsent.is_empty() {
                writing.is_stuck = false;
                return Ok(());
            }
            match (&self.socket).write(unsent)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => writing.outbound.sent(count),
            }
        }
    }
}

impl Read for WebSocket {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if target.is_empty() {
            return Ok(0);
        }
        self.0.read(target)
    }
}

impl Write for WebSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.writing(|writing| self.0.write(writing, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.writing(|writing| self.0.send(writing))
    }
}

impl Carrier for WebSocket {
    fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        *lock(&self.0.read_limit) = limit;
        self.0.socket.set_read_timeout(limit)
    }

    fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        let mut writing = lock(&self.0.writing);
        writing.limit = limit;
        self.0.socket.set_write_timeout(limit)
    }

    fn quick_ack(&self) {
        quick_ack(SockRef::from(&self.0.socket));
    }

    fn try_clone(&self) -> Option<Box<dyn Carrier>> {
        Some(Box::new(Self(Arc::clone(&self.0))))
    }

    fn shutdown(&self) {
        self.0.writing(|writing| {
            writing.outbound.close(Some(NORMAL));
            self.0.send_for_a_moment(writing);
        });
    }

    // Without a lock, so that it ends those who wait.
    fn close(&self) {
        let _ = self.0.socket.shutdown(Shutdown::Both);
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("WebSocket");
        debug
            .field("socket", &self.0.socket)
            .finish_non_exhaustive()
    }
}

pub(super) fn send(
    socket: &mut TcpStream,
    bytes: &[u8],
    deadline: &Deadline,
    peer: &str,
) -> Result<(), TransportError> {
    let sent = limited(deadline, |wait| {
        socket.set_write_timeout(wait)?;
        socket.write_all(bytes)?;
        socket.set_write_timeout(None)
    });
    sent.map_err(|source| failed(source, deadline, peer))
}

pub(super) fn receive(
    socket: &mut TcpStream,
    target: &mut [u8],
    deadline: &Deadline,
    peer: &str,
) -> Result<usize, TransportError> {
    let came = limited(deadline, |wait| {
        socket.set_read_timeout(wait)?;
        let count = loop {
            match socket.read(target) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        socket.set_read_timeout(None)?;
        Ok(count)
    });
    came.map_err(|source| failed(source, deadline, peer))
}

fn limited<T>(
    deadline: &Deadline,
    work: impl FnOnce(Option<Duration>) -> io::Result<T>,
) -> io::Result<T> {
    match deadline.next_wait() {
        Some(Duration::ZERO) => Err(TIME_IS_UP.into()),
        wait => work(wait),
    }
}

fn failed(source: io::Error, deadline: &Deadline, peer: &str) -> TransportError {
    if source.kind() == TIME_IS_UP {
        deadline.timed_out(peer)
    } else {
        deadline.lost(peer, source)
    }
}

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use socket2::SockRef;

use crate::socket::quick_ack;
use crate::{Address, Deadline, Step, TransportError};

/// What a [`Stream`] runs on: bytes both ways, with time limits. A read or a write that takes longer
/// fails with the error of a [`TcpStream`]: [`ErrorKind::WouldBlock`], or [`ErrorKind::TimedOut`] on
/// Windows.
pub trait Carrier: Read + Write + Send {
    /// Limits each read, or takes the limit away. The limit is never zero.
    ///
    /// # Errors
    /// The carrier cannot do it.
    fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()>;

    /// Limits each write, or takes the limit away. The limit is never zero.
    ///
    /// # Errors
    /// The carrier cannot do it.
    fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()>;

    /// Acknowledges what comes next at once, where the carrier knows such a thing.
    fn quick_ack(&self) {}

    /// The same connection for another thread, where the carrier knows such a thing: to say a last word
    /// and to [close](Carrier::close) it while this thread waits.
    fn try_clone(&self) -> Option<Box<dyn Carrier>> {
        None
    }

    /// Says that nothing more will be written, where the carrier knows such a thing. What the peer says
    /// can still be read.
    fn shutdown(&self) {}

    /// Ends the connection in both directions, also for those who wait for it.
    fn close(&self) {}
}

/// What a call fails with when its time is up. Elsewhere than on Windows, `TimedOut` is a peer that
/// does not answer the probes of an idle connection.
pub(super) const TIME_IS_UP: ErrorKind = if cfg!(windows) {
    ErrorKind::TimedOut
} else {
    ErrorKind::WouldBlock
};

impl Carrier for TcpStream {
    fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        Self::set_read_timeout(self, limit)
    }

    fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        Self::set_write_timeout(self, limit)
    }

    fn quick_ack(&self) {
        quick_ack(SockRef::from(self));
    }

    fn try_clone(&self) -> Option<Box<dyn Carrier>> {
        let clone: Box<dyn Carrier> = Box::new(Self::try_clone(self).ok()?);
        Some(clone)
    }

    // It may be closed already.
    fn shutdown(&self) {
        let _ = Self::shutdown(self, Shutdown::Write);
    }

    fn close(&self) {
        let _ = Self::shutdown(self, Shutdown::Both);
    }
}

/// A connection to one peer. Errors name the peer, and what was being done.
pub struct Stream {
    carrier: Box<dyn Carrier>,
    peer: String,
    deadline: Deadline,
    read_limit: Option<Duration>,
    write_limit: Option<Duration>,
}

/// The half of a [`Stream`] that reads; here it is the whole.
pub type Reader = Stream;

impl Stream {
    /// A stream on any carrier; `peer` is its name in messages. It starts without a deadline.
    #[must_use]
    pub fn new(carrier: impl Carrier + 'static, peer: impl Into<String>) -> Self {
        Self {
            carrier: Box::new(carrier),
            peer: peer.into(),
            deadline: Deadline::each_wait(Step::Reply, None),
            read_limit: None,
            write_limit: None,
        }
    }

    pub(super) fn tcp(socket: TcpStream, peer: String) -> Self {
        Self::new(socket, peer)
    }

    /// The peer's name, for messages.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// What is being done from now on, and how long it may take.
    pub fn set_deadline(&mut self, deadline: Deadline) {
        self.deadline = deadline;
    }

    /// The same connection for another thread; see [`Carrier::try_clone`].
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self {
            carrier: self.carrier.try_clone()?,
            peer: self.peer.clone(),
            deadline: self.deadline,
            read_limit: self.read_limit,
            write_limit: self.write_limit,
        })
    }

    /// See [`Carrier::shutdown`].
    pub fn shutdown(&self) {
        self.carrier.shutdown();
    }

    /// See [`Carrier::close`].
    pub fn close(&self) {
        self.carrier.close();
    }

    /// See [`Carrier::quick_ack`].
    pub fn quick_ack(&self) {
        self.carrier.quick_ack();
    }

    /// Reads some bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// The stream fails, or the deadline passes.
    pub fn read(&mut self, target: &mut [u8]) -> Result<usize, TransportError> {
        loop {
            let wait = self.wait()?;
            if self.read_limit != wait {
                let set = self.carrier.set_read_timeout(wait);
                set.map_err(|source| self.failed(source))?;
                self.read_limit = wait;
            }
            match self.carrier.read(target) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read.map_err(|source| self.failed(source)),
            }
        }
    }

    /// Writes `head` and `payload`, one behind the other, and flushes.
    ///
    /// # Errors
    /// The stream fails, or the deadline passes. How much was written is then unknown.
    pub fn write_all(&mut self, head: &[u8], payload: &[u8]) -> Result<(), TransportError> {
        let mut slices = [IoSlice::new(head), IoSlice::new(payload)];
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let wait = self.wait()?;
            if self.write_limit != wait {
                let set = self.carrier.set_write_timeout(wait);
                set.map_err(|source| self.failed(source))?;
                self.write_limit = wait;
            }
            match self.carrier.write_vectored(rest) {
                Ok(0) => return Err(self.failed(ErrorKind::WriteZero.into())),
                Ok(count) => IoSlice::advance_slices(&mut rest, count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        self.flush()
    }

    /// The limit of the last write holds: to set it anew is a call of the system, for nothing on TCP.
    fn flush(&mut self) -> Result<(), TransportError> {
        loop {
            match self.carrier.flush() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                flushed => return flushed.map_err(|source| self.failed(source)),
            }
        }
    }

    /// What it means that the stream ended where more was due.
    pub(super) fn closed(&self) -> TransportError {
        self.deadline.closed(&self.peer)
    }

    /// How long the next call of the system may take; never no time at all.
    fn wait(&self) -> Result<Option<Duration>, TransportError> {
        match self.deadline.next_wait() {
            Some(Duration::ZERO) => Err(self.deadline.timed_out(&self.peer)),
            wait => Ok(wait),
        }
    }

    fn failed(&self, source: io::Error) -> TransportError {
        if source.kind() == TIME_IS_UP && self.deadline.next_wait().is_some() {
            self.deadline.timed_out(&self.peer)
        } else {
            self.deadline.lost(&self.peer, source)
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Stream");
        debug.field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// The addresses of a host. The system's own time limit holds, and cannot be changed.
pub(super) fn look_up(address: &Address, _: &Deadline) -> io::Result<Vec<SocketAddr>> {
    let found = (address.host(), address.port()).to_socket_addrs()?;
    Ok(found.collect())
}

/// Opens a connection to one address.
pub(super) fn open(address: SocketAddr, limit: Option<Duration>) -> io::Result<TcpStream> {
    match limit {
        None => TcpStream::connect(address),
        // The standard library refuses a limit of no time at all.
        Some(Duration::ZERO) => Err(ErrorKind::TimedOut.into()),
        Some(limit) => TcpStream::connect_timeout(&address, limit),
    }
}

#[cfg(unix)]
pub use pipe::spawn;

#[cfg(unix)]
mod pipe {
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use std::time::Duration;

    use super::{Carrier, Stream};
    use crate::TransportError;
    use crate::child::{ChildGuard, start};

    /// Starts a program and talks to it on its standard input and output. The child sees the end of
    /// its input when the stream is dropped. If it does not leave within two seconds then, it is killed,
    /// as long as our own process is still there to do it.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(command: Command) -> Result<Stream, TransportError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let (socket, child) = start(command)?;
        let pipe = ChildPipe {
            socket,
            _child: child,
        };
        Ok(Stream::new(pipe, program))
    }

    /// The fields are dropped in this order: first the end of the stream, then the child.
    struct ChildPipe {
        socket: UnixStream,
        _child: ChildGuard,
    }

    impl Read for ChildPipe {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            self.socket.read(target)
        }
    }

    impl Write for ChildPipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.socket.write(bytes)
        }

        fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
            self.socket.write_vectored(slices)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.socket.flush()
        }
    }

    impl Carrier for ChildPipe {
        fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
            self.socket.set_read_timeout(limit)
        }

        fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
            self.socket.set_write_timeout(limit)
        }
    }
}

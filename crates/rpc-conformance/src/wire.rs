//! A raw connection to the peer under test: bytes out, bytes in, and how it ended. Every wait has the
//! deadline of a step, and everything that passes is written down.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::stage::{Chunking, Outcome, Stage, Stop};
use crate::transcript::{Direction, End, What};

/// Between two writes that are to arrive as two segments. Nothing is judged by it: a peer has to read
/// both ways, and where they arrive together the case is only a little easier.
const APART: Duration = Duration::from_millis(1);
/// Bytes that are taken from a peer that is to end the connection.
const LONGEST_REST: usize = 16 << 20;

/// Why there are fewer bytes than were waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortfall {
    /// The peer ended the connection.
    Ended(End),
    /// Nothing more came before the deadline.
    Silent(Duration),
    /// More bytes came than anybody wants to have.
    Endless(usize),
}

impl std::fmt::Display for Shortfall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended(end) => end.fmt(f),
            Self::Silent(waited) => write!(f, "nothing within {waited:.1?}"),
            Self::Endless(len) => write!(f, "{len} bytes and no end"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Wire {
    stage: Arc<Stage>,
    stream: Arc<TcpStream>,
    number: usize,
    /// Received and not read yet.
    inbox: Vec<u8>,
    ended: Option<End>,
    chunks: fastrand::Rng,
}

/// Messages that are held back until the next wait, so that they arrive together.
#[derive(Debug)]
pub(crate) struct Held {
    number: usize,
    stream: Arc<TcpStream>,
    bytes: Vec<u8>,
}

impl Held {
    fn write(&self, stage: &Stage) {
        let deadline = stage.deadline();
        if Instant::now() >= deadline {
            // A peer that does not read has used up the time of the case.
            return;
        }
        stage.passed(self.number, Direction::Sent, &self.bytes);
        if let Err(error) = self.write_until(deadline) {
            let note = What::Note(format!("could not be sent: {error}"));
            stage.happened(self.number, Direction::Sent, note);
        }
    }

    /// Writes all of it; who takes a little now and then has no more time than who takes nothing.
    fn write_until(&self, deadline: Instant) -> std::io::Result<()> {
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_write_timeout(Some(left))?;
            match (&*self.stream).write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Sends what is held back, of all connections of the case: what is waited for on one may be caused on
/// another.
pub(crate) fn flush(stage: &Stage) {
    for held in stage.take_held() {
        held.write(stage);
    }
}

/// The address of this host from which it reaches a peer.
pub(crate) fn own_ip(to: SocketAddr) -> IpAddr {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // Nothing is sent: a datagram socket that is connected has chosen its way.
    let own = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    own.map_or(to.ip(), |own| own.ip())
}

impl Wire {
    /// Connects to the peer under test. That it can be connected to is the suite's business: a peer that
    /// went away is noticed between cases.
    pub(crate) fn connect(stage: &Arc<Stage>, to: SocketAddr, as_whom: &str) -> Outcome<Self> {
        flush(stage);
        let left = stage.deadline().saturating_duration_since(Instant::now());
        // A host under load may need a moment also where a step has none.
        let left = left.max(Duration::from_secs(1));
        let stream = TcpStream::connect_timeout(&to, left)
            .map_err(|error| Stop::Suite(format!("cannot connect to {to}: {error}")))?;
        let number = stage.connection(format!("{as_whom} to {to}"));
        Self::new(stage, stream, number)
    }

    /// Waits for the peer under test to connect.
    ///
    /// # Errors
    /// Nobody came within a step: the caller decides what that means.
    pub(crate) fn accept(
        stage: &Arc<Stage>,
        listener: &TcpListener,
        as_whom: &str,
    ) -> Outcome<Result<Self, Shortfall>> {
        let began = Instant::now();
        let deadline = stage.deadline();
        loop {
            if let Some(wire) = Self::accept_now(stage, listener, as_whom)? {
                return Ok(Ok(wire));
            }
            if Instant::now() >= deadline {
                return Ok(Err(Shortfall::Silent(began.elapsed())));
            }
            std::thread::sleep(APART);
        }
    }

    /// A connection that the peer under test has made already.
    pub(crate) fn accept_now(
        stage: &Arc<Stage>,
        listener: &TcpListener,
        as_whom: &str,
    ) -> Outcome<Option<Self>> {
        let suite = |error: std::io::Error| Stop::Suite(format!("cannot accept: {error}"));
        flush(stage);
        listener.set_nonblocking(true).map_err(suite)?;
        match listener.accept() {
            Ok((stream, from)) => {
                stream.set_nonblocking(false).map_err(suite)?;
                let number = stage.accepted(format!("{from} to {as_whom}"));
                Self::new(stage, stream, number).map(Some)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(suite(error)),
        }
    }

    fn new(stage: &Arc<Stage>, stream: TcpStream, number: usize) -> Outcome<Self> {
        let suite = |error: std::io::Error| Stop::Suite(format!("socket option: {error}"));
        stream.set_nodelay(true).map_err(suite)?;
        Ok(Self {
            number,
            chunks: fastrand::Rng::with_seed(stage.conditions.seed),
            stage: Arc::clone(stage),
            stream: Arc::new(stream),
            inbox: Vec::new(),
            ended: None,
        })
    }

    pub(crate) fn stage(&self) -> &Arc<Stage> {
        &self.stage
    }

    /// Sends a message, cut as the chunking of this playing says. That the peer has closed meanwhile
    /// shows itself when its answer is read.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        match self.stage.conditions.chunking {
            Chunking::Whole => self.write(bytes),
            Chunking::Coalesced => self.hold(bytes),
            Chunking::Bytes => self.send_in_pieces(bytes, 1),
            Chunking::Random => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let (piece, behind) = rest.split_at(self.chunks.usize(1..=rest.len()));
                    self.write(piece);
                    std::thread::sleep(APART);
                    rest = behind;
                }
            }
        }
    }

    /// Sends bytes in one write, whatever the chunking.
    pub(crate) fn send_whole(&mut self, bytes: &[u8]) {
        self.flush();
        self.write(bytes);
    }

    /// Sends two pieces as two writes, whatever the chunking.
    pub(crate) fn send_split(&mut self, bytes: &[u8], at: usize) {
        self.flush();
        let (first, second) = bytes.split_at(at.min(bytes.len()));
        self.write(first);
        std::thread::sleep(APART);
        self.write(second);
    }

    /// Sends writes of `size` bytes each. Of a long message only the first bytes go one by one, so that
    /// megabytes do not take hours.
    pub(crate) fn send_in_pieces(&mut self, bytes: &[u8], size: usize) {
        const PIECES: usize = 64;
        let (pieces, rest) = bytes.split_at(bytes.len().min(size * PIECES));
        for piece in pieces.chunks(size) {
            self.write(piece);
            std::thread::sleep(APART);
        }
        self.write(rest);
    }

    /// Sends what is held back.
    pub(crate) fn flush(&self) {
        flush(&self.stage);
    }

    fn hold(&self, bytes: &[u8]) {
        self.stage.hold(|held| match held.last_mut() {
            Some(last) if last.number == self.number => last.bytes.extend_from_slice(bytes),
            _ => held.push(self.message(bytes)),
        });
    }

    fn write(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.message(bytes).write(&self.stage);
        }
    }

    fn message(&self, bytes: &[u8]) -> Held {
        Held {
            number: self.number,
            stream: Arc::clone(&self.stream),
            bytes: bytes.to_vec(),
        }
    }

    pub(crate) fn note(&self, text: String) {
        self.stage
            .happened(self.number, Direction::Sent, What::Note(text));
    }

    /// Ends what the suite sends; the other direction stays open.
    pub(crate) fn finish(&mut self) {
        self.flush();
        self.stage
            .happened(self.number, Direction::Sent, What::Ended(End::Fin));
        // Fails only where the connection is gone already, which the next read says.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Breaks the connection off: the peer sees a reset.
    pub(crate) fn reset(self) {
        self.flush();
        self.stage
            .happened(self.number, Direction::Sent, What::Ended(End::Reset));
        let _ = SockRef::from(&*self.stream).set_linger(Some(Duration::ZERO));
    }

    /// Exactly so many bytes.
    pub(crate) fn read(&mut self, len: usize) -> Result<Vec<u8>, Shortfall> {
        self.fill(len)?;
        Ok(self.inbox.drain(..len).collect())
    }

    /// The next bytes, which stay to be read.
    pub(crate) fn peek(&mut self, len: usize) -> Result<&[u8], Shortfall> {
        self.fill(len)?;
        Ok(&self.inbox[..len])
    }

    /// What was received and not read.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.inbox
    }

    fn fill(&mut self, len: usize) -> Result<(), Shortfall> {
        self.flush();
        let began = Instant::now();
        let deadline = self.stage.deadline();
        while self.inbox.len() < len {
            // Who keeps talking has no more time than who says nothing.
            let received = match Instant::now() >= deadline {
                true => Err(Shortfall::Silent(began.elapsed())),
                false => self.receive(deadline, began),
            };
            if let Err(Shortfall::Silent(waited)) = received {
                let note = What::Note(format!("nothing more within {waited:.1?}"));
                self.stage.happened(self.number, Direction::Received, note);
            }
            received?;
        }
        Ok(())
    }

    /// Whatever comes until the peer ends the connection. A shortfall says how it ended; bytes stay in
    /// [`Wire::unread`].
    pub(crate) fn read_to_end(&mut self) -> Shortfall {
        self.flush();
        let began = Instant::now();
        let deadline = self.stage.deadline();
        while Instant::now() < deadline {
            if let Err(shortfall) = self.receive(deadline, began) {
                return shortfall;
            }
            if self.inbox.len() > LONGEST_REST {
                return Shortfall::Endless(self.inbox.len());
            }
        }
        Shortfall::Silent(began.elapsed())
    }

    /// Takes whatever comes until the peer ends the connection or says nothing more for a moment: for
    /// answers that may be anything or nothing, and that are not judged.
    pub(crate) fn read_to_end_of_step(&mut self) {
        const MOMENT: Duration = Duration::from_millis(100);
        self.flush();
        let began = Instant::now();
        let deadline = self.stage.deadline();
        while Instant::now() < deadline
            && self.inbox.len() <= LONGEST_REST
            && self.receive(Instant::now() + MOMENT, began).is_ok()
        {}
    }

    /// Sends as much as the peer takes without being read from, in the background of the kernel alone.
    pub(crate) fn send_without_waiting(&mut self, bytes: &[u8]) {
        self.flush();
        let _ = self.stream.set_nonblocking(true);
        let mut rest = bytes;
        while let Ok(written @ 1..) = (&*self.stream).write(rest) {
            self.stage
                .passed(self.number, Direction::Sent, &rest[..written]);
            rest = &rest[written..];
        }
        let _ = self.stream.set_nonblocking(false);
    }

    /// Takes what has come already, without waiting.
    pub(crate) fn poll(&mut self) {
        self.flush();
        let now = Instant::now();
        // Fails when there is nothing, which is an answer.
        let _ = self.receive(now, now);
    }

    /// How the peer ended the connection, if it did.
    pub(crate) fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Waits for some bytes.
    fn receive(&mut self, deadline: Instant, began: Instant) -> Result<(), Shortfall> {
        const PIECE: usize = 64 * 1024;
        if let Some(end) = self.ended {
            return Err(Shortfall::Ended(end));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        // A timeout of nothing means none; the shortest one is a look at what is there.
        let _ = self
            .stream
            .set_read_timeout(Some(left.max(Duration::from_millis(1))));
        let mut piece = [0; PIECE];
        match (&*self.stream).read(&mut piece) {
            Ok(0) => self.note_end(End::Fin),
            Ok(read) => {
                self.stage
                    .passed(self.number, Direction::Received, &piece[..read]);
                self.inbox.extend_from_slice(&piece[..read]);
                Ok(())
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    Err(Shortfall::Silent(began.elapsed()))
                }
                ErrorKind::Interrupted => Ok(()),
                _ => self.note_end(End::Reset),
            },
        }
    }

    fn note_end(&mut self, end: End) -> Result<(), Shortfall> {
        self.ended = Some(end);
        self.stage
            .happened(self.number, Direction::Received, What::Ended(end));
        Err(Shortfall::Ended(end))
    }
}

impl Drop for Wire {
    /// What was said is sent before the connection ends.
    fn drop(&mut self) {
        self.flush();
    }
}

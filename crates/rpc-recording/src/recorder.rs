//! From bytes that pass to a conversation.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rpc_proto::Dialect;

use crate::cut::{Cut, Cutter, Stage};
use crate::file::{FileError, write_beside, write_parts};
use crate::{Connection, Conversation, Direction, Explained, Kind, Message, Protocol, guess};

/// What a recording says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Package and version of the peers.
    pub peer: String,
    /// Who they are, and where the recorder is.
    pub role: String,
    /// A name for it.
    pub scenario: String,
    /// What happens in it.
    pub description: String,
}

/// How much a recorder keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderLimits {
    /// Bytes of one message; default 1 MiB. Of a longer one, as a copy of a large tensor is, the rest is
    /// only counted.
    pub message: usize,
    /// Bytes of all that is kept; default 64 MiB. Counted are messages, also those that have come in part,
    /// with 256 bytes for what is kept beside each, and 1024 for each connection. Once there is no room
    /// for something, the recording is full: messages that come later are only counted, and each
    /// connection that is made later counts as one.
    pub total: u64,
}

impl Default for RecorderLimits {
    fn default() -> Self {
        Self {
            message: 1 << 20,
            total: 64 << 20,
        }
    }
}

impl RecorderLimits {
    /// Replaces [`RecorderLimits::message`] (bytes).
    #[must_use]
    pub fn with_message(mut self, bytes: usize) -> Self {
        self.message = bytes;
        self
    }

    /// Replaces [`RecorderLimits::total`] (bytes).
    #[must_use]
    pub fn with_total(mut self, bytes: u64) -> Self {
        self.total = bytes;
        self
    }
}

/// Makes a [`Conversation`] of the bytes that pass on connections, in pieces of any size.
///
/// It keeps no more than [`RecorderLimits`] say, however many connections there are. What messages mean is
/// found out when a conversation is asked for.
#[derive(Debug)]
pub struct Recorder {
    about: About,
    limits: RecorderLimits,
    connections: Vec<Recorded>,
    messages: Vec<Arc<Passed>>,
    used: u64,
    /// The bytes of messages that are not complete.
    unfinished: u64,
    is_full: bool,
    is_over: bool,
    dropped: u64,
    /// Connections that have a number, but were not recorded.
    unrecorded: usize,
    step: Option<Arc<str>>,
}

/// A connection.
#[derive(Debug)]
struct Recorded {
    link: String,
    protocol: Option<Protocol>,
    dialect: Option<Dialect>,
    cutters: [Cutter; 2],
    ended: [bool; 2],
}

/// A message.
#[derive(Debug)]
struct Passed {
    connection: usize,
    direction: Direction,
    cut: Cut,
    at: Duration,
    step: Option<Arc<str>>,
}

impl Recorder {
    /// A recorder of nothing yet.
    #[must_use]
    pub fn new(about: About, limits: RecorderLimits) -> Self {
        Self {
            about,
            limits,
            connections: Vec::new(),
            messages: Vec::new(),
            used: 0,
            unfinished: 0,
            is_full: false,
            is_over: false,
            dropped: 0,
            unrecorded: 0,
            step: None,
        }
    }

    /// A new connection between whom `link` says, for example `client-server`, or if that is empty its
    /// protocol; its number is returned. Protocol and dialect are found out if they are not given.
    ///
    /// Also a connection for which there is no room has a number, but what passes on it is not recorded.
    pub fn connect(
        &mut self,
        link: &str,
        protocol: Option<Protocol>,
        dialect: Option<Dialect>,
    ) -> usize {
        /// About what a connection takes, with the first bytes of messages by which they are counted.
        const CONNECTION: u64 = 1024;
        let number = self.connections.len() + self.unrecorded;
        if self.is_over || !self.has_room(CONNECTION + link.len() as u64) {
            self.unrecorded += 1;
            // Whoever reads the recording is told that something is missing.
            self.dropped += 1;
            return number;
        }
        let cutter = |direction| Cutter::new(direction, Stage::Beginning, self.limits.message);
        self.connections.push(Recorded {
            link: link.to_owned(),
            protocol,
            dialect,
            cutters: [cutter(Direction::C2s), cutter(Direction::S2c)],
            ended: [false; 2],
        });
        number
    }

    /// Takes room for what is going to be kept, unless there is too little.
    fn has_room(&mut self, cost: u64) -> bool {
        if self.used + self.unfinished + cost > self.limits.total {
            self.fill();
        }
        if !self.is_full {
            self.used += cost;
        }
        !self.is_full
    }

    /// Nothing more is kept than what it takes to count messages.
    fn fill(&mut self) {
        self.is_full = true;
        let cutters = self.connections.iter_mut().flat_map(|c| &mut c.cutters);
        cutters.for_each(Cutter::keep_least);
        self.unfinished = 0;
    }

    /// Whether there is no more room, and what passes from now on is not recorded.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// To which step messages belong from now on.
    pub fn step(&mut self, step: &str) {
        self.step = Some(step.into());
    }

    /// These bytes passed, so long after the start of the recording.
    ///
    /// # Panics
    /// There is no such connection.
    pub fn pass(&mut self, connection: usize, direction: Direction, bytes: &[u8], at: Duration) {
        if !self.records(connection) {
            return;
        }
        // What has no length ends when the other side speaks.
        let other = direction.reversed();
        if let Some(before) = self.cut(connection, other, Cutter::take_unknown) {
            self.keep(connection, other, before, at);
        }
        let mut cuts = Vec::new();
        self.cut(connection, direction, |cutter| {
            cutter.push(bytes, |cut| cuts.push(cut));
        });
        for cut in cuts {
            self.keep(connection, direction, cut, at);
        }
        if !self.is_full && self.used + self.unfinished > self.limits.total {
            self.fill();
        }
    }

    /// A direction of a connection ended. Only the first time counts.
    ///
    /// # Panics
    /// There is no such connection.
    pub fn end(&mut self, connection: usize, direction: Direction, at: Duration) {
        if !self.records(connection) {
            return;
        }
        let ended = &mut self.connections[connection].ended;
        let ended = &mut ended[usize::from(direction == Direction::S2c)];
        if std::mem::replace(ended, true) {
            return;
        }
        if let Some(rest) = self.cut(connection, direction, Cutter::end) {
            self.keep(connection, direction, rest, at);
        }
        let close = Cut {
            kind: Kind::Close,
            bytes: Vec::new(),
            omitted: 0,
            why: None,
            meant: Kind::Close,
        };
        self.keep(connection, direction, close, at);
    }

    /// The recording is over: what has come of messages that are not complete is kept as bytes, and
    /// nothing that passes later.
    pub fn finish(&mut self, at: Duration) {
        for connection in 0..self.connections.len() {
            for direction in [Direction::C2s, Direction::S2c] {
                if let Some(rest) = self.cut(connection, direction, Cutter::end) {
                    self.keep(connection, direction, rest, at);
                }
            }
        }
        self.is_over = true;
    }

    /// Whether what passes on a connection is looked at.
    fn records(&self, connection: usize) -> bool {
        let all = self.connections.len() + self.unrecorded;
        assert!(connection < all, "there is no connection {connection}");
        !self.is_over && connection < self.connections.len()
    }

    /// Does something with a cutter, and counts what it has kept since.
    fn cut<T>(
        &mut self,
        connection: usize,
        direction: Direction,
        with: impl FnOnce(&mut Cutter) -> T,
    ) -> T {
        let [c2s, s2c] = &mut self.connections[connection].cutters;
        let cutter = match direction {
            Direction::C2s => c2s,
            Direction::S2c => s2c,
        };
        let before = cutter.kept();
        let done = with(cutter);
        if !self.is_full {
            self.unfinished = self.unfinished + cutter.kept() - before;
        }
        done
    }

    fn keep(&mut self, connection: usize, direction: Direction, mut cut: Cut, at: Duration) {
        /// About what a message takes besides its bytes.
        const BESIDE: u64 = 256;
        let why = cut.why.as_ref().map_or(0, String::len);
        let cost = BESIDE + cut.bytes.len() as u64 + why as u64;
        if !self.has_room(cost) {
            self.dropped += 1;
            return;
        }
        cut.bytes.shrink_to_fit();
        self.messages.push(Arc::new(Passed {
            connection,
            direction,
            cut,
            at,
            step: self.step.clone(),
        }));
    }

    /// All messages that are complete, to be written while others pass.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let connections = self.connections.iter().enumerate();
        let connections = connections.map(|(id, connection)| {
            let cut = connection.cutters.iter().find_map(Cutter::protocol);
            let protocol = connection.protocol.or(cut).unwrap_or_default();
            let link = match (connection.link.as_str(), protocol) {
                ("", Protocol::Tracker) => "peer-tracker",
                ("", Protocol::Rpc) => "client-server",
                ("", _) => "peer-peer",
                (link, _) => link,
            };
            Connection::new(id, link, protocol, connection.dialect)
        });
        Snapshot {
            about: self.about.clone(),
            connections: connections.collect(),
            messages: self.messages.clone(),
            dropped: self.dropped,
        }
    }

    /// All messages that are complete, with their meanings.
    #[must_use]
    pub fn conversation(&self) -> Conversation {
        self.snapshot().conversation()
    }
}

/// What a [`Recorder`] had at a moment; taking one copies no bytes.
#[derive(Debug, Clone)]
pub struct Snapshot {
    about: About,
    connections: Vec<Connection>,
    messages: Vec<Arc<Passed>>,
    dropped: u64,
}

impl Snapshot {
    /// The conversation, with the meanings of the messages.
    #[must_use]
    pub fn conversation(mut self) -> Conversation {
        self.find_dialects();
        Conversation {
            messages: self.messages().collect(),
            ..self.without_messages()
        }
    }

    /// Writes the conversation to a file, one message at a time, as [`Conversation::write`] does.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(mut self, path: &Path) -> Result<(), FileError> {
        self.find_dialects();
        write_beside(path, |out| self.write_to(out))
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        write_parts(out, &self.without_messages(), self.messages())
    }

    fn without_messages(&self) -> Conversation {
        let About {
            peer,
            role,
            scenario,
            description,
        } = self.about.clone();
        let mut dialects = self.connections.iter().filter_map(|c| c.dialect);
        let dialect = match dialects.next() {
            Some(first) if dialects.all(|dialect| dialect == first) => crate::dialect_name(first),
            _ => "",
        };
        Conversation {
            peer,
            role,
            scenario,
            description,
            dialect: dialect.to_owned(),
            connections: self.connections.clone(),
            dropped: self.dropped,
            ..Conversation::default()
        }
    }

    /// Of each connection the first packet that shows a dialect decides.
    fn find_dialects(&mut self) {
        for message in &self.messages {
            let connection = &mut self.connections[message.connection];
            let is_asked = connection.dialect.is_none() && connection.proto == Protocol::Rpc;
            if is_asked && message.cut.kind == Kind::Packet && message.cut.omitted == 0 {
                connection.dialect = guess::dialect([&*message.cut.bytes]);
            }
        }
    }

    fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        self.messages.iter().enumerate().map(|(i, passed)| {
            let Passed {
                connection,
                direction,
                cut,
                at,
                step,
            } = &**passed;
            let dialect = self.connections[*connection].dialect.unwrap_or_default();
            let bytes = cut.bytes.clone();
            let mut message = Message::new(i, *connection, *direction, cut.kind, bytes);
            message.omitted = cut.omitted;
            message.step = step.as_deref().map(str::to_owned);
            message.t = Some(seconds(*at));
            let explained = Explained::message(&message, dialect);
            message.note = match &cut.why {
                Some(why) => format!("{}: {why}", explained.note),
                None => explained.note,
            };
            message.decoded = explained.decoded;
            message.volatile = explained.volatile;
            message
        })
    }
}

/// To the millisecond, as nothing here is more exact.
fn seconds(at: Duration) -> f64 {
    let millis = u32::try_from(at.as_millis()).unwrap_or(u32::MAX);
    f64::from(millis) / 1000.0
}

#[cfg(test)]
mod tests;

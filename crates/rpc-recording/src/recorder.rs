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
    /// Bytes of all messages, counting 256 for what is kept beside each; default 64 MiB. What comes
    /// later is only counted.
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
/// It keeps no more than [`RecorderLimits`] say, and besides at most [`RecorderLimits::message`] bytes for
/// each direction of each connection, of the message that is not complete. What messages mean is found out
/// when a conversation is asked for.
#[derive(Debug)]
pub struct Recorder {
    about: About,
    limits: RecorderLimits,
    connections: Vec<Recorded>,
    messages: Vec<Arc<Passed>>,
    used: u64,
    dropped: u64,
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
            dropped: 0,
            step: None,
        }
    }

    /// A new connection between whom `link` says, for example `client-server`, or if that is empty its
    /// protocol; its number is returned. Protocol and dialect are found out if they are not given.
    pub fn connect(
        &mut self,
        link: &str,
        protocol: Option<Protocol>,
        dialect: Option<Dialect>,
    ) -> usize {
        let cutter = |direction| Cutter::new(direction, Stage::Beginning, self.limits.message);
        self.connections.push(Recorded {
            link: link.to_owned(),
            protocol,
            dialect,
            cutters: [cutter(Direction::C2s), cutter(Direction::S2c)],
            ended: [false; 2],
        });
        self.connections.len() - 1
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
        // What has no length ends when the other side speaks.
        let other = direction.reversed();
        if let Some(before) = self.cutter(connection, other).take_unknown() {
            self.keep(connection, other, before, at);
        }
        let mut cuts = Vec::new();
        let cutter = self.cutter(connection, direction);
        cutter.push(bytes, |cut| cuts.push(cut));
        for cut in cuts {
            self.keep(connection, direction, cut, at);
        }
    }

    /// A direction of a connection ended. Only the first time counts.
    ///
    /// # Panics
    /// There is no such connection.
    pub fn end(&mut self, connection: usize, direction: Direction, at: Duration) {
        let ended = &mut self.connections[connection].ended;
        let ended = &mut ended[usize::from(direction == Direction::S2c)];
        if std::mem::replace(ended, true) {
            return;
        }
        if let Some(rest) = self.cutter(connection, direction).end() {
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

    /// The recording is over: what has come of messages that are not complete is kept as bytes.
    pub fn finish(&mut self, at: Duration) {
        for connection in 0..self.connections.len() {
            for direction in [Direction::C2s, Direction::S2c] {
                if let Some(rest) = self.cutter(connection, direction).end() {
                    self.keep(connection, direction, rest, at);
                }
            }
        }
    }

    fn cutter(&mut self, connection: usize, direction: Direction) -> &mut Cutter {
        let [c2s, s2c] = &mut self.connections[connection].cutters;
        match direction {
            Direction::C2s => c2s,
            Direction::S2c => s2c,
        }
    }

    fn keep(&mut self, connection: usize, direction: Direction, mut cut: Cut, at: Duration) {
        /// About what a message takes besides its bytes.
        const BESIDE: u64 = 256;
        let cost = cut.bytes.len() as u64 + BESIDE;
        if self.dropped > 0 || self.used + cost > self.limits.total {
            self.dropped += 1;
            return;
        }
        self.used += cost;
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

    fn find_dialects(&mut self) {
        for connection in &mut self.connections {
            if connection.dialect.is_none() && connection.proto == Protocol::Rpc {
                let packets = self.messages.iter().filter(|message| {
                    message.connection == connection.id && message.cut.kind == Kind::Packet
                });
                let complete = packets.filter(|message| message.cut.omitted == 0);
                connection.dialect = guess::dialect(complete.map(|message| &*message.cut.bytes));
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
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    fn recorder(limits: RecorderLimits) -> (Recorder, usize) {
        let mut recorder = Recorder::new(About::default(), limits);
        let connection = recorder.connect("", None, None);
        (recorder, connection)
    }

    #[test]
    fn a_conversation_has_readings_and_times() {
        let (mut recorder, connection) = recorder(RecorderLimits::default());
        recorder.step("greet");
        for direction in [Direction::C2s, Direction::S2c] {
            recorder.pass(connection, direction, b"\x71\xf2\x02\0", START);
        }
        recorder.step("put");
        let put = br#"[3, "x1", [9090, "x1:0.33779848957395986"], null]"#;
        let frame = [&49_u32.to_le_bytes()[..], put].concat();
        recorder.pass(
            connection,
            Direction::C2s,
            &frame,
            Duration::from_millis(1234),
        );
        let conversation = recorder.conversation();
        assert_eq!(conversation.connections[0].link, "peer-tracker");
        let message = &conversation.messages[2];
        assert_eq!(
            message.note,
            r#"PUT "x1": at port 9090, match key "x1:0.33779848957395986""#
        );
        assert_eq!(
            (message.t, message.step.as_deref()),
            (Some(1.234), Some("put"))
        );
        let volatile = message.volatile.iter();
        let volatile: Vec<_> = volatile.map(|v| (v.offset, v.len, &*v.what)).collect();
        assert_eq!(
            volatile,
            [(0, 4, "len"), (15, 4, "port"), (22, 22, "random-key")]
        );
    }

    #[test]
    fn what_has_no_length_ends_when_the_other_side_speaks() {
        let (mut recorder, connection) = recorder(RecorderLimits::default());
        recorder.pass(connection, Direction::C2s, b"HELO ", START);
        recorder.pass(connection, Direction::C2s, b"there\x1b[2J", START);
        recorder.pass(connection, Direction::S2c, b"250 OK", START);
        recorder.end(connection, Direction::S2c, START);
        let said = recorder.conversation().messages;
        let said: Vec<_> = said
            .iter()
            .map(|m| (m.dir, m.kind, m.bytes.len()))
            .collect();
        assert_eq!(
            said,
            [
                (Direction::C2s, Kind::Raw, 14),
                (Direction::S2c, Kind::Raw, 6),
                (Direction::S2c, Kind::Close, 0),
            ]
        );
    }

    #[test]
    fn memory_is_bounded() {
        let limits = RecorderLimits::default().with_message(100).with_total(1000);
        let (mut recorder, connection) = recorder(limits);
        let ack = [&10_004_u64.to_le_bytes()[..], b"\x08\0\0\0", &[7; 10_000]].concat();
        let handshake = b"\x71\xf2\x0f\0\0\0\0\0";
        recorder.pass(connection, Direction::S2c, handshake, START);
        for _ in 0..3 {
            for piece in ack.chunks(999) {
                recorder.pass(connection, Direction::S2c, piece, START);
            }
        }
        let conversation = recorder.conversation();
        let kept = |message: &Message| (message.bytes.len(), message.omitted);
        let kept: Vec<_> = conversation.messages.iter().map(kept).collect();
        assert_eq!(kept, [(8, 0), (100, 9912), (100, 9912)]);
        assert_eq!(conversation.dropped, 1);
        assert_eq!(
            conversation.messages[1].note,
            "copy ack: 10000 bytes; 9912 bytes of it were not recorded"
        );
    }

    #[test]
    fn what_is_not_complete_at_the_end_is_kept() {
        let (mut recorder, connection) = recorder(RecorderLimits::default());
        recorder.pass(
            connection,
            Direction::C2s,
            b"\x71\xf2\x0f\0\x09\0\0\0clie",
            START,
        );
        assert!(recorder.conversation().messages.is_empty());
        recorder.finish(START);
        let message = &recorder.conversation().messages[0];
        assert_eq!((message.kind, message.bytes.len()), (Kind::Raw, 12));
        assert_eq!(
            message.note,
            "12 bytes that are no message: 12 of 17 bytes of a greeting or handshake"
        );
    }
}

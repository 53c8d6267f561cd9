//! Where one message ends and the next begins.

use rpc_proto::codes::{HandshakeCode, RPC_MAGIC, TRACKER_MAGIC};
use rpc_proto::explain::Extent;
use rpc_proto::{DecodeError, Limits, handshake, packet, tracker};

use crate::{Direction, Kind, Protocol};

/// Cuts the bytes of one direction of a connection into messages, whatever the pieces in which they come.
///
/// It looks at lengths alone, so that it needs no dialect, and keeps at most so many bytes of one message
/// as it is told.
#[derive(Debug)]
pub struct Cutter {
    direction: Direction,
    stage: Stage,
    keep: usize,
    limits: Limits,
    /// The first bytes of the message that is not complete.
    kept: Vec<u8>,
    /// All of its bytes that have come.
    seen: u64,
    /// How many it has, as far as that is known.
    extent: Extent,
    /// What was expected where it turned out to be no message.
    meant: Kind,
}

/// Where in a conversation the bytes of a direction are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// At the start of a connection.
    Beginning,
    /// Behind a tracker's greeting.
    Frames,
    /// Behind a handshake.
    Packets,
    /// Somewhere where nothing is known of them, and why.
    Unknown(String),
}

/// A message that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// What it is.
    pub kind: Kind,
    /// Its bytes, or the first of them.
    pub bytes: Vec<u8>,
    /// Bytes behind those, which were not kept.
    pub omitted: u64,
    /// Why it is no message of the protocol.
    pub why: Option<String>,
    /// Of bytes that are no message, what was expected there; else the same as `kind`.
    pub meant: Kind,
}

impl Cutter {
    /// The fewest bytes of a message that are kept: those that say how long it is.
    const LEAST: usize = 64;

    /// A cutter that keeps at most `keep` bytes of a message (64 at least).
    #[must_use]
    pub fn new(direction: Direction, stage: Stage, keep: usize) -> Self {
        Self {
            direction,
            stage,
            keep: keep.max(Self::LEAST),
            limits: Limits::default(),
            kept: Vec::new(),
            seen: 0,
            extent: Extent::AtLeast(4),
            meant: Kind::Raw,
        }
    }

    /// Takes the next bytes, in order, and gives the messages that they complete.
    pub fn push(&mut self, mut input: &[u8], mut complete: impl FnMut(Cut)) {
        while !input.is_empty() {
            let wanted = match self.extent {
                _ if matches!(self.stage, Stage::Unknown(_)) => u64::MAX,
                Extent::AtLeast(wanted) | Extent::Exactly(wanted) => wanted - self.seen,
            };
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            let (piece, rest) = input.split_at(wanted.min(input.len()));
            let room = self.keep.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
            self.seen += piece.len() as u64;
            input = rest;
            if let Some(cut) = self.cut() {
                complete(cut);
            }
        }
    }

    /// Bytes of which nothing is known, as far as they have come.
    pub fn take_unknown(&mut self) -> Option<Cut> {
        match &self.stage {
            Stage::Unknown(why) if self.seen > 0 => {
                let why = Some(why.clone());
                Some(self.take(Kind::Raw, why))
            }
            _ => None,
        }
    }

    /// What is left at the end of the bytes.
    pub fn end(&mut self) -> Option<Cut> {
        if self.seen == 0 {
            return None;
        }
        let why = match (&self.stage, self.extent) {
            (Stage::Unknown(why), _) => why.clone(),
            (_, Extent::AtLeast(_)) => format!(
                "the bytes end before they say how long their {} is",
                self.what()
            ),
            (_, Extent::Exactly(total)) => {
                format!("{} of {total} bytes of a {}", self.seen, self.what())
            }
        };
        Some(self.take(Kind::Raw, Some(why)))
    }

    /// Whether nothing has come of a message that is not whole.
    #[must_use]
    pub fn is_between_messages(&self) -> bool {
        self.seen == 0
    }

    /// From now on it keeps only the bytes that say how long a message is.
    pub(crate) fn keep_least(&mut self) {
        self.keep = Self::LEAST;
        self.kept.truncate(Self::LEAST);
        self.kept.shrink_to_fit();
    }

    /// How many bytes it keeps.
    pub(crate) fn kept(&self) -> u64 {
        self.kept.len() as u64
    }

    /// The protocol, once it is known.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        match self.stage {
            Stage::Frames => Some(Protocol::Tracker),
            Stage::Packets => Some(Protocol::Rpc),
            Stage::Beginning => match self.magic()? {
                TRACKER_MAGIC => Some(Protocol::Tracker),
                RPC_MAGIC => Some(Protocol::Rpc),
                _ => None,
            },
            Stage::Unknown(_) => None,
        }
    }

    fn what(&self) -> &'static str {
        match self.stage {
            Stage::Frames => "frame",
            Stage::Packets => "packet",
            _ => "greeting or handshake",
        }
    }

    fn take(&mut self, kind: Kind, why: Option<String>) -> Cut {
        let meant = match (kind, &self.stage) {
            // Only the first of them were expected to be something.
            (Kind::Raw, Stage::Unknown(_)) => std::mem::replace(&mut self.meant, Kind::Raw),
            (Kind::Raw, _) => self.next_kind(),
            (kind, _) => kind,
        };
        let bytes = std::mem::take(&mut self.kept);
        let omitted = self.seen - bytes.len() as u64;
        self.seen = 0;
        self.extent = Extent::AtLeast(4);
        Cut {
            kind,
            bytes,
            omitted,
            why,
            meant,
        }
    }

    /// Looks at what is there of a message, and takes it if it is complete.
    fn cut(&mut self) -> Option<Cut> {
        if let Extent::AtLeast(_) = self.extent {
            match self.look() {
                Ok(extent) => self.extent = extent,
                Err(error) => {
                    self.meant = self.next_kind();
                    self.stage = Stage::Unknown(error.to_string());
                }
            }
        }
        if self.extent != Extent::Exactly(self.seen) {
            return None;
        }
        let kind = self.next_kind();
        let next = match kind {
            Kind::Magic | Kind::Json => Stage::Frames,
            Kind::Handshake | Kind::Packet => Stage::Packets,
            _ => return None,
        };
        let cut = self.take(kind, None);
        self.stage = next;
        Some(cut)
    }

    fn next_kind(&self) -> Kind {
        match self.stage {
            Stage::Beginning if self.magic() == Some(TRACKER_MAGIC) => Kind::Magic,
            Stage::Beginning => Kind::Handshake,
            Stage::Frames => Kind::Json,
            Stage::Packets => Kind::Packet,
            Stage::Unknown(_) => Kind::Raw,
        }
    }

    fn look(&self) -> Result<Extent, DecodeError> {
        let Self {
            kept,
            direction,
            limits,
            ..
        } = self;
        match (&self.stage, direction) {
            (Stage::Unknown(_), _) => Ok(Extent::AtLeast(u64::MAX)),
            (Stage::Frames, Direction::C2s) => tracker::frame_extent(kept, limits.tracker_frame),
            (Stage::Frames, Direction::S2c) => tracker::frame_extent(kept, limits.tracker_reply),
            (Stage::Packets, _) => packet::extent(kept, *limits),
            (Stage::Beginning, _) if self.magic() == Some(TRACKER_MAGIC) => {
                Ok(Extent::Exactly(tracker::GREETING_LEN))
            }
            (Stage::Beginning, Direction::C2s) => handshake::opening_extent(kept, *limits),
            (Stage::Beginning, Direction::S2c) => handshake::answer_extent(kept, *limits),
        }
    }

    fn magic(&self) -> Option<i32> {
        let first = self.kept.first_chunk()?;
        let magic = i32::from_le_bytes(*first);
        match HandshakeCode(magic).name() {
            Some(_) if self.direction == Direction::S2c => Some(RPC_MAGIC),
            _ => Some(magic),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cuts(direction: Direction, stage: Stage, keep: usize, pieces: &[&[u8]]) -> Vec<Cut> {
        let mut cutter = Cutter::new(direction, stage, keep);
        let mut cuts = Vec::new();
        for piece in pieces {
            cutter.push(piece, |cut| cuts.push(cut));
        }
        cuts.extend(cutter.end());
        cuts
    }

    fn kinds(cuts: &[Cut]) -> Vec<(Kind, usize)> {
        cuts.iter().map(|cut| (cut.kind, cut.bytes.len())).collect()
    }

    const SESSION: &[u8] =
        b"\x71\xf2\x0f\0\x09\0\0\0client:x1\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x01\0\0\0";

    #[test]
    fn a_session_is_a_handshake_and_packets() {
        let expected = [(Kind::Handshake, 17), (Kind::Packet, 8), (Kind::Packet, 12)];
        let whole = cuts(Direction::C2s, Stage::Beginning, 100, &[SESSION]);
        assert_eq!(kinds(&whole), expected);
        let packets = cuts(Direction::C2s, Stage::Packets, 100, &[&SESSION[17..]]);
        assert_eq!(packets, whole[1..]);
    }

    #[test]
    fn a_tracker_is_known_by_its_greeting() {
        let said = b"\x71\xf2\x02\0\x03\0\0\0[1]\x03\0\0\0[6]";
        let expected = [(Kind::Magic, 4), (Kind::Json, 7), (Kind::Json, 7)];
        for direction in [Direction::C2s, Direction::S2c] {
            let cuts = cuts(direction, Stage::Beginning, 100, &[said]);
            assert_eq!(kinds(&cuts), expected);
        }
    }

    #[test]
    fn a_refusal_is_a_handshake_of_four_bytes() {
        let refused = b"\x73\xf2\x0f\0";
        let cuts_of = |direction| cuts(direction, Stage::Beginning, 100, &[refused]);
        assert_eq!(kinds(&cuts_of(Direction::S2c)), [(Kind::Handshake, 4)]);
        assert_eq!(kinds(&cuts_of(Direction::C2s)), [(Kind::Raw, 4)]);
    }

    #[test]
    fn bytes_that_are_no_message_say_why() {
        let why = |direction, stage, bytes: &[u8]| {
            let cuts = cuts(direction, stage, 100, &[bytes]);
            assert_eq!(kinds(&cuts), [(Kind::Raw, bytes.len())]);
            cuts[0].why.clone().unwrap()
        };
        assert_eq!(
            why(Direction::C2s, Stage::Beginning, b"GET / HTTP/1.1\r\n\r\n"),
            "magic at offset 0: expected 0xff271, found 0x20544547"
        );
        assert_eq!(
            why(Direction::C2s, Stage::Frames, b"\xff\xff\xff\xff"),
            "length of a tracker's frame at offset 0: expected a count of at least 0, found -1"
        );
        assert_eq!(
            why(Direction::C2s, Stage::Packets, b"\x14\0\0\0\0\0\0\0\x09\0"),
            "10 of 28 bytes of a packet"
        );
        assert_eq!(
            why(Direction::C2s, Stage::Packets, b"\x14\0"),
            "the bytes end before they say how long their packet is"
        );
    }

    #[test]
    fn of_a_long_message_the_first_bytes_are_kept() {
        let head = b"\xec\x03\0\0\0\0\0\0\x08\0\0\0";
        let data = [7; 1000];
        let cuts = cuts(
            Direction::S2c,
            Stage::Packets,
            100,
            &[head, &data[..999], &data[999..], b"\0\0\0\0\0\0\0\0"],
        );
        assert_eq!(kinds(&cuts), [(Kind::Packet, 100), (Kind::Packet, 8)]);
        assert_eq!(cuts[0].omitted, 912);
    }

    #[test]
    fn unknown_bytes_are_given_when_the_other_side_speaks() {
        let mut cutter = Cutter::new(Direction::C2s, Stage::Beginning, 100);
        cutter.push(b"HELO", |cut| panic!("{cut:?}"));
        assert_eq!(cutter.take_unknown().unwrap().bytes, b"HELO");
        assert_eq!(cutter.take_unknown(), None);
        cutter.push(b"QUIT", |cut| panic!("{cut:?}"));
        assert_eq!(cutter.end().unwrap().bytes, b"QUIT");
        assert_eq!(cutter.end(), None);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same(
            bytes: Vec<u8>,
            packets in prop::collection::vec(prop::collection::vec(0..200_u8, 4..40), 0..4),
            size in 1..20_usize,
        ) {
            let packets = packets.iter().flat_map(|body| {
                [&(body.len() as u64).to_le_bytes()[..], body].concat()
            });
            let said: Vec<_> = SESSION.iter().copied().chain(packets).chain(bytes).collect();
            for stage in [Stage::Beginning, Stage::Packets, Stage::Frames] {
                for direction in [Direction::C2s, Direction::S2c] {
                    let whole = cuts(direction, stage.clone(), 64, &[&said]);
                    let pieces: Vec<_> = said.chunks(size).collect();
                    prop_assert_eq!(&cuts(direction, stage.clone(), 64, &pieces), &whole);
                    let counted = whole.iter().map(|cut| cut.bytes.len() as u64 + cut.omitted);
                    prop_assert_eq!(counted.sum::<u64>(), said.len() as u64);
                }
            }
        }
    }
}

//! Where messages end: just enough of each protocol to spoil one message at a time.

use rpc_proto::codes::HandshakeCode;

use super::Way;

/// What is said on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// The tracker's: a magic, then frames.
    Tracker,
    /// A session's: a handshake, then packets.
    Session,
}

/// Cuts the bytes of one way into messages.
#[derive(Debug)]
pub(super) struct Cutter {
    protocol: Protocol,
    way: Way,
    began: bool,
    buffer: Vec<u8>,
}

/// The longest message that is waited for; what claims to be longer passes as it is.
const LONGEST: u64 = 1 << 30;

impl Cutter {
    pub(super) fn new(protocol: Protocol, way: Way) -> Self {
        Self {
            protocol,
            way,
            began: false,
            buffer: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether a message has begun that is not whole.
    pub(super) fn is_in_message(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// What is there of a message that is not whole.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// The next whole message.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        if self.buffer.is_empty() {
            return None;
        }
        let len = match (self.protocol, self.began) {
            (Protocol::Tracker, false) => Some(4),
            (Protocol::Tracker, true) => self.word(0).map(|length| 4 + i64::from(length)),
            (Protocol::Session, false) => self.handshake(),
            (Protocol::Session, true) => self.packet(),
        }?;
        let len = match u64::try_from(len) {
            Ok(len) if len <= LONGEST => usize::try_from(len).unwrap_or(usize::MAX),
            _ => self.buffer.len(),
        };
        // At least something, so that what is no message passes, too.
        let len = len.max(4);
        if self.buffer.len() < len {
            return None;
        }
        self.began = true;
        let rest = self.buffer.split_off(len);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    fn word(&self, at: usize) -> Option<i32> {
        let bytes = self.buffer.get(at..at + 4)?;
        bytes.try_into().ok().map(i32::from_le_bytes)
    }

    fn handshake(&self) -> Option<i64> {
        let first = self.word(0)?;
        if self.way == Way::Answer && first != HandshakeCode::SUCCESS.0 {
            return Some(4);
        }
        self.word(4).map(|length| 8 + i64::from(length))
    }

    fn packet(&self) -> Option<i64> {
        let bytes = self.buffer.get(..8)?;
        let length = bytes.try_into().ok().map(u64::from_le_bytes)?;
        Some(i64::try_from(length).map_or(-1, |length| length.saturating_add(8)))
    }
}

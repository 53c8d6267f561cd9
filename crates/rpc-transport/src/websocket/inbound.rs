use std::ops::Range;

use super::Role;
use super::decoder::{Decoder, Frame};
use super::violation::Violation;

/// Bytes that are read at once where it is not known that they are payload. A waiting connection costs
/// this much memory.
const BUFFER: usize = 8 << 10;

/// The direction that comes from the peer.
#[derive(Debug)]
pub(crate) struct Inbound {
    decoder: Decoder,
    /// What came and was not decoded yet stands at `unread`.
    buffer: Box<[u8]>,
    unread: Range<usize>,
    end: Option<End>,
}

/// Why nothing more comes.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The peer said so, or has closed the connection.
    Over,
    Broken(Violation),
}

/// What there is to do for whoever wants bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// So many bytes of payload are in the target.
    Payload(usize),
    /// Read into [`Inbound::room`], and tell [`Inbound::came`].
    More,
    /// Read at most so many bytes into the target itself, and tell [`Inbound::came_straight`].
    Straight(usize),
    /// Answer with a pong of these bytes, and go on.
    Ping(Vec<u8>),
    /// Answer with a close frame of this code. The stream is over.
    Close(Option<u16>),
    /// The stream is over.
    End,
}

impl Inbound {
    /// A direction whose first bytes are `unread`: they came right behind the handshake.
    pub(crate) fn new(ours: Role, unread: &[u8]) -> Self {
        let mut buffer = vec![0; BUFFER.max(unread.len())];
        buffer[..unread.len()].copy_from_slice(unread);
        Self {
            decoder: Decoder::new(ours),
            buffer: buffer.into_boxed_slice(),
            unread: 0..unread.len(),
            end: None,
        }
    }

    /// Puts payload into `target`, which is not empty, or says what it takes to get some.
    pub(crate) fn next(&mut self, target: &mut [u8]) -> Result<Next, Violation> {
        match self.end {
            None => {}
            Some(End::Over) => return Ok(Next::End),
            Some(End::Broken(violation)) => return Err(violation),
        }
        let next = self.decode(target);
        match next {
            Ok(Next::Close(_)) => self.end = Some(End::Over),
            Err(violation) => self.end = Some(End::Broken(violation)),
            Ok(_) => {}
        }
        next
    }

    fn decode(&mut self, target: &mut [u8]) -> Result<Next, Violation> {
        loop {
            if self.decoder.left() > 0 {
                return Ok(self.payload(target));
            }
            let unread = &mut self.buffer[self.unread.clone()];
            let (count, frame) = self.decoder.frame(unread)?;
            let next = match frame {
                Frame::Incomplete => Some(Next::More),
                Frame::Data | Frame::Pong => None,
                Frame::Ping(payload) => Some(Next::Ping(payload.to_vec())),
                Frame::Close(code) => Some(Next::Close(code)),
            };
            self.unread.start += count;
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }

    fn payload(&mut self, target: &mut [u8]) -> Next {
        let left = usize::try_from(self.decoder.left()).unwrap_or(usize::MAX);
        let wanted = left.min(target.len());
        if self.unread.is_empty() {
            // What is small is read together with the frames behind it.
            return if wanted < self.buffer.len() {
                Next::More
            } else {
                Next::Straight(wanted)
            };
        }
        let count = wanted.min(self.unread.len());
        let unread = &self.buffer[self.unread.start..][..count];
        target[..count].copy_from_slice(unread);
        self.decoder.payload(&mut target[..count]);
        self.unread.start += count;
        Next::Payload(count)
    }

    /// Where to read to.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        // At most a part of a head or of a control frame is moved.
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        &mut self.buffer[self.unread.end..]
    }

    /// So many bytes were read into the room; none is the end of the connection.
    pub(crate) fn came(&mut self, count: usize) {
        self.unread.end += count;
        if count == 0 {
            self.end = Some(End::Over);
        }
    }

    /// These bytes of payload were read; none is the end of the connection.
    pub(crate) fn came_straight(&mut self, bytes: &mut [u8]) {
        self.decoder.payload(bytes);
        if bytes.is_empty() {
            self.end = Some(End::Over);
        }
    }

    /// Will nothing more come?
    #[cfg(feature = "async")]
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// What a new direction has to begin with to go on where this one stands.
    #[cfg(feature = "async")]
    pub(crate) fn into_unread(self) -> Vec<u8> {
        let mut unread = self.decoder.resume();
        unread.extend_from_slice(&self.buffer[self.unread]);
        unread
    }
}

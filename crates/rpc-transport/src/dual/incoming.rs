use std::fmt;

use super::{Reader, bisync};
use crate::TransportError;

/// Bytes that came and were not used yet.
///
/// Small packets are read through this buffer, many at once if they are there. A payload is read past
/// it, straight into the memory that it is meant for.
pub struct Incoming {
    /// Fully initialized; what came stands at `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Bytes of the buffer when nothing asked for more: some hundred small replies, or one read of what a
/// socket usually holds.
const USUAL: usize = 16 << 10;

impl Default for Incoming {
    fn default() -> Self {
        Self {
            buffer: vec![0; USUAL],
            start: 0,
            end: 0,
        }
    }
}

impl Incoming {
    /// What came and was not consumed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Says that the first `count` bytes of [`Incoming::bytes`] are done with.
    pub fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start.saturating_add(count));
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > USUAL {
                self.buffer.truncate(USUAL);
                self.buffer.shrink_to_fit();
            }
        }
    }

    /// Makes room for some more of the `needed` bytes that are not all there yet. The buffer doubles when
    /// it is full: memory is taken for what has come, not for what a peer announced.
    fn make_room(&mut self, needed: usize) {
        if self.start > 0 && needed > self.buffer.len() - self.start {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(needed.min(2 * self.end), 0);
        }
    }

    /// Takes as many of the buffered bytes as fit into `target`.
    fn take(&mut self, target: &mut [u8]) -> usize {
        let count = target.len().min(self.end - self.start);
        target[..count].copy_from_slice(&self.bytes()[..count]);
        self.consume(count);
        count
    }
}

#[bisync]
impl Incoming {
    /// Reads until `needed` bytes are there. The caller has checked `needed` against a limit.
    ///
    /// # Errors
    /// The stream fails or ends, or its deadline passes.
    pub async fn fill(&mut self, reader: &mut Reader, needed: usize) -> Result<(), TransportError> {
        while self.end - self.start < needed {
            self.make_room(needed);
            let count = reader.read(&mut self.buffer[self.end..]).await?;
            if count == 0 {
                return Err(reader.closed());
            }
            self.end += count;
        }
        Ok(())
    }

    /// Reads some of the payload that comes next, and says how many bytes: what is buffered, else what
    /// the stream has; 0 only for an empty `target`. Nothing is lost when a future of it is dropped.
    ///
    /// # Errors
    /// The stream fails or ends, or its deadline passes.
    pub async fn read_some(
        &mut self,
        reader: &mut Reader,
        target: &mut [u8],
    ) -> Result<usize, TransportError> {
        let buffered = self.take(target);
        if buffered > 0 || target.is_empty() {
            return Ok(buffered);
        }
        match reader.read(target).await? {
            0 => Err(reader.closed()),
            count => Ok(count),
        }
    }

    /// Fills `target` with the payload that comes next.
    ///
    /// # Errors
    /// The stream fails or ends, or its deadline passes.
    pub async fn read_payload(
        &mut self,
        reader: &mut Reader,
        mut target: &mut [u8],
    ) -> Result<(), TransportError> {
        while !target.is_empty() {
            let count = self.read_some(reader, target).await?;
            target = &mut target[count..];
        }
        Ok(())
    }

    /// Reads and forgets `count` bytes of a payload.
    ///
    /// # Errors
    /// The stream fails or ends, or its deadline passes.
    pub async fn skip_payload(
        &mut self,
        reader: &mut Reader,
        mut count: u64,
    ) -> Result<(), TransportError> {
        while count > 0 {
            if self.bytes().is_empty() {
                self.fill(reader, 1).await?;
            }
            let wanted = usize::try_from(count).unwrap_or(usize::MAX);
            let here = wanted.min(self.bytes().len());
            self.consume(here);
            count -= here as u64;
        }
        Ok(())
    }
}

/// How much there is, and not what: that is for the owner of the session alone.
impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("unused", &self.bytes().len())
            .field("room", &self.buffer.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if `count` bytes had come, of `needed` that are to come.
    fn receive(incoming: &mut Incoming, count: usize, needed: usize) {
        for _ in 0..count {
            incoming.make_room(needed);
            incoming.end += 1;
        }
    }

    #[test]
    fn memory_is_taken_for_what_came_and_given_back() {
        const ANNOUNCED: usize = 16 << 20;
        let mut incoming = Incoming::default();
        receive(&mut incoming, USUAL, ANNOUNCED);
        assert_eq!(incoming.buffer.len(), USUAL);
        receive(&mut incoming, 1, ANNOUNCED);
        assert_eq!(incoming.buffer.len(), 2 * USUAL);
        receive(&mut incoming, ANNOUNCED - USUAL - 1, ANNOUNCED);
        assert_eq!(incoming.bytes().len(), ANNOUNCED);
        assert_eq!(incoming.buffer.len(), ANNOUNCED);

        incoming.consume(ANNOUNCED - 1);
        assert!(incoming.buffer.capacity() >= ANNOUNCED);
        incoming.consume(1);
        assert_eq!(incoming.buffer.capacity(), USUAL);
    }

    #[test]
    fn the_buffer_moves_before_it_grows() {
        let mut incoming = Incoming::default();
        receive(&mut incoming, USUAL, USUAL);
        incoming.consume(USUAL - 2);
        incoming.make_room(USUAL);
        assert_eq!((incoming.start, incoming.end), (0, 2));
        assert_eq!(incoming.buffer.len(), USUAL);
    }

    #[test]
    fn no_more_is_consumed_than_is_there() {
        let mut incoming = Incoming::default();
        receive(&mut incoming, 3, 3);
        incoming.consume(1);
        incoming.consume(usize::MAX);
        assert_eq!((incoming.start, incoming.end), (0, 0));
    }

    #[test]
    fn what_came_is_not_printed() {
        let mut incoming = Incoming::default();
        receive(&mut incoming, 3, 3);
        assert_eq!(
            format!("{incoming:?}"),
            "Incoming { unused: 3, room: 16384 }"
        );
    }
}

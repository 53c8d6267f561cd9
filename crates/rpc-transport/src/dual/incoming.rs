use super::{Reader, bisync};
use crate::{Step, TransportError};

/// Bytes that came and were not used yet.
///
/// Small packets are read through this buffer, many at once if they are there. A payload is read past
/// it, straight into the memory that it is meant for.
#[derive(Debug)]
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
        self.start = self.end.min(self.start + count);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > USUAL {
                self.buffer.truncate(USUAL);
                self.buffer.shrink_to_fit();
            }
        }
    }

    /// Makes room for `count` bytes in all.
    fn reserve(&mut self, count: usize) {
        if self.start + count > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if count > self.buffer.len() {
            self.buffer.resize(count, 0);
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
        self.reserve(needed);
        while self.end - self.start < needed {
            let count = reader.read(&mut self.buffer[self.end..]).await?;
            if count == 0 {
                return Err(closed(reader));
            }
            self.end += count;
        }
        Ok(())
    }

    /// Fills `target` with the payload that comes next.
    ///
    /// # Errors
    /// The stream fails or ends, or its deadline passes.
    pub async fn read_payload(
        &mut self,
        reader: &mut Reader,
        target: &mut [u8],
    ) -> Result<(), TransportError> {
        let mut filled = self.take(target);
        while filled < target.len() {
            let count = reader.read(&mut target[filled..]).await?;
            if count == 0 {
                return Err(closed(reader));
            }
            filled += count;
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

fn closed(reader: &Reader) -> TransportError {
    TransportError::Closed {
        peer: reader.peer().to_owned(),
        step: Step::Reply,
    }
}

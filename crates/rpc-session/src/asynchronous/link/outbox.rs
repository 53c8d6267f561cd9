//! The writing half of the connection.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rpc_transport::asynchronous::Writer;
use rpc_transport::{Deadline, Step};
use tokio::sync::{MutexGuard, Notify};

use super::super::dual::payload::{self, PIECE, Source};
use crate::SessionError;

/// The writing half of the connection, and what was not written yet.
#[derive(Debug)]
pub(super) struct Outbox {
    pub(super) writer: Writer,
    pub(super) head: Vec<u8>,
    written: usize,
    /// Bytes of payload that are due behind the head.
    pub(super) payload_left: u64,
    /// Where to say that there are none any more.
    pub(super) payload_sent: Option<Arc<OnceLock<Instant>>>,
}

impl Outbox {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            writer,
            head: Vec::new(),
            written: 0,
            payload_left: 0,
            payload_sent: None,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.head.is_empty() && self.payload_left == 0
    }

    /// Writes the head and the payload that was announced with it.
    pub(super) async fn write(
        &mut self,
        source: Source<'_>,
        limit: Option<Duration>,
    ) -> Result<(), SessionError> {
        self.writer
            .set_deadline(Deadline::each_wait(Step::Send, limit));
        let (reader, progress) = match source {
            Source::Memory(payload) => return self.write_through(payload).await,
            Source::Reader { reader, progress } => (reader, progress),
        };
        let total = self.payload_left;
        let mut piece = vec![0; PIECE];
        while self.payload_left > 0 {
            let count = usize::try_from(self.payload_left)
                .unwrap_or(PIECE)
                .min(PIECE);
            let filled = payload::read_piece(reader, &mut piece[..count]).await?;
            self.write_through(&piece[..filled]).await?;
            if filled < count {
                return Err(payload::ended_early(total));
            }
            progress(total - self.payload_left, total);
        }
        self.write_through(&[]).await
    }

    /// Writes what is left of the head, and `payload`. Every step is counted, so that it can go on
    /// where a dropped future left it.
    async fn write_through(&mut self, mut payload: &[u8]) -> Result<(), SessionError> {
        while self.written < self.head.len() || !payload.is_empty() {
            let head = &self.head[self.written..];
            let count = self.writer.write(head, payload).await?;
            let of_head = count.min(head.len());
            self.written += of_head;
            payload = &payload[count - of_head..];
            self.payload_left -= (count - of_head) as u64;
        }
        if self.payload_left == 0 && !self.head.is_empty() {
            // The head stays until then, so that whoever comes next flushes if this future is dropped.
            self.writer.flush().await?;
            self.head.clear();
            self.written = 0;
            if let Some(sent) = self.payload_sent.take() {
                let _ = sent.set(Instant::now());
            }
        }
        Ok(())
    }

    /// Writes what is left of the head, and zeros for what is left of the payload.
    pub(super) async fn complete(&mut self, limit: Option<Duration>) -> Result<(), SessionError> {
        self.writer
            .set_deadline(Deadline::each_wait(Step::Send, limit));
        let zeros = vec![
            0;
            usize::try_from(self.payload_left)
                .unwrap_or(PIECE)
                .min(PIECE)
        ];
        while self.payload_left > 0 {
            let count = usize::try_from(self.payload_left)
                .unwrap_or(PIECE)
                .min(zeros.len());
            self.write_through(&zeros[..count]).await?;
        }
        self.write_through(&[]).await
    }
}

/// A caller at the outbox. When it leaves something there, the writing task is woken.
pub(super) struct Writing<'a> {
    pub(super) outbox: MutexGuard<'a, Outbox>,
    pub(super) work: &'a Notify,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.outbox.is_complete() {
            self.work.notify_one();
        }
    }
}

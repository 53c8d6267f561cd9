//! A connection whose client has said all that it says already, for both twins.

use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex};

/// Clones are the same connection, so that a test can look on.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Mutex<State>>);

struct State {
    input: Vec<u8>,
    read: usize,
    /// The most that a read gives; and a read ends at the first of these places.
    piece: usize,
    cut: usize,
    /// The most that a write takes.
    takes: usize,
    written: Vec<u8>,
    flushed: usize,
}

impl Memory {
    /// A client that sends `input` and then closes the connection.
    pub(crate) fn new(input: &[u8]) -> Self {
        Self(Arc::new(Mutex::new(State {
            input: input.to_vec(),
            read: 0,
            piece: usize::MAX,
            cut: 0,
            takes: usize::MAX,
            written: Vec::new(),
            flushed: 0,
        })))
    }

    /// It comes in pieces of so many bytes, and answers go in such pieces.
    pub(crate) fn in_pieces(self, piece: usize) -> Self {
        self.0.lock().unwrap().piece = piece;
        self.0.lock().unwrap().takes = piece;
        self
    }

    /// It comes in two pieces.
    pub(crate) fn cut_at(self, cut: usize) -> Self {
        self.0.lock().unwrap().cut = cut;
        self
    }

    /// What the client got: what was written and flushed.
    pub(crate) fn received(&self) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        state.written[..state.flushed].to_vec()
    }

    fn read(&self, target: &mut [u8]) -> usize {
        let mut state = self.0.lock().unwrap();
        let end = if state.read < state.cut {
            state.cut
        } else {
            state.input.len()
        };
        let count = (end - state.read).min(target.len()).min(state.piece);
        target[..count].copy_from_slice(&state.input[state.read..state.read + count]);
        state.read += count;
        count
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> usize {
        let mut state = self.0.lock().unwrap();
        let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
        let taken: Vec<u8> = bytes.take(state.takes).collect();
        state.written.extend(&taken);
        taken.len()
    }

    fn flush(&self) {
        let mut state = self.0.lock().unwrap();
        state.flushed = state.written.len();
    }
}

#[cfg(feature = "sync")]
mod blocking {
    use std::io::{Read, Write};
    use std::time::Duration;

    use rpc_transport::blocking::Carrier;

    use super::{IoSlice, Memory, io};

    impl Read for Memory {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            Ok(Self::read(self, target))
        }
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(Self::write(self, &[IoSlice::new(bytes)]))
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            Ok(Self::write(self, slices))
        }

        fn flush(&mut self) -> io::Result<()> {
            Self::flush(self);
            Ok(())
        }
    }

    impl Carrier for Memory {
        fn set_read_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }

        fn set_write_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(feature = "async")]
mod asynchronous {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::{IoSlice, Memory, io};

    impl AsyncRead for Memory {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            target: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let count = self.read(target.initialize_unfilled());
            target.advance(count);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Memory {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(self.write(&[IoSlice::new(bytes)])))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(self.write(slices)))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flush();
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flush();
            Poll::Ready(Ok(()))
        }
    }
}

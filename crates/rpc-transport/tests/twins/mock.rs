//! A stream that does what a test tells it and keeps what was asked of it, for both twins.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard};

/// What happens at the ends of a [`Mock`].
pub(crate) struct State {
    /// What a reader finds; behind it is the end of the stream.
    pub(crate) input: VecDeque<u8>,
    /// The sizes of the pieces in which it comes, again and again; 0 is a call that is interrupted.
    pub(crate) pieces: Vec<usize>,
    /// The lengths of the targets that were read into.
    pub(crate) targets: Vec<usize>,
    /// The most that each write takes.
    pub(crate) takes: usize,
    /// What was written, write by write.
    pub(crate) writes: Vec<Vec<u8>>,
    /// Keeps what is written until the stream is flushed; else there is nothing to flush.
    pub(crate) buffers: bool,
    /// What was kept so far.
    pub(crate) buffered: Vec<u8>,
    /// Quick acknowledgements wanted.
    pub(crate) quick_acks: usize,
    calls: usize,
}

/// Clones are the same stream, so that a test can look on.
#[derive(Clone)]
pub(crate) struct Mock(Arc<Mutex<State>>);

impl Mock {
    /// A peer that sends `input` and takes anything.
    pub(crate) fn new(input: &[u8], pieces: &[usize]) -> Self {
        Self(Arc::new(Mutex::new(State {
            input: input.iter().copied().collect(),
            pieces: pieces.to_vec(),
            targets: Vec::new(),
            takes: usize::MAX,
            writes: Vec::new(),
            buffers: false,
            buffered: Vec::new(),
            quick_acks: 0,
            calls: 0,
        })))
    }

    /// A peer that takes at most `count` bytes at a time.
    pub(crate) fn taking(count: usize) -> Self {
        let mock = Self::new(&[], &[1]);
        mock.state().takes = count;
        mock
    }

    /// A peer that gets what was written when the stream is flushed.
    pub(crate) fn buffering(input: &[u8], pieces: &[usize]) -> Self {
        let mock = Self::new(input, pieces);
        mock.state().buffers = true;
        mock
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn read(&self, target: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        state.targets.push(target.len());
        let piece = state.pieces[state.calls % state.pieces.len()];
        state.calls += 1;
        if piece == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = piece.min(target.len()).min(state.input.len());
        for (to, from) in target.iter_mut().zip(state.input.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.state();
        let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
        let written: Vec<u8> = bytes.take(state.takes).collect();
        let count = written.len();
        if state.buffers {
            state.buffered.extend(written);
        } else {
            state.writes.push(written);
        }
        Ok(count)
    }

    fn flush(&self) {
        let mut state = self.state();
        if !state.buffered.is_empty() {
            let flushed = std::mem::take(&mut state.buffered);
            state.writes.push(flushed);
        }
    }
}

#[cfg(feature = "sync")]
mod blocking {
    use std::io::{Read, Write};
    use std::time::Duration;

    use rpc_transport::blocking::{Carrier, Stream};

    use super::{IoSlice, Mock, io};

    impl Mock {
        pub(crate) fn blocking_stream(&self) -> Stream {
            Stream::new(self.clone(), "mock")
        }
    }

    impl Read for Mock {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            Self::read(self, target)
        }
    }

    impl Write for Mock {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Self::write(self, &[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            Self::write(self, slices)
        }

        fn flush(&mut self) -> io::Result<()> {
            Self::flush(self);
            Ok(())
        }
    }

    impl Carrier for Mock {
        fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
            assert_ne!(limit, Some(Duration::ZERO));
            Ok(())
        }

        fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
            assert_ne!(limit, Some(Duration::ZERO));
            Ok(())
        }

        fn quick_ack(&self) {
            self.state().quick_acks += 1;
        }
    }
}

#[cfg(feature = "async")]
mod asynchronous {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use rpc_transport::asynchronous::Stream;
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::{IoSlice, Mock, io};

    impl Mock {
        pub(crate) fn async_stream(&self) -> Stream {
            Stream::new(self.clone(), self.clone(), "mock")
        }
    }

    impl AsyncRead for Mock {
        /// An interruption is here what it is to a task: it is woken and asks again.
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            target: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            match self.read(target.initialize_unfilled()) {
                Ok(count) => {
                    target.advance(count);
                    Poll::Ready(Ok(()))
                }
                Err(_) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        }
    }

    impl AsyncWrite for Mock {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(self.write(&[IoSlice::new(bytes)]))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(self.write(slices))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flush();
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
}

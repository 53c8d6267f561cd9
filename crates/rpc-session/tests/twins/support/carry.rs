//! Readers and writers that misbehave, for both twins.

use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::sync::mpsc::Receiver;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::PATIENCE;

/// Has some bytes, and then fails.
pub(crate) struct Torn<'a>(pub(crate) &'a [u8]);

impl Read for Torn<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        match self.0.read(target)? {
            0 => Err(io::Error::other("torn")),
            count => Ok(count),
        }
    }
}

/// Has some bytes, and the rest only once it is told that the first ones have arrived.
pub(crate) struct Gated<'a> {
    pub(crate) first: &'a [u8],
    pub(crate) arrived: Receiver<()>,
    pub(crate) rest: &'a [u8],
}

impl Read for Gated<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.first.is_empty() {
            self.arrived
                .recv_timeout(PATIENCE)
                .map_err(|_| io::Error::other("the first bytes never arrived"))?;
            self.first = std::mem::take(&mut self.rest);
        }
        self.first.read(target)
    }
}

/// Takes some bytes, and then fails.
pub(crate) struct Full {
    pub(crate) room: usize,
    pub(crate) taken: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room - self.taken);
        if count == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        self.taken += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads without ever letting the runtime wait, which is as good as it gets for memory.
fn poll_read(reader: &mut impl Read, target: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    let count = reader.read(target.initialize_unfilled())?;
    target.advance(count);
    Poll::Ready(Ok(()))
}

impl AsyncRead for Torn<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_read(self.get_mut(), target)
    }
}

impl AsyncRead for Gated<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_read(self.get_mut(), target)
    }
}

impl AsyncWrite for Full {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.get_mut().write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

//! The stream of a session that is being served, in pieces that a session can read and write.

use std::io::{self, Read, Write};
use std::time::Duration;

use rpc_transport::blocking::{Incoming, Reader, Stream};
use rpc_transport::{Deadline, Step, TransportError};

use super::serve::Expiry;
use crate::serving::{ClientGone, too_much};
use crate::{ServeError, ServeOptions};

/// The connection to a client.
pub(crate) struct Wire {
    stream: Stream,
    expiry: Expiry,
    stall: Duration,
}

impl Wire {
    pub(crate) fn new(stream: Stream, options: &ServeOptions, expiry: &Expiry) -> Self {
        Self {
            stream,
            expiry: expiry.clone(),
            stall: options.stall_timeout,
        }
    }

    pub(crate) fn peer(&self) -> &str {
        self.stream.peer()
    }

    /// The half that reads; between requests a client may be silent for ever.
    pub(crate) fn reader(&mut self, between_requests: bool) -> &mut Reader {
        let limit = Some(self.stall).filter(|_| !between_requests);
        self.stream
            .set_deadline(Deadline::each_wait(Step::Request, limit));
        &mut self.stream
    }

    /// Writes an answer, whole.
    pub(crate) fn answer(&mut self, head: &[u8], payload: &[u8]) -> Result<(), ServeError> {
        self.expiry.begin((head.len() + payload.len()) as u64)?;
        self.write(head, payload)?;
        self.complete()
    }

    /// Says that an answer in pieces is complete.
    pub(crate) fn complete(&mut self) -> Result<(), ServeError> {
        self.expiry.end();
        Ok(())
    }

    /// Says that nothing more is written.
    pub(crate) fn shutdown(&mut self) {
        self.stream.shutdown();
    }

    fn write(&mut self, head: &[u8], payload: &[u8]) -> Result<(), ServeError> {
        self.stream
            .set_deadline(Deadline::each_wait(Step::Answer, Some(self.stall)));
        Ok(self.stream.write_all(head, payload)?)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.expiry.unregister();
    }
}

/// The payload of a request, for a session to read.
pub(crate) struct PayloadReader<'a> {
    incoming: &'a mut Incoming,
    reader: &'a mut Reader,
    left: u64,
    failure: Option<TransportError>,
}

impl<'a> PayloadReader<'a> {
    pub(crate) fn new(incoming: &'a mut Incoming, wire: &'a mut Wire, left: u64) -> Self {
        Self {
            incoming,
            reader: wire.reader(false),
            left,
            failure: None,
        }
    }

    /// Bytes that were not read, or why the stream failed.
    pub(crate) fn finish(self) -> Result<u64, TransportError> {
        self.failure.map_or(Ok(self.left), Err)
    }
}

impl Read for PayloadReader<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(target.len());
        match self.incoming.read_some(self.reader, &mut target[..most]) {
            Ok(count) => {
                self.left -= count as u64;
                Ok(count)
            }
            Err(error) => {
                let told = ClientGone::told(&error);
                self.failure = Some(error);
                Err(told)
            }
        }
    }
}

/// The data of an answer, for a session to write: `head` goes out with its first bytes.
pub(crate) struct DataWriter<'a> {
    wire: &'a mut Wire,
    head: &'a [u8],
    left: u64,
    began: bool,
    failure: Option<ServeError>,
}

impl<'a> DataWriter<'a> {
    pub(crate) fn new(wire: &'a mut Wire, head: &'a [u8], left: u64) -> Self {
        Self {
            wire,
            head,
            left,
            began: false,
            failure: None,
        }
    }

    /// Whether something was written, and how many bytes are missing; or why the stream failed.
    pub(crate) fn finish(self) -> Result<(bool, u64), ServeError> {
        self.failure.map_or(Ok((self.began, self.left)), Err)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), ServeError> {
        if !self.began {
            self.wire.expiry.begin(self.left)?;
            self.began = true;
        }
        self.wire.write(self.head, bytes)?;
        self.head = &[];
        self.left -= bytes.len() as u64;
        Ok(())
    }
}

impl Write for DataWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if bytes.len() as u64 > self.left {
            return Err(too_much(bytes.len(), self.left));
        }
        match self.send(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let told = ClientGone::told(&error);
                self.failure = Some(error);
                Err(told)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

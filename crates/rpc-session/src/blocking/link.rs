//! The connection of a blocking session: one request at a time, written and answered by the caller's
//! own thread.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc_proto::{ClientEndpoint, Packet, Received, Reply};
use rpc_transport::blocking::{Incoming, Stream};
use rpc_transport::{Deadline, Step, TransportError};

use super::dual::payload::{self, Announced, PIECE, Sink, Source};
use crate::answer::Answer;
use crate::freed::{FreeQueue, Freed};
use crate::{SessionError, SessionOptions};

/// Shared by a session and all that came out of it; the last one ends the session.
#[derive(Debug)]
pub(crate) struct Link {
    peer: String,
    freed: FreeQueue,
    connection: Mutex<Connection>,
    max_payload: u64,
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    incoming: Incoming,
    endpoint: ClientEndpoint<Owner>,
    out: Vec<u8>,
    reply_timeout: Option<Duration>,
    /// Why the session is over.
    failure: Option<SessionError>,
}

/// Whose request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Caller,
    Nobody,
}

impl Link {
    pub(crate) fn new(stream: Stream, options: &SessionOptions) -> Self {
        Self {
            peer: stream.peer().to_owned(),
            freed: FreeQueue::default(),
            connection: Mutex::new(Connection {
                stream,
                incoming: Incoming::default(),
                endpoint: ClientEndpoint::new(options.dialect, options.connect.limits),
                out: Vec::new(),
                reply_timeout: Some(options.init_timeout),
                failure: None,
            }),
            max_payload: options.connect.limits.payload,
        }
    }

    /// The session is constructed: from now on, a reply may take as long as the options say.
    pub(crate) fn opened(&self, options: &SessionOptions) {
        self.lock().reply_timeout = options.reply_timeout;
    }

    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// Most bytes of one payload.
    pub(crate) fn max_payload(&self) -> u64 {
        self.max_payload
    }

    /// Has `freed` freed before the next request. Never waits.
    pub(crate) fn free(&self, freed: Freed) {
        self.freed.push(freed);
    }

    /// Sends a request with the payload that it announces, and waits for the answer.
    pub(crate) fn exchange(
        &self,
        packet: &Packet<'_>,
        source: Source<'_>,
        sink: Sink<'_>,
    ) -> Result<Answer, SessionError> {
        let mut connection = self.lock();
        if let Some(failure) = &connection.failure {
            return Err(failure.clone());
        }
        let answer = connection.exchange(&self.freed, packet, source, sink);
        if let Err(error) = &answer
            && error.is_fatal()
        {
            connection.failure = Some(error.clone());
        }
        answer
    }

    /// Ends the session; what is called later fails.
    pub(crate) fn close(&self) {
        let mut connection = self.lock();
        if connection.failure.is_none() {
            connection.failure = Some(SessionError::Closed);
            connection.say_goodbye();
        }
    }

    /// A panic of another thread leaves the connection in an unknown state.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(|poisoned| {
            let mut connection = poisoned.into_inner();
            connection.failure.get_or_insert(SessionError::Closed);
            connection
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let connection = self
            .connection
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if connection.failure.is_none() {
            connection.say_goodbye();
        }
    }
}

impl Connection {
    fn exchange(
        &mut self,
        freed: &FreeQueue,
        packet: &Packet<'_>,
        source: Source<'_>,
        sink: Sink<'_>,
    ) -> Result<Answer, SessionError> {
        loop {
            self.out.clear();
            for freed in freed.take_batch() {
                self.endpoint
                    .request(&freed.packet(), Owner::Nobody, &mut self.out)?;
            }
            if freed.is_empty() {
                break;
            }
            // More than one batch: their replies are read before more is sent.
            self.write(&[])?;
            while self.endpoint.outstanding() > 0 {
                self.receive(Sink::Answer)?;
            }
        }
        let requested = self.endpoint.request(packet, Owner::Caller, &mut self.out);
        let sent = match requested {
            Ok(()) => self.send(packet.payload(), source),
            Err(error) => {
                // What was freed has to go all the same.
                self.write(&[])?;
                Err(error.into())
            }
        };
        if let Err(error) = &sent
            && error.is_fatal()
        {
            return Err(error.clone());
        }
        let mut sink = Some(sink);
        let mut answer = Ok(Answer::Done);
        while let Some(&owner) = self.endpoint.oldest() {
            match owner {
                Owner::Nobody => {
                    // That something could not be freed is no failure of this request.
                    if let Err(error) = self.receive(Sink::Answer)
                        && error.is_fatal()
                    {
                        return Err(error);
                    }
                }
                Owner::Caller => answer = self.receive(sink.take().unwrap_or(Sink::Answer)),
            }
        }
        sent.and(answer)
    }

    /// Writes what was encoded, and the payload behind it.
    fn send(&mut self, nbytes: u64, source: Source<'_>) -> Result<(), SessionError> {
        let (reader, progress) = match source {
            Source::Memory(payload) => return self.write(payload),
            Source::Reader { reader, progress } => (reader, progress),
        };
        self.write(&[])?;
        let mut left = nbytes;
        let mut piece = vec![0; PIECE];
        let mut failure = None;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            if failure.is_none() {
                match payload::read_piece(reader, &mut piece[..count]) {
                    Ok(filled) if filled == count => {}
                    Ok(_) => failure = Some(payload::ended_early(nbytes)),
                    Err(error) => failure = Some(error),
                }
                if failure.is_some() {
                    // The packet was announced with its length, so it has to become that long.
                    piece.fill(0);
                }
            }
            self.write(&piece[..count])?;
            left -= count as u64;
            if failure.is_none() {
                progress(nbytes - left, nbytes);
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn write(&mut self, payload: &[u8]) -> Result<(), SessionError> {
        self.stream
            .set_deadline(Deadline::each_wait(Step::Send, self.reply_timeout));
        self.stream.write_all(&self.out, payload)?;
        self.out.clear();
        Ok(())
    }

    /// Reads the next reply, with its payload.
    fn receive(&mut self, sink: Sink<'_>) -> Result<Answer, SessionError> {
        self.stream
            .set_deadline(Deadline::each_wait(Step::Reply, self.reply_timeout));
        loop {
            let received = self.endpoint.receive(self.incoming.bytes());
            let received = received.map_err(|source| SessionError::Protocol {
                peer: self.stream.peer().to_owned(),
                source,
            })?;
            let (consumed, reply) = match received {
                Received::Incomplete { consumed, needed } => {
                    self.incoming.consume(consumed);
                    let needed = usize::try_from(needed).unwrap_or(usize::MAX);
                    self.incoming.fill(&mut self.stream, needed)?;
                    continue;
                }
                Received::Reply {
                    consumed, reply, ..
                } => (consumed, reply),
                Received::Ended { text: Some(text) } => {
                    return Err(SessionError::from_exception(&text));
                }
                _ => {
                    return Err(SessionError::Ended {
                        peer: self.stream.peer().to_owned(),
                    });
                }
            };
            let (announced, mut left) = match reply {
                Reply::ReturnedBulk { text: true, nbytes } => (Announced::Text, nbytes),
                Reply::ReturnedBulk { nbytes, .. } => (Announced::Bytes, nbytes),
                Reply::Data { nbytes } => (Announced::Data, nbytes),
                reply => {
                    let answer = Answer::of(reply);
                    self.incoming.consume(consumed);
                    return answer;
                }
            };
            self.incoming.consume(consumed);
            let answer = payload::receive(
                announced,
                &mut left,
                sink,
                &mut self.incoming,
                &mut self.stream,
            );
            self.incoming.skip_payload(&mut self.stream, left)?;
            return answer;
        }
    }

    /// Tells the server that the session ends; if that is not possible, it sees the connection close.
    fn say_goodbye(&mut self) {
        const MOMENT: Duration = Duration::from_millis(50);
        self.out.clear();
        self.stream
            .set_deadline(Deadline::total(Step::Send, Some(MOMENT)));
        if self
            .endpoint
            .request(&Packet::Shutdown, Owner::Nobody, &mut self.out)
            .is_ok()
        {
            let _: Result<(), TransportError> = self.stream.write_all(&self.out, &[]);
        }
    }
}

//! The connection of a blocking session: one request at a time, written and answered by the caller's
//! own thread.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rpc_proto::endpoint::Reply;
use rpc_proto::{BulkKind, ClientEndpoint, Packet, Received};
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
    /// The connection, or why the session is over.
    connection: Mutex<Result<Connection, SessionError>>,
    max_payload: u64,
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    incoming: Incoming,
    endpoint: ClientEndpoint<Owner>,
    out: Vec<u8>,
    /// How long the peer may be silent; until its first answer, how long it may construct the session.
    limit: Option<Duration>,
    reply_timeout: Option<Duration>,
    /// The last answer, if it was why the session is over. Servers close the connection behind it.
    farewell: Option<SessionError>,
}

/// What became of a request. A [`SessionError`] around it ends the session.
type Outcome = Result<Answer, SessionError>;

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
            connection: Mutex::new(Ok(Connection {
                stream,
                incoming: Incoming::default(),
                endpoint: ClientEndpoint::new(options.dialect, options.connect.limits),
                out: Vec::new(),
                limit: Some(options.init_timeout),
                reply_timeout: options.reply_timeout,
                farewell: None,
            })),
            max_payload: options.connect.limits.payload,
        }
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
        let mut state = self.lock();
        let connection = state.as_mut().map_err(|why| why.clone())?;
        match connection.exchange(&self.freed, packet, source, sink) {
            Ok(outcome) => {
                let failure = outcome.as_ref().err();
                connection.farewell = failure.filter(|error| error.is_farewell()).cloned();
                outcome
            }
            Err(error) => {
                let why = connection.farewell.take().unwrap_or(error);
                *state = Err(why.clone());
                Err(why)
            }
        }
    }

    /// Ends the session; what is called later fails.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if let Ok(connection) = &mut *state {
            connection.say_goodbye();
            *state = Err(SessionError::Closed);
        }
    }

    /// A panic of another thread leaves the connection in an unknown state.
    fn lock(&self) -> MutexGuard<'_, Result<Connection, SessionError>> {
        self.connection.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            *state = Err(SessionError::Closed);
            state
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Ok(Ok(connection)) = self.connection.get_mut() {
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
    ) -> Result<Outcome, SessionError> {
        self.encode_freed(freed)?;
        let requested = self.endpoint.request(packet, Owner::Caller, &mut self.out);
        let sent = match requested {
            Ok(()) => self.send(packet.payload(), source),
            // What was freed has to go all the same.
            Err(error) => self.write(&[]).and(Err(error.into())),
        };
        if let Err(error) = &sent
            && error.is_fatal()
        {
            return Err(self.last_words(error.clone()));
        }
        let mut sink = Some(sink);
        let mut outcome = Ok(Answer::Done);
        while let Some(&owner) = self.endpoint.oldest() {
            match owner {
                Owner::Nobody => self.receive_freed()?,
                Owner::Caller => outcome = self.receive(sink.take().unwrap_or(Sink::Answer))?,
            }
        }
        Ok(sent.and(outcome))
    }

    /// Encodes what was freed; the last batch of it goes out with the request.
    fn encode_freed(&mut self, freed: &FreeQueue) -> Result<(), SessionError> {
        loop {
            self.out.clear();
            for freed in freed.take_batch() {
                self.endpoint
                    .request(&freed.packet(), Owner::Nobody, &mut self.out)?;
            }
            if freed.is_empty() {
                return Ok(());
            }
            // More than one batch: their replies are read before more is sent.
            self.write(&[])?;
            while self.endpoint.outstanding() > 0 {
                self.receive_freed()?;
            }
        }
    }

    /// Reads the reply to what was freed. That something could not be freed is no failure of the request
    /// behind it; but an exception that the session is over stands where the next reply was due.
    fn receive_freed(&mut self) -> Result<(), SessionError> {
        let failure = self.receive(Sink::Answer)?.err();
        self.farewell = failure.filter(SessionError::is_farewell);
        Ok(())
    }

    /// Nothing more can be sent. What the server said before it closed the connection tells more of why.
    fn last_words(&mut self, error: SessionError) -> SessionError {
        const MOMENT: Duration = Duration::from_secs(1);
        if !error.is_lost_connection() {
            return error;
        }
        self.limit = Some(MOMENT);
        self.reply_timeout = self.limit;
        while self.endpoint.outstanding() > 0 {
            match self.receive(Sink::Answer) {
                Ok(Err(said)) if said.is_farewell() => return said,
                Ok(_) => {}
                // That it is gone is known.
                Err(SessionError::Transport(_)) => break,
                Err(said) => return said,
            }
        }
        error
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
                    Err(error) if error.is_fatal() => return Err(error),
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
            .set_deadline(Deadline::each_wait(Step::Send, self.limit));
        self.stream.write_all(&self.out, payload)?;
        self.out.clear();
        Ok(())
    }

    /// Reads the next reply, with its payload. However slowly its bytes come, its head has to be there
    /// in time.
    fn receive(&mut self, sink: Sink<'_>) -> Result<Outcome, SessionError> {
        self.stream
            .set_deadline(Deadline::each_wait(Step::Reply, self.limit));
        let mut began = false;
        loop {
            let received = self.endpoint.receive(self.incoming.bytes());
            let received = received.map_err(|source| SessionError::Protocol {
                peer: self.stream.peer().to_owned(),
                source,
            })?;
            let (consumed, reply) = match received {
                Received::Incomplete { consumed, needed } => {
                    self.incoming.consume(consumed);
                    if began {
                        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
                        self.incoming.fill(&mut self.stream, needed)?;
                    } else {
                        // As a rule this is all of it, and the time limit of the stream stays the same.
                        let any = self.incoming.bytes().len() + 1;
                        self.incoming.fill(&mut self.stream, any)?;
                        let limit = Deadline::total(Step::Reply, self.limit);
                        self.stream.set_deadline(limit);
                        began = true;
                    }
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
            self.limit = self.reply_timeout;
            let (announced, mut left) = match reply {
                Reply::BulkReturn { kind, nbytes } => match kind {
                    BulkKind::Text => (Announced::Text, nbytes),
                    BulkKind::Bytes => (Announced::Bytes, nbytes),
                },
                Reply::Data { nbytes } => (Announced::Data, nbytes),
                reply => {
                    let answer = Answer::of(reply);
                    self.incoming.consume(consumed);
                    return Ok(answer);
                }
            };
            self.incoming.consume(consumed);
            self.stream
                .set_deadline(Deadline::each_wait(Step::Reply, self.limit));
            let answer = payload::receive(
                announced,
                &mut left,
                sink,
                &mut self.incoming,
                &mut self.stream,
            );
            if let Err(error) = &answer
                && error.is_fatal()
            {
                return Err(error.clone());
            }
            self.incoming.skip_payload(&mut self.stream, left)?;
            return Ok(answer);
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

use rpc_proto::tracker::{Connection, ConnectionError, Event, Reply, Request};

use super::connect::connect;
use super::{Stream, bisync};
use crate::{Address, ConnectOptions, Deadline, Step, TransportError};

/// A conversation with a tracker: one request at a time.
///
/// After an error the conversation is over, unless it is that the request is larger than
/// [`Limits::tracker_frame`](rpc_proto::Limits::tracker_frame): that was not sent. To give up a request
/// that the tracker holds back (it has no device yet) is to drop this.
#[derive(Debug)]
pub struct TrackerStream {
    stream: Stream,
    connection: Connection,
    out: Vec<u8>,
}

#[bisync]
impl TrackerStream {
    /// Connects to a tracker and waits for its greeting.
    ///
    /// # Errors
    /// The tracker cannot be reached, what is there is no tracker, or a time limit passes.
    pub async fn connect(
        address: &Address,
        options: &ConnectOptions,
    ) -> Result<Self, TransportError> {
        let stream = connect(address, options).await?;
        Self::greet(stream, options).await
    }

    /// Greets the tracker at the other end of `stream` and waits for its greeting.
    ///
    /// # Errors
    /// What is there is no tracker, the stream fails, or [`ConnectOptions::handshake_timeout`] passes.
    pub async fn greet(stream: Stream, options: &ConnectOptions) -> Result<Self, TransportError> {
        let mut out = Vec::new();
        let connection = Connection::new(options.limits, &mut out);
        let mut tracker = Self {
            stream,
            connection,
            out,
        };
        let limit = Some(options.handshake_timeout);
        tracker
            .stream
            .set_deadline(Deadline::total(Step::Handshake, limit));
        tracker.send().await?;
        tracker.next_event().await?;
        Ok(tracker)
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The stream fails, the tracker breaks the protocol, or `deadline` passes.
    pub async fn exchange(
        &mut self,
        request: &Request,
        deadline: Deadline,
    ) -> Result<Reply, TransportError> {
        self.stream.set_deadline(deadline);
        self.out.clear();
        let sent = self.connection.send(request, &mut self.out);
        sent.map_err(|error| self.failed(error))?;
        self.send().await?;
        loop {
            if let Event::Reply(reply) = self.next_event().await? {
                return Ok(reply);
            }
        }
    }

    /// Writes `out`.
    async fn send(&mut self) -> Result<(), TransportError> {
        match self.stream.write_all(&self.out, &[]).await {
            // What the peer said before it closed the connection tells more.
            Err(error) if error.is_reset() => Ok(()),
            written => written,
        }
    }

    async fn next_event(&mut self) -> Result<Event, TransportError> {
        let mut input = [0; 4096];
        loop {
            self.stream.quick_ack();
            let count = match self.stream.read(&mut input).await {
                // The end of the stream, by a peer that did not read all of our request.
                Err(error) if error.is_reset() => 0,
                read => read?,
            };
            if count == 0 {
                return Err(self.failed(self.connection.end()));
            }
            let event = self.connection.receive(&input[..count]);
            if let Some(event) = event.map_err(|error| self.failed(error))? {
                return Ok(event);
            }
        }
    }

    fn failed(&self, source: ConnectionError) -> TransportError {
        TransportError::Tracker {
            peer: self.stream.peer().to_owned(),
            source,
        }
    }
}

impl TrackerStream {
    /// The tracker's address, for messages.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.stream.peer()
    }
}

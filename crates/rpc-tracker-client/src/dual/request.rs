use rpc_transport::{Address, Step, TransportError};
use tracing::{debug, debug_span};

use super::client::TrackerClient;
use super::connect::Connect;
use super::{bisync, in_span, sleep};
use crate::error::Exhausted;
use crate::wait::{Wait, pauses};
use crate::{RequestOptions, Retry, TrackerClientError};

/// What became of one try.
enum Try<S> {
    Done(S),
    Failed(TrackerClientError),
    /// A connection that had been idle was lost: a new one may well work, and need not be waited for.
    FailedReused(TrackerClientError),
    /// The time for waiting is over.
    Late,
}

#[bisync]
impl TrackerClient {
    /// Requests a device of the key, and a session on it.
    ///
    /// One try is: take a connection to the tracker, or make one; wait in the queue; hand the
    /// allocation to `connect`. What follows depends on how it ends:
    ///
    /// | what happened | the connection to the tracker | then |
    /// | --- | --- | --- |
    /// | `connect` made a session | kept | done |
    /// | the tracker could not be reached in time, or is none | none | try again |
    /// | the connection to the tracker failed | closed | try again on a new one; without a pause if the old one had been idle |
    /// | the tracker's answer breaks the protocol | closed | try again on a new one |
    /// | the tracker refused | kept | try again |
    /// | `connect` failed | kept | try again, with another allocation |
    /// | [`RequestOptions::with_wait_timeout`] passed | closed | [`TrackerClientError::WaitTimedOut`] |
    /// | the request is larger than the limit of a frame | closed | its error |
    /// | all tries are used, or none is allowed | | [`TrackerClientError::Exhausted`], with the last error |
    ///
    /// Between tries there is a pause, see [`RequestOptions::with_backoff`]. The pause of
    /// [`TrackerClientOptions::connect_retry`](crate::TrackerClientOptions::connect_retry) is a part of
    /// one try: so long, a tracker may be away at no cost.
    ///
    /// Where this is a future, dropping it while it waits in the queue closes the connection, so that
    /// the tracker does not grant a device to nobody.
    ///
    /// # Errors
    /// As the table says.
    pub async fn request<C: Connect>(
        &self,
        options: &RequestOptions,
        connect: &C,
    ) -> Result<C::Session, TrackerClientError> {
        let span = debug_span!("request", tracker = %self.address, key = options.key);
        in_span(span, async || self.try_repeatedly(options, connect).await).await
    }

    async fn try_repeatedly<C: Connect>(
        &self,
        options: &RequestOptions,
        connect: &C,
    ) -> Result<C::Session, TrackerClientError> {
        let wait = Wait::start(options.wait_timeout);
        let mut exhausted = Exhausted::new(&options.key);
        let mut pauses = pauses(options);
        for number in 1..=options.max_tries {
            let (error, pause) = match self.try_once(options, &wait, connect).await {
                Try::Done(session) => return Ok(session),
                Try::Failed(error) => (error, pauses.next()),
                Try::FailedReused(error) => (error, None),
                Try::Late => return Err(late(options, exhausted)),
            };
            debug!(
                number,
                error = &error as &dyn std::error::Error,
                "a try failed"
            );
            if error.retry() == Retry::Never {
                return Err(error);
            }
            exhausted.add(error);
            if let Some(pause) = pause.filter(|_| number < options.max_tries) {
                sleep(wait.at_most(pause)).await;
            }
        }
        Err(exhausted.into())
    }

    /// Whatever is dropped on the way here closes its connection: it is ours alone until
    /// [`TrackerClient::finish`] gives it back, after a complete answer.
    async fn try_once<C: Connect>(
        &self,
        options: &RequestOptions,
        wait: &Wait,
        connect: &C,
    ) -> Try<C::Session> {
        if wait.is_over() {
            return Try::Late;
        }
        let idle = self.idle.take();
        let was_idle = idle.is_some();
        let connected = match idle {
            Some(connection) => Ok(connection),
            None => self.connect(wait).await,
        };
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(error) => return Try::Failed(error),
        };
        if wait.is_over() {
            // What is not asked for is not granted to nobody.
            self.idle.put(connection);
            return Try::Late;
        }
        let granted = connection.request(&options.key, options.priority, wait.deadline());
        let granted = granted.await;
        let allocation = match self.finish(connection, granted) {
            Ok(allocation) => allocation,
            Err(error) if ended_the_wait(&error) => return Try::Late,
            Err(error @ TrackerClientError::Transport(_)) if was_idle => {
                // The other idle ones were made to the same tracker.
                self.idle.clear();
                return Try::FailedReused(error);
            }
            Err(error) => return Try::Failed(error),
        };
        match connect.connect(&allocation, options.session_timeout).await {
            Ok(session) => Try::Done(session),
            Err(error) => Try::Failed(TrackerClientError::Connect {
                server: Address::new(&allocation.host, allocation.port).to_string(),
                match_key: allocation.match_key,
                source: Box::new(error),
            }),
        }
    }
}

fn late(options: &RequestOptions, before: Exhausted) -> TrackerClientError {
    TrackerClientError::WaitTimedOut {
        key: options.key.clone(),
        allowed: options.wait_timeout.unwrap_or_default(),
        source: before.into_last().map(Box::new),
    }
}

fn ended_the_wait(error: &TrackerClientError) -> bool {
    matches!(
        error,
        TrackerClientError::Transport(TransportError::TimedOut {
            step: Step::WaitForDevice,
            ..
        })
    )
}

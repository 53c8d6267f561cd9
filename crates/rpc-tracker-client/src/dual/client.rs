use std::time::Instant;

use rpc_proto::tracker::{Reply, ReplyError, Request, Summary};
use rpc_transport::Address;
use tracing::debug;

use super::connection::TrackerConnection;
use super::{bisync, sleep};
use crate::idle::Idle;
use crate::wait::Wait;
use crate::{Diagnosis, Retry, TrackerClientError, TrackerClientOptions};

/// A client of one tracker.
///
/// Every call uses a connection of its own for as long as it takes, so that calls may run side by side
/// through `&self`. A few connections that finished their last exchange are kept for the next call;
/// one that was given up in the middle of an exchange is closed.
#[derive(Debug)]
pub struct TrackerClient {
    pub(super) address: Address,
    options: TrackerClientOptions,
    pub(super) idle: Idle<TrackerConnection>,
}

impl TrackerClient {
    /// A client with the default options. Nothing is connected yet.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self::with_options(address, TrackerClientOptions::default())
    }

    /// A client with options. Nothing is connected yet.
    #[must_use]
    pub fn with_options(address: Address, options: TrackerClientOptions) -> Self {
        Self {
            address,
            options,
            idle: Idle::new(),
        }
    }

    /// The tracker's address.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Ends an exchange: keeps the connection, unless the exchange broke it.
    pub(super) fn finish<T>(
        &self,
        connection: TrackerConnection,
        result: Result<T, TrackerClientError>,
    ) -> Result<T, TrackerClientError> {
        if !matches!(&result, Err(error) if error.retry() != Retry::SameConnection) {
            self.idle.put(connection);
        }
        result
    }
}

#[bisync]
impl TrackerClient {
    /// Asks whether the tracker is alive.
    ///
    /// # Errors
    /// It cannot be reached, or does not answer in time.
    pub async fn ping(&self) -> Result<(), TrackerClientError> {
        self.ask(&Request::Ping, Reply::into_done).await
    }

    /// The state of the tracker: its queues, and the servers that are registered.
    ///
    /// # Errors
    /// The tracker cannot be reached, does not answer in time, or answers something else.
    pub async fn summary(&self) -> Result<Summary, TrackerClientError> {
        self.ask(&Request::Summary, Reply::into_summary).await
    }

    /// The state of the tracker as tables, see [`Summary::text_summary`].
    ///
    /// # Errors
    /// As [`TrackerClient::summary`].
    pub async fn text_summary(&self) -> Result<String, TrackerClientError> {
        Ok(self.summary().await?.text_summary())
    }

    /// How many servers of `key` are registered, busy ones and those behind proxies included.
    ///
    /// # Errors
    /// As [`TrackerClient::summary`].
    pub async fn count(&self, key: &str) -> Result<u64, TrackerClientError> {
        let summary = self.summary().await?;
        Ok(summary.servers_by_key().get(key).copied().unwrap_or(0))
    }

    /// Finds out why a request for `key` would wait or fail; at once, without patience with a tracker
    /// that refuses connections.
    pub async fn check(&self, key: &str) -> Diagnosis {
        let connected = TrackerConnection::connect(&self.address, &self.options).await;
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(error) if error.is_not_a_tracker() => return Diagnosis::NotATracker(error),
            Err(error) => return Diagnosis::Unreachable(error),
        };
        let summary = connection.summary().await;
        match self.finish(connection, summary) {
            Ok(summary) => Diagnosis::of(&summary, key),
            Err(error) => Diagnosis::NoSummary(error),
        }
    }

    /// Ends the tracker, with the secret that it was started with.
    ///
    /// # Errors
    /// The tracker refuses (the secret is wrong), or cannot be reached.
    pub async fn stop(&self, stop_key: &str) -> Result<(), TrackerClientError> {
        // On a new connection: an idle one that is lost would leave open whether the tracker heard.
        let mut connection = TrackerConnection::connect(&self.address, &self.options).await?;
        connection.stop(stop_key).await
    }

    /// An exchange that may be repeated: if an idle connection turns out to be lost, on a new one.
    async fn ask<T>(
        &self,
        request: &Request,
        read: fn(Reply) -> Result<T, ReplyError>,
    ) -> Result<T, TrackerClientError> {
        if let Some(mut connection) = self.idle.take() {
            let answer = connection.ask(request, read).await;
            let lost =
                matches!(&answer, Err(TrackerClientError::Transport(error)) if !error.is_timeout());
            let answer = self.finish(connection, answer);
            if !lost {
                return answer;
            }
            self.idle.clear();
        }
        let mut connection = self.connect(&Wait::start(None)).await?;
        let answer = connection.ask(request, read).await;
        self.finish(connection, answer)
    }

    /// A new connection, with patience while the tracker refuses, but not beyond `wait`.
    pub(super) async fn connect(
        &self,
        wait: &Wait,
    ) -> Result<TrackerConnection, TrackerClientError> {
        let start = Instant::now();
        loop {
            let connected = TrackerConnection::connect(&self.address, &self.options).await;
            let refused = matches!(&connected, Err(TrackerClientError::Transport(error)) if error.is_refused());
            let Some(retry) = self.options.connect_retry.filter(|_| refused) else {
                return connected;
            };
            let left = wait.at_most(retry.total.saturating_sub(start.elapsed()));
            if left.is_zero() {
                return connected;
            }
            let pause = left.min(retry.interval);
            debug!(tracker = %self.address, again_in = ?pause, "the tracker refuses connections");
            sleep(pause).await;
        }
    }
}

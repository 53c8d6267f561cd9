use std::time::Duration;

use rpc_proto::tracker::{Allocation, Priority, Reply, ReplyError, Request, ServerInfo, Summary};
use rpc_transport::{Address, Deadline, Step};

use super::{TrackerStream, bisync};
use crate::{TrackerClientError, TrackerClientOptions};

/// One connection to a tracker: what a server registers with.
///
/// What is offered with [`TrackerConnection::put`] belongs to this connection. When it is dropped,
/// the tracker takes back what was offered on it, if [`TrackerConnection::update_info`] said that a
/// server is behind it. So a server keeps one connection, first says who it is, then offers itself
/// again and again.
///
/// After a [`TrackerClientError::Transport`], and after a call that was dropped, every further call
/// fails: connect again. Only a request that is larger than
/// [`Limits::tracker_frame`](crate::Limits::tracker_frame) leaves the connection as it was: nothing was
/// sent, and [`TrackerClientError::retry`] says never.
#[derive(Debug)]
pub struct TrackerConnection {
    stream: TrackerStream,
    answer_timeout: Duration,
}

#[bisync]
impl TrackerConnection {
    /// Connects to a tracker, once: [`TrackerClientOptions::connect_retry`] is not looked at, since a
    /// server has to go on serving meanwhile, and to come back whatever the failure was.
    ///
    /// # Errors
    /// The tracker cannot be reached, what is there is no tracker, or a time limit passes.
    pub async fn connect(
        address: &Address,
        options: &TrackerClientOptions,
    ) -> Result<Self, TrackerClientError> {
        Ok(Self {
            stream: TrackerStream::connect(address, &options.connect).await?,
            answer_timeout: options.answer_timeout,
        })
    }

    /// Says who this connection belongs to.
    ///
    /// # Errors
    /// The tracker refuses, or the connection fails.
    pub async fn update_info(&mut self, info: ServerInfo) -> Result<(), TrackerClientError> {
        self.ask(&Request::UpdateInfo(info), Reply::into_done).await
    }

    /// Offers a device in the queue of `key`, for one session: who is granted it connects to `port`
    /// and names `match_key`. Clients are sent to the address that this connection comes from, unless
    /// there is a `custom_addr`.
    ///
    /// # Errors
    /// The tracker refuses, or the connection fails.
    pub async fn put(
        &mut self,
        key: &str,
        port: u16,
        match_key: &str,
        custom_addr: Option<&str>,
    ) -> Result<(), TrackerClientError> {
        let put = Request::Put {
            key: key.to_owned(),
            port,
            match_key: match_key.to_owned(),
            custom_addr: custom_addr.map(str::to_owned),
        };
        self.ask(&put, Reply::into_done).await
    }

    /// The match keys that were offered on this connection and that nobody was granted yet, in no
    /// order.
    ///
    /// # Errors
    /// The tracker refuses, or the connection fails.
    pub async fn pending_match_keys(&mut self) -> Result<Vec<String>, TrackerClientError> {
        self.ask(&Request::PendingMatchKeys, Reply::into_pending_match_keys)
            .await
    }

    /// Asks whether the tracker is alive.
    ///
    /// # Errors
    /// It is not, or the connection to it is not.
    pub async fn ping(&mut self) -> Result<(), TrackerClientError> {
        self.ask(&Request::Ping, Reply::into_done).await
    }

    /// The state of the tracker.
    ///
    /// # Errors
    /// The tracker refuses, or the connection fails.
    pub async fn summary(&mut self) -> Result<Summary, TrackerClientError> {
        self.ask(&Request::Summary, Reply::into_summary).await
    }

    /// Ends the tracker, with the secret that it was started with.
    ///
    /// # Errors
    /// The tracker refuses (the secret is wrong), or the connection fails.
    pub async fn stop(&mut self, stop_key: &str) -> Result<(), TrackerClientError> {
        let stop_key = stop_key.to_owned();
        self.ask(&Request::Stop { stop_key }, Reply::into_done)
            .await
    }

    /// Waits in the queue of `key` until a device is granted.
    pub(super) async fn request(
        &mut self,
        key: &str,
        priority: Priority,
        deadline: Deadline,
    ) -> Result<Allocation, TrackerClientError> {
        let request = Request::Request {
            key: key.to_owned(),
            user: String::new(),
            priority,
        };
        self.exchange(&request, deadline, Reply::into_allocation)
            .await
    }

    pub(super) async fn ask<T>(
        &mut self,
        request: &Request,
        read: fn(Reply) -> Result<T, ReplyError>,
    ) -> Result<T, TrackerClientError> {
        let deadline = Deadline::total(Step::TrackerAnswer, Some(self.answer_timeout));
        self.exchange(request, deadline, read).await
    }

    async fn exchange<T>(
        &mut self,
        request: &Request,
        deadline: Deadline,
        read: fn(Reply) -> Result<T, ReplyError>,
    ) -> Result<T, TrackerClientError> {
        let reply = self.stream.exchange(request, deadline).await?;
        read(reply).map_err(|source| TrackerClientError::Reply {
            tracker: self.stream.peer().to_owned(),
            source,
        })
    }
}

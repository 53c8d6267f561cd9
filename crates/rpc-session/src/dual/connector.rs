use std::time::Duration;

use rpc_proto::tracker::Allocation;
use rpc_tracker_client::{RequestOptions, TrackerClientError};
use rpc_transport::Address;

use super::session::RemoteSession;
use super::{Connect, TrackerClient, bisync, connect_trait};
use crate::{SessionError, SessionOptions};

/// Makes sessions of the devices that a tracker grants:
/// what [`TrackerClient::request`] and [`TrackerClient::request_and_run`] take to connect.
#[derive(Debug, Clone, Default)]
pub struct Connector {
    options: SessionOptions,
}

impl Connector {
    /// Sessions with these options. Their time limit is the one of the request.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        Self { options }
    }
}

#[bisync]
#[connect_trait]
impl Connect for Connector {
    type Session = RemoteSession;
    type Error = SessionError;

    async fn connect(
        &self,
        allocation: &Allocation,
        session_timeout: Option<Duration>,
    ) -> Result<RemoteSession, SessionError> {
        let address = Address::new(&allocation.host, allocation.port);
        let options = self
            .options
            .clone()
            .with_session_timeout(session_timeout.unwrap_or_default());
        RemoteSession::connect(&address, &allocation.match_key, &options).await
    }
}

#[bisync]
impl RemoteSession {
    /// Requests a device from a tracker and opens a session on it, with the retries of
    /// [`TrackerClient::request`]. The time limit is the one of the request.
    ///
    /// # Errors
    /// As [`TrackerClient::request`].
    pub async fn request(
        tracker: &TrackerClient,
        request: &RequestOptions,
        options: &SessionOptions,
    ) -> Result<Self, TrackerClientError> {
        tracker
            .request(request, &Connector::new(options.clone()))
            .await
    }
}

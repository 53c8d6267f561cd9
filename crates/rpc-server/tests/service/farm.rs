//! A tracker for a test.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use rpc_server::{Isolation, ServerBuilder};
use rpc_session::SessionError;
use rpc_tracker::{Tracker, TrackerHandle, TrackerOptions};
use rpc_tracker_client::asynchronous::{Connect, TrackerClient};
use rpc_tracker_client::{Allocation, RequestOptions};
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::service::{KEY, Service, until, within};

/// A tracker that serves until this is dropped.
pub(crate) struct Farm {
    pub(crate) addr: SocketAddr,
    pub(crate) handle: TrackerHandle,
    served: JoinHandle<()>,
}

impl Farm {
    pub(crate) async fn start() -> Self {
        Self::on_port(0).await
    }

    pub(crate) async fn on_port(port: u16) -> Self {
        let options = TrackerOptions::default();
        let tracker = Tracker::bind("127.0.0.1", port..=port, options).await;
        Self::of(tracker.unwrap())
    }

    pub(crate) fn of(tracker: Tracker) -> Self {
        Self {
            addr: tracker.local_addr(),
            handle: tracker.handle(),
            served: tokio::spawn(tracker.serve()),
        }
    }

    /// Ends the tracker, and gives its port.
    pub(crate) async fn stop(mut self) -> u16 {
        self.handle.stop();
        within("the tracker to end", &mut self.served)
            .await
            .unwrap();
        self.addr.port()
    }

    /// A server that offers itself here, and has little patience.
    pub(crate) async fn server(&self, isolation: Isolation) -> Service {
        self.server_with(isolation, |builder| builder).await
    }

    pub(crate) async fn server_with(
        &self,
        isolation: Isolation,
        build: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Service {
        let tracker = self.addr.into();
        Service::with(isolation, |builder| {
            build(quick(builder.with_tracker(tracker)))
        })
        .await
    }

    pub(crate) fn free(&self) -> u64 {
        let summary = self.handle.summary();
        summary.queues.get(KEY).map_or(0, |queue| queue.free)
    }

    pub(crate) async fn has_free(&self, count: u64) {
        until("free devices", || self.free() == count).await;
    }

    /// The next device, for nobody in particular.
    pub(crate) async fn take(&self) -> Allocation {
        let client = TrackerClient::new(self.addr.into());
        let options = RequestOptions::new(KEY);
        within("a device", client.request(&options, &Take))
            .await
            .unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        let device = self.take().await;
        come(&device).await.unwrap()
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Takes what is granted, and does not go there.
struct Take;

#[async_trait]
impl Connect for Take {
    type Session = Allocation;
    type Error = Infallible;

    async fn connect(
        &self,
        allocation: &Allocation,
        _: Option<Duration>,
    ) -> Result<Allocation, Infallible> {
        Ok(allocation.clone())
    }
}

pub(crate) async fn come(device: &Allocation) -> Result<Client, SessionError> {
    let addr = SocketAddr::new(device.host.parse().unwrap(), device.port);
    Client::connect(addr, &device.match_key).await
}

/// A server that is quick to look at its tracker, and to look for it.
pub(crate) fn quick(builder: ServerBuilder) -> ServerBuilder {
    let often = Duration::from_millis(20);
    builder.with_poll_interval(often).with_longest_pause(often)
}

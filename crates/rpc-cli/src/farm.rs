//! A farm in this process: a tracker and a server with one device.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rpc_proto::tracker::{QueueStatus, Summary};
use rpc_server::{Isolation, ServerBuilder};
use rpc_tracker::{Tracker, TrackerOptions};
use rpc_tracker_client::blocking::TrackerClient;
use rpc_transport::Address;
use tokio::runtime::Runtime;

use crate::served::{self, FoundRuntime, ServedArgs};
use crate::service;

/// The key of the device.
pub(crate) const KEY: &str = "demo";

/// A running farm; it ends when it is dropped.
pub(crate) struct Farm {
    tracker: Address,
    server: Address,
    _runtime: Runtime,
}

impl Farm {
    /// Starts a tracker and a server on free ports of the loopback, and waits until the device is free.
    pub(crate) fn start(served: &ServedArgs, runtime: &FoundRuntime) -> Result<Self> {
        const HOST: &str = "127.0.0.1";
        const ANY: std::ops::RangeInclusive<u16> = 0..=0;
        let worker = served::worker(served, runtime)?;
        let runtime = service::runtime()?;
        let (tracker, server) = runtime.block_on(async {
            let tracker = Tracker::bind(HOST, ANY, TrackerOptions::default()).await?;
            let tracker_addr = Address::from(tracker.local_addr());
            let server = ServerBuilder::new(KEY, Isolation::Process(worker))
                .with_tracker(tracker_addr.clone())
                .bind(HOST, ANY)?;
            let server_addr = Address::from(server.local_addr());
            tokio::spawn(tracker.serve());
            tokio::spawn(server.serve());
            anyhow::Ok((tracker_addr, server_addr))
        })?;
        let farm = Self {
            tracker,
            server,
            _runtime: runtime,
        };
        farm.wait_until_free()?;
        Ok(farm)
    }

    pub(crate) fn tracker(&self) -> &Address {
        &self.tracker
    }

    pub(crate) fn server(&self) -> &Address {
        &self.server
    }

    /// The state of the queue, in words.
    pub(crate) fn queue(summary: &Summary) -> String {
        let queue = queue(summary);
        let total = summary.servers_by_key().get(KEY).copied().unwrap_or(0);
        format!(
            "key {KEY}: {total} in all, {} free, {} waiting",
            queue.free, queue.pending
        )
    }

    /// Waits until the device is at the tracker, and nobody has it.
    pub(crate) fn wait_until_free(&self) -> Result<()> {
        const LIMIT: Duration = Duration::from_secs(20);
        const PAUSE: Duration = Duration::from_millis(5);
        let tracker = TrackerClient::new(self.tracker.clone());
        let start = Instant::now();
        while queue(&tracker.summary().context("the tracker does not answer")?).free == 0 {
            if start.elapsed() > LIMIT {
                bail!("the server did not offer its device within {LIMIT:?}");
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn queue(summary: &Summary) -> QueueStatus {
    summary.queues.get(KEY).copied().unwrap_or_default()
}

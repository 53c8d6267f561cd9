//! Waiting in the tracker's queues.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_proto::tracker::Allocation;
use rpc_tests::peers::Tracker;
use rpc_tracker_client::{RequestOptions, TrackerClientError, TrackerClientOptions};

use super::bench::until;
use super::{Connect, TrackerClient, TrackerConnection, bisync, case, connect_trait, join, spawn};
use crate::support::{SOON, address, reference_text_summary};

/// Is content with what the tracker grants.
struct Take;

#[bisync]
#[connect_trait]
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

/// A connection that offers devices.
#[bisync]
async fn provider(client: &TrackerClient) -> TrackerConnection {
    let options = TrackerClientOptions::default();
    TrackerConnection::connect(client.address(), &options)
        .await
        .unwrap()
}

#[bisync]
async fn pending(client: &TrackerClient) -> u64 {
    let summary = client.summary().await.unwrap();
    summary.queues.get("key").map_or(0, |queue| queue.pending)
}

#[bisync]
#[case]
async fn the_tracker_hands_out_what_was_offered() {
    let tracker = Tracker::start();
    let client = TrackerClient::new(address(tracker.addr()));
    let mut provider = provider(&client).await;
    provider.put("key", 9090, "key:0.1", None).await.unwrap();
    provider
        .put("key", 9091, "key:0.2", Some("device.test"))
        .await
        .unwrap();

    let request = RequestOptions::new("key");
    let first = client.request(&request, &Take).await.unwrap();
    assert_eq!(
        (first.host.as_str(), first.port, first.match_key.as_str()),
        ("127.0.0.1", 9090, "key:0.1")
    );
    let second = client.request(&request, &Take).await.unwrap();
    assert_eq!(
        (second.host.as_str(), second.port, second.match_key.as_str()),
        ("device.test", 9091, "key:0.2")
    );
}

#[bisync]
#[case]
async fn the_higher_priority_is_served_first() {
    let tracker = Tracker::start();
    let client = Arc::new(TrackerClient::new(address(tracker.addr())));
    let mut waiting = Vec::new();
    for (count, priority) in [(1, 1), (2, 7)] {
        let request = RequestOptions::new("key").with_priority(priority);
        let tracker = Arc::clone(&client);
        waiting.push(spawn(async move || {
            tracker.request(&request, &Take).await.unwrap().match_key
        }));
        until(SOON, "a request in the queue", async || {
            pending(&client).await == count
        })
        .await;
    }

    let mut provider = provider(&client).await;
    provider.put("key", 9090, "first", None).await.unwrap();
    provider.put("key", 9090, "second", None).await.unwrap();
    let high = join(waiting.pop().unwrap()).await;
    let low = join(waiting.pop().unwrap()).await;
    assert_eq!((high.as_str(), low.as_str()), ("first", "second"));
}

#[bisync]
#[case]
async fn who_waits_is_in_the_summary_of_the_reference() {
    let tracker = Tracker::start();
    let client = Arc::new(TrackerClient::new(address(tracker.addr())));
    let waiting = spawn({
        let client = Arc::clone(&client);
        async move || client.request(&RequestOptions::new("key"), &Take).await
    });
    until(SOON, "the request in the queue", async || {
        pending(&client).await == 1
    })
    .await;
    let summary = client.text_summary().await.unwrap();
    assert!(summary.contains("key   0      0     1"), "{summary}");
    assert_eq!(summary, reference_text_summary(&tracker));

    let mut provider = provider(&client).await;
    provider.put("key", 9090, "key:0.1", None).await.unwrap();
    assert_eq!(join(waiting).await.unwrap().match_key, "key:0.1");
}

#[bisync]
#[case]
async fn a_request_that_waits_too_long_takes_nothing_away() {
    let tracker = Tracker::start();
    let client = TrackerClient::new(address(tracker.addr()));
    let limit = Duration::from_millis(300);
    let request = RequestOptions::new("key").with_wait_timeout(limit);
    let start = Instant::now();
    let error = client.request(&request, &Take).await.unwrap_err();
    let taken = start.elapsed();
    assert!(
        matches!(&error, TrackerClientError::WaitTimedOut { key, allowed, .. }
            if key == "key" && *allowed == limit),
        "{error:?}"
    );
    assert!(error.is_timeout() && !error.is_retryable());
    assert!(taken >= limit && taken < SOON, "{taken:?}");

    // The tracker finds out that nobody waits when there is a device, and keeps that for the next one.
    let mut provider = provider(&client).await;
    provider.put("key", 9090, "key:0.1", None).await.unwrap();
    let queue = client.summary().await.unwrap().queues["key"];
    assert_eq!((queue.free, queue.pending), (1, 0));
    let request = RequestOptions::new("key").with_wait_timeout(SOON);
    let granted = client.request(&request, &Take).await.unwrap();
    assert_eq!(granted.match_key, "key:0.1");
}

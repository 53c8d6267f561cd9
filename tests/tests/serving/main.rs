//! The reference's own clients, servers and trackers with ours.

use std::net::SocketAddr;
use std::time::Duration;

use rpc_tests::ours::{Server, Tracker, tvm_rpc};
use rpc_tests::peers::{self, client};
use rpc_tests::wait_until;
use serde_json::Value;

mod hops;
mod sessions;
mod tracker;

/// For what a healthy peer does at once, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// What the reference's client reads of a tracker.
fn summary(tracker: SocketAddr) -> Value {
    let printed = client("summary", &["--tracker", &tracker.to_string()]);
    serde_json::from_str(&printed).expect("the case prints JSON")
}

/// Devices of a key that are free at a tracker.
fn free(tracker: SocketAddr, key: &str) -> u64 {
    let queues = &summary(tracker)["summary"]["queue_info"];
    queues[key]["free"].as_u64().unwrap_or(0)
}

/// Waits until a tracker has so many free devices of a key.
#[track_caller]
fn wait_for_free(tracker: SocketAddr, key: &str, count: u64) {
    let what = format!("{count} free devices of the key {key:?}");
    wait_until(SOON, &what, || free(tracker, key) == count);
}

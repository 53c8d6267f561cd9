//! Trackers that cannot be reached, and peers that are none.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use rpc_tracker_client::{ConnectOptions, ConnectRetry, TrackerClientError, TrackerClientOptions};

use super::farm::{GRANT, REQUEST, SOON, Servers, client, options};
use super::{TrackerClient, bisync, twin_test};
use crate::support::{Door, FakeTracker, MAGIC, Reserved, events};

const REFUSING: &str = "the tracker refuses connections";

fn patient(interval: u64, total: u64) -> TrackerClientOptions {
    let retry = ConnectRetry {
        interval: Duration::from_millis(interval),
        total: Duration::from_millis(total),
    };
    TrackerClientOptions::default().with_connect_retry(Some(retry))
}

#[bisync]
#[twin_test]
async fn a_tracker_that_starts_later_is_found() {
    let reserved = Reserved::port();
    let address = reserved.address();
    let (guard, events) = events::collect();
    let tracker = thread::spawn(move || {
        assert!(events.iter().any(|event| event.contains(REFUSING)));
        FakeTracker::on(reserved.listen(), |door| {
            let mut peer = door.accept();
            peer.expect(REQUEST);
            peer.answer(GRANT);
        })
    });
    let client = TrackerClient::with_options(address, patient(5, 20_000));
    let wanted = options().with_max_tries(1);
    let session = client.request(&wanted, &Servers::good()).await;
    assert_eq!(session.unwrap(), "k:0.5");
    drop(guard);
    tracker.join().unwrap().finish();
}

#[bisync]
#[twin_test]
async fn patience_with_a_tracker_that_refuses_ends() {
    let reserved = Reserved::port();
    let client = TrackerClient::with_options(reserved.address(), patient(400, 2000));
    let (guard, events) = events::collect();
    let start = Instant::now();
    let error = client.ping().await.unwrap_err();
    assert!(start.elapsed() >= Duration::from_secs(2));
    drop(guard);
    let refusals = events
        .iter()
        .filter(|event| event.contains(REFUSING))
        .count();
    assert!((1..=5).contains(&refusals), "{refusals}");
    let text = format!("cannot connect to {}", client.address());
    assert_eq!(error.to_string(), text);
}

#[bisync]
#[twin_test]
async fn without_patience_each_refusal_is_a_try() {
    let off = TrackerClientOptions::default().with_connect_retry(None);
    let reserved = Reserved::port();
    let client = TrackerClient::with_options(reserved.address(), off);
    let (guard, events) = events::collect();
    let error = client
        .request(&options().with_max_tries(3), &Servers::good())
        .await;
    let error = error.unwrap_err();
    drop(guard);
    assert!(!events.iter().any(|event| event.contains(REFUSING)));
    assert_eq!(
        error.to_string(),
        format!(
            "no session on a device of key \"k\" after 3 tries; \
             the last one: cannot connect to {}",
            client.address()
        )
    );
    let cause = error.source().unwrap().downcast_ref::<std::io::Error>();
    assert_eq!(cause.unwrap().kind(), std::io::ErrorKind::ConnectionRefused);
}

#[bisync]
#[twin_test]
async fn the_wait_for_a_device_ends_the_patience() {
    let reserved = Reserved::port();
    let client = TrackerClient::with_options(reserved.address(), patient(3_600_000, 7_200_000));
    let wanted = options().with_wait_timeout(SOON);
    let error = client.request(&wanted, &Servers::good()).await.unwrap_err();
    assert!(
        matches!(error, TrackerClientError::WaitTimedOut { .. }),
        "{error}"
    );
    let before = error.source().unwrap().to_string();
    assert_eq!(before, format!("cannot connect to {}", client.address()));
}

/// What a client says to a peer that is no tracker.
#[bisync]
async fn said_to(script: fn(&Door)) -> String {
    let tracker = FakeTracker::start(script);
    let client = client(&tracker);
    let error = client
        .request(&options().with_max_tries(1), &Servers::good())
        .await;
    let error = error.unwrap_err();
    assert!(error.is_not_a_tracker(), "{error}");
    tracker.finish();
    error.source().unwrap().to_string()
}

#[bisync]
#[twin_test]
async fn a_peer_that_is_no_tracker_is_named_so() {
    let rpc_server: fn(&Door) = |door| {
        // It reads the magic and does not like it.
        assert_eq!(door.accept_stranger().read_exactly(4), MAGIC);
    };
    assert_eq!(
        said_to(rpc_server).await,
        "not an RPC tracker: closed the connection after 0 of the 4 bytes of a greeting"
    );
    let http_server: fn(&Door) = |door| {
        let mut peer = door.accept_stranger();
        assert_eq!(peer.read_exactly(4), MAGIC);
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        peer.expect_end();
    };
    let text = said_to(http_server).await;
    assert!(
        text.starts_with("not an RPC tracker: answered with "),
        "{text}"
    );
    assert!(text.contains("this is an HTTP server"), "{text}");
}

#[bisync]
#[twin_test]
async fn a_silent_peer_is_left_after_the_time_for_greeting() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept_stranger();
        assert_eq!(peer.read_exactly(4), MAGIC);
        peer.expect_end();
    });
    let connect = ConnectOptions::default().with_handshake_timeout(Duration::from_millis(50));
    let impatient = TrackerClientOptions::default().with_connect(connect);
    let client = TrackerClient::with_options(tracker.address(), impatient);
    let error = client.ping().await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    tracker.finish();
}

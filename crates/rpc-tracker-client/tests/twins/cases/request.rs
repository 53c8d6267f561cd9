//! The table of `request`, row by row.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_tracker_client::{Allocation, TrackerClientError};

use super::farm::{GRANT, REQUEST, SOON, Servers, client, options};
use super::{bisync, join, twin_test};
use crate::support::{FakeTracker, MAGIC, events};

#[bisync]
#[twin_test]
async fn the_greeting_goes_alone_and_the_allocation_to_connect() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept_stranger();
        assert_eq!(peer.read_exactly(4), MAGIC);
        peer.is_silent_for(Duration::from_millis(50));
        peer.send(&MAGIC);
        assert_eq!(
            peer.read_exactly(19),
            b"\x0f\x00\x00\x00[4, \"k\", \"\", 1]"
        );
        peer.answer(GRANT);
    });
    let servers = Servers::good();
    let wanted = options().with_session_timeout(Duration::from_millis(2500));
    let session = client(&tracker).request(&wanted, &servers).await.unwrap();
    assert_eq!(session, "k:0.5");
    let granted = Allocation {
        host: "10.0.0.1".into(),
        port: 9090,
        match_key: "k:0.5".into(),
    };
    let expected = (granted, Some(Duration::from_millis(2500)));
    assert_eq!(servers.seen(), [expected]);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn no_session_timeout_is_none_and_the_priority_is_sent() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        peer.expect(r#"[4, "k", "", -7]"#);
        peer.answer(GRANT);
    });
    let servers = Servers::good();
    let wanted = options()
        .with_priority(-7)
        .with_session_timeout(Duration::ZERO);
    client(&tracker).request(&wanted, &servers).await.unwrap();
    assert_eq!(servers.seen()[0].1, None);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_refusal_keeps_the_connection() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        for answer in ["-1", "[-1]", r#"[-1, "no"]"#, GRANT] {
            peer.expect(REQUEST);
            peer.answer(answer);
        }
        door.is_quiet();
    });
    let servers = Servers::good();
    let session = client(&tracker).request(&options(), &servers).await;
    assert_eq!(session.unwrap(), "k:0.5");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_failed_connect_keeps_the_connection_and_takes_another_allocation() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        for key in ["k:0.1", "k:0.2", "k:0.3"] {
            peer.expect(REQUEST);
            peer.answer(&format!(r#"[0, ["h", 1, "{key}"]]"#));
        }
        door.is_quiet();
    });
    let servers = Servers::gone(2);
    let session = client(&tracker).request(&options(), &servers).await;
    assert_eq!(session.unwrap(), "k:0.3");
    assert_eq!(servers.seen().len(), 3);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_lost_connection_is_replaced() {
    let tracker = FakeTracker::start(|door| {
        let mut closed_at_once = door.accept();
        closed_at_once.expect(REQUEST);
        drop(closed_at_once);
        let mut closed_in_the_reply = door.accept();
        closed_in_the_reply.expect(REQUEST);
        closed_in_the_reply.send(b"\x20\x00\x00\x00[0, [");
        drop(closed_in_the_reply);
        let mut peer = door.accept();
        peer.expect(REQUEST);
        peer.answer(GRANT);
    });
    let servers = Servers::good();
    let session = client(&tracker).request(&options(), &servers).await;
    assert_eq!(session.unwrap(), "k:0.5");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn an_answer_that_breaks_the_protocol_ends_the_connection() {
    let tracker = FakeTracker::start(|door| {
        // Not JSON; a port that is none; an answer to another question.
        for answer in ["[0, ", r#"[0, ["h", 0, "k"]]"#, "0", r#"["k:0.5"]"#] {
            let mut peer = door.accept();
            peer.expect(REQUEST);
            peer.answer(answer);
            peer.expect_end();
        }
        let mut peer = door.accept();
        peer.expect(REQUEST);
        peer.answer(GRANT);
    });
    let servers = Servers::good();
    let session = client(&tracker).request(&options(), &servers).await;
    assert_eq!(session.unwrap(), "k:0.5");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn after_five_tries_the_last_error_is_named() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        for _ in 0..5 {
            peer.expect(REQUEST);
            peer.answer(GRANT);
        }
        peer.expect_end();
        door.is_quiet();
    });
    let servers = Servers::gone(u32::MAX);
    let error = client(&tracker).request(&options(), &servers).await;
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no session on a device of key \"k\" after 5 tries; \
         the last one: no session at 10.0.0.1:9090 with match key \"k:0.5\""
    );
    assert_eq!(error.source().unwrap().to_string(), "the server is gone");
    let TrackerClientError::Exhausted(exhausted) = error else {
        panic!("{error}");
    };
    assert_eq!((exhausted.key(), exhausted.tries()), ("k", 5));
    assert_eq!(exhausted.failures().len(), 5);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn no_try_allowed_is_an_error() {
    let tracker = FakeTracker::start(|_| {});
    let servers = Servers::good();
    let wanted = options().with_max_tries(0);
    let error = client(&tracker)
        .request(&wanted, &servers)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no session on a device of key \"k\" after 0 tries: none was allowed"
    );
    assert!(!error.is_retryable());
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn when_the_wait_is_over_the_connection_is_closed() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        peer.expect(REQUEST);
        peer.answer("-1");
        peer.expect(REQUEST);
        peer.expect_end();
        door.is_quiet();
    });
    let client = client(&tracker);
    let wanted = options().with_wait_timeout(SOON);
    let start = Instant::now();
    let error = client.request(&wanted, &Servers::good()).await.unwrap_err();
    assert!(start.elapsed() >= SOON);
    assert!(error.is_timeout() && !error.is_retryable());
    assert_eq!(error.to_string(), "no device of key \"k\" within 2s");
    let before = error.source().unwrap();
    let address = client.address();
    assert_eq!(before.to_string(), format!("no success at {address}"));
    assert_eq!(
        before.source().unwrap().to_string(),
        "the tracker refused: it answered -1"
    );
    // The client is still there: the connection ended with the wait.
    tracker.finish();
    drop(client);
}

#[bisync]
#[twin_test]
async fn the_wait_also_ends_the_tries() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        peer.expect(REQUEST);
        peer.answer("-1");
        peer.expect_end();
    });
    let hour = Duration::from_secs(3600);
    let wanted = options().with_backoff(hour, hour).with_wait_timeout(SOON);
    let error = client(&tracker).request(&wanted, &Servers::good()).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, TrackerClientError::WaitTimedOut { .. }),
        "{error}"
    );
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn an_idle_connection_is_used_again() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        for _ in 0..2 {
            peer.expect(REQUEST);
            peer.answer(GRANT);
        }
        peer.expect_end();
        door.is_quiet();
    });
    let client = client(&tracker);
    for _ in 0..2 {
        client.request(&options(), &Servers::good()).await.unwrap();
    }
    drop(client);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_lost_idle_connection_is_replaced_without_a_pause() {
    let tracker = FakeTracker::start(|door| {
        for _ in 0..2 {
            let mut peer = door.accept();
            peer.expect(REQUEST);
            peer.answer(GRANT);
        }
    });
    let client = client(&tracker);
    let hour = Duration::from_secs(3600);
    let wanted = options().with_backoff(hour, hour).with_max_tries(2);
    for _ in 0..2 {
        // Each script connection ends after its answer, so the second request finds it closed.
        client.request(&wanted, &Servers::good()).await.unwrap();
    }
    tracker.finish();
}

/// As after a restart of the tracker: the dead ones cost one try together.
#[bisync]
#[twin_test]
async fn several_lost_idle_connections_cost_one_try() {
    const IDLE: usize = 3;
    let tracker = FakeTracker::start(|door| {
        let mut peers: Vec<_> = (0..IDLE).map(|_| door.accept()).collect();
        for peer in &mut peers {
            peer.expect(REQUEST);
        }
        for peer in &mut peers {
            peer.answer(GRANT);
        }
        drop(peers);
        let mut peer = door.accept();
        peer.expect(REQUEST);
        peer.answer(GRANT);
    });
    let client = Arc::new(client(&tracker));
    let mut running = Vec::new();
    for _ in 0..IDLE {
        let client = Arc::clone(&client);
        running.push(spawn!(client.request(&options(), &Servers::good()).await));
    }
    for request in running {
        join(request).await.unwrap();
    }
    let wanted = options().with_max_tries(2);
    client.request(&wanted, &Servers::good()).await.unwrap();
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn requests_side_by_side_use_connections_of_their_own() {
    let tracker = FakeTracker::start(|door| {
        let mut peers = [door.accept(), door.accept()];
        for peer in &mut peers {
            peer.expect(REQUEST);
        }
        for peer in &mut peers {
            peer.answer(GRANT);
        }
        // Both are idle now, and serve what comes next.
        drop(peers);
    });
    let client = Arc::new(client(&tracker));
    let other = Arc::clone(&client);
    let one = spawn!(client.request(&options(), &Servers::good()).await);
    let two = spawn!(other.request(&options(), &Servers::good()).await);
    assert_eq!(join(one).await.unwrap(), "k:0.5");
    assert_eq!(join(two).await.unwrap(), "k:0.5");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn between_tries_there_is_a_pause_that_doubles() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        for answer in ["-1", "-1", GRANT] {
            peer.expect(REQUEST);
            peer.answer(answer);
        }
    });
    let wanted = options().with_backoff(Duration::from_millis(30), Duration::from_secs(1));
    let start = Instant::now();
    client(&tracker)
        .request(&wanted, &Servers::good())
        .await
        .unwrap();
    assert!(start.elapsed() >= Duration::from_millis(30 + 60));
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_key_that_no_frame_holds_is_not_tried_again() {
    let tracker = FakeTracker::start(|door| door.accept().expect_end());
    let wanted = rpc_tracker_client::RequestOptions::new("k".repeat(1 << 20));
    let error = client(&tracker).request(&wanted, &Servers::good()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, TrackerClientError::Transport(_)), "{error}");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn each_failed_try_is_reported() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        for answer in ["-1", GRANT] {
            peer.expect(REQUEST);
            peer.answer(answer);
        }
    });
    let address = tracker.address();
    let (guard, events) = events::collect();
    client(&tracker)
        .request(&options(), &Servers::good())
        .await
        .unwrap();
    drop(guard);
    assert_eq!(
        events.iter().collect::<Vec<_>>(),
        [
            format!("request{{tracker={address} key=\"k\"}}"),
            format!("message=a try failed number=1 error=no success at {address}"),
        ]
    );
    tracker.finish();
}

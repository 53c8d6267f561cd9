//! What can be asked of a tracker.

use std::time::Duration;

use rpc_tracker_client::{Diagnosis, QueueStatus, TrackerClientError, TrackerClientOptions};

use super::farm::client;
use super::{TrackerClient, bisync, twin_test};
use crate::support::{FakeTracker, MAGIC, Reserved};

const SUMMARY: &str = r#"[0, {"queue_info": {"a:b": {"free": 1, "pending": 2}}, "server_info": [{"key": "server:a:b", "addr": ["10.0.0.1", 9090]}, {"key": "server:proxy[a:b,c]", "addr": ["10.0.0.2", "9090"]}]}]"#;

/// A tracker that answers one connection: pairs of what it expects and what it answers.
fn talking(exchanges: &'static [(&'static str, &'static str)]) -> FakeTracker {
    FakeTracker::start(move |door| {
        let mut peer = door.accept();
        for (request, answer) in exchanges {
            peer.expect(request);
            peer.answer(answer);
        }
        peer.expect_end();
    })
}

#[bisync]
#[twin_test]
async fn answers_are_typed_and_one_connection_serves_all() {
    let tracker = talking(&[
        ("[1]", "0"),
        ("[6]", SUMMARY),
        ("[6]", SUMMARY),
        ("[6]", SUMMARY),
        ("[6]", SUMMARY),
    ]);
    let client = client(&tracker);
    client.ping().await.unwrap();
    let summary = client.summary().await.unwrap();
    let expected = QueueStatus {
        free: 1,
        pending: 2,
    };
    assert_eq!(summary.queues["a:b"], expected);
    assert_eq!(client.text_summary().await.unwrap(), summary.text_summary());
    assert_eq!(client.count("a:b").await.unwrap(), 2);
    assert_eq!(client.count("a").await.unwrap(), 0);
    drop(client);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_lost_idle_connection_does_not_fail_a_question() {
    let tracker = FakeTracker::start(|door| {
        for _ in 0..2 {
            let mut peer = door.accept();
            peer.expect("[1]");
            peer.answer("0");
        }
    });
    let client = client(&tracker);
    for _ in 0..2 {
        client.ping().await.unwrap();
    }
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_tracker_that_does_not_answer_is_left() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        peer.expect("[6]");
        peer.expect_end();
        door.is_quiet();
    });
    let client = TrackerClient::with_options(
        tracker.address(),
        TrackerClientOptions::default().with_answer_timeout(Duration::from_millis(50)),
    );
    let error = client.summary().await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    tracker.finish();
    drop(client);
}

#[bisync]
#[twin_test]
async fn an_answer_to_another_question_is_an_error_and_ends_the_connection() {
    let tracker = talking(&[("[6]", "0")]);
    let client = client(&tracker);
    let error = client.summary().await.unwrap_err();
    assert!(matches!(error, TrackerClientError::Reply { .. }), "{error}");
    tracker.finish();
    drop(client);
}

#[bisync]
#[twin_test]
async fn stop_says_the_secret() {
    let tracker = FakeTracker::start(|door| {
        for answer in ["-1", "0"] {
            let mut peer = door.accept();
            peer.expect(r#"[2, "tracker:0.1"]"#);
            peer.answer(answer);
        }
    });
    let client = client(&tracker);
    let error = client.stop("tracker:0.1").await.unwrap_err();
    let address = client.address();
    assert_eq!(error.to_string(), format!("no success at {address}"));
    client.stop("tracker:0.1").await.unwrap();
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_diagnosis_tells_what_is_the_matter() {
    // At once: the default patience with a tracker that refuses is not for this.
    let reserved = Reserved::port();
    let diagnosis = TrackerClient::new(reserved.address()).check("a:b").await;
    assert!(
        matches!(diagnosis, Diagnosis::Unreachable(_)),
        "{diagnosis}"
    );

    let no_tracker = FakeTracker::start(|door| {
        assert_eq!(door.accept_stranger().read_exactly(4), MAGIC);
    });
    let diagnosis = client(&no_tracker).check("a:b").await;
    assert!(
        matches!(diagnosis, Diagnosis::NotATracker(_)),
        "{diagnosis}"
    );
    no_tracker.finish();

    let refusing = talking(&[("[6]", "-1")]);
    let diagnosis = client(&refusing).check("a:b").await;
    assert!(matches!(diagnosis, Diagnosis::NoSummary(_)), "{diagnosis}");
    refusing.finish();

    let tracker = FakeTracker::start(|door| {
        for _ in 0..3 {
            let mut peer = door.accept();
            peer.expect("[6]");
            peer.answer(SUMMARY);
        }
    });
    let client = client(&tracker);
    let diagnosis = client.check("a:b").await;
    let available = matches!(
        diagnosis,
        Diagnosis::Available {
            servers: 2,
            free: 1
        }
    );
    assert!(available, "{diagnosis}");
    let diagnosis = client.check("c").await;
    let busy = matches!(
        diagnosis,
        Diagnosis::AllBusy {
            servers: 1,
            pending: 0
        }
    );
    assert!(busy, "{diagnosis}");
    let diagnosis = client.check("x").await;
    let missing =
        matches!(&diagnosis, Diagnosis::NoServer { registered } if *registered == ["a:b", "c"]);
    assert!(missing, "{diagnosis}");
    tracker.finish();
}

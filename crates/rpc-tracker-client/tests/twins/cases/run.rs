//! The table of `request_and_run`, row by row.

use std::error::Error;
use std::time::{Duration, Instant};

use rpc_tracker_client::TrackerClientError;

use super::farm::{GRANT, REQUEST, SOON, Servers, client, options};
use super::{bisync, join, twin_test, yield_now};
use crate::support::FakeTracker;

/// A tracker that gives each answer once, on one connection.
fn answering(answers: &'static [&'static str]) -> FakeTracker {
    FakeTracker::start(move |door| {
        let mut peer = door.accept();
        for answer in answers {
            peer.expect(REQUEST);
            peer.answer(answer);
        }
        peer.expect_end();
        door.is_quiet();
    })
}

#[bisync]
#[twin_test]
async fn a_failed_run_starts_again_on_another_session() {
    let first = r#"[0, ["h", 1, "k:0.1"]]"#;
    let second = r#"[0, ["h", 1, "k:0.2"]]"#;
    let tracker = answering(Box::leak(Box::new([first, second])));
    let mut sessions = Vec::new();
    let result = client(&tracker)
        .request_and_run(&options(), &Servers::good(), async |session: String| {
            yield_now().await;
            sessions.push(session);
            if sessions.len() == 1 {
                Err("the device is gone")
            } else {
                Ok(42)
            }
        })
        .await;
    assert_eq!(result.unwrap(), 42);
    assert_eq!(sessions, ["k:0.1", "k:0.2"]);
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn after_two_runs_the_last_failure_is_named() {
    let tracker = answering(&[GRANT, GRANT]);
    // A session timeout that did not pass has nothing to do with it.
    let wanted = options().with_session_timeout(Duration::from_secs(3600));
    let result: Result<(), _> = client(&tracker)
        .request_and_run(&wanted, &Servers::good(), async |_| Err("wrong shape"))
        .await;
    let error = result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot run on a device of key \"k\", gave up after 2 tries"
    );
    assert_eq!(error.source().unwrap().to_string(), "wrong shape");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_run_that_fails_when_the_session_is_over_is_a_timeout() {
    let tracker = answering(&[GRANT]);
    let limit = Duration::from_millis(40);
    let wanted = options().with_session_timeout(limit);
    let result: Result<(), _> = client(&tracker)
        .request_and_run(&wanted, &Servers::good(), async |_| {
            let start = Instant::now();
            while start.elapsed() < limit.mul_f64(0.95) {
                yield_now().await;
            }
            Err("lost the server")
        })
        .await;
    let error = result.unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(
        error.to_string(),
        "the session on a device of key \"k\" timed out: its limit was 40ms"
    );
    assert_eq!(error.source().unwrap().to_string(), "lost the server");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn the_wait_in_the_queue_is_not_charged_to_the_session() {
    let limit = SOON;
    let tracker = FakeTracker::start(move |door| {
        let mut peer = door.accept();
        peer.expect(REQUEST);
        peer.is_silent_for(limit);
        peer.answer(GRANT);
        peer.expect_end();
    });
    let wanted = options().with_session_timeout(limit).with_max_runs(1);
    let result: Result<(), _> = client(&tracker)
        .request_and_run(&wanted, &Servers::good(), async |_| Err("fails at once"))
        .await;
    let error = result.unwrap_err();
    assert!(
        matches!(error, TrackerClientError::Run { runs: 1, .. }),
        "{error}"
    );
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_failed_request_counts_as_a_run() {
    let tracker = answering(&["-1", GRANT]);
    let client = client(&tracker);
    // On a task or thread of its own, to see that this can be done.
    let running = spawn!({
        let (wanted, servers) = (options().with_max_tries(1), Servers::good());
        let work = async |session: String| Ok::<_, String>(session);
        client.request_and_run(&wanted, &servers, work).await
    });
    assert_eq!(join(running).await.unwrap(), "k:0.5");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_failed_request_surfaces_as_it_is_when_it_was_the_last() {
    let tracker = answering(&[GRANT, "-1"]);
    let wanted = options().with_max_tries(1);
    let result: Result<(), _> = client(&tracker)
        .request_and_run(&wanted, &Servers::good(), async |_| {
            Err("the device is gone")
        })
        .await;
    let error = result.unwrap_err();
    assert!(matches!(error, TrackerClientError::Exhausted(_)), "{error}");
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn a_wait_that_is_over_is_not_started_again() {
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        while peer.next_frame().is_some() {}
        door.is_quiet();
    });
    let wanted = options().with_wait_timeout(SOON);
    let result = client(&tracker)
        .request_and_run(&wanted, &Servers::good(), async |_| Ok::<_, String>(()))
        .await;
    let error = result.unwrap_err();
    assert!(
        matches!(error, TrackerClientError::WaitTimedOut { .. }),
        "{error}"
    );
    tracker.finish();
}

#[bisync]
#[twin_test]
async fn no_run_allowed_is_an_error() {
    let tracker = FakeTracker::start(|door| door.is_quiet());
    let result = client(&tracker)
        .request_and_run(&options().with_max_runs(0), &Servers::good(), async |_| {
            Ok::<_, String>(())
        })
        .await;
    assert_eq!(
        result.unwrap_err().to_string(),
        "no session on a device of key \"k\" after 0 tries: none was allowed"
    );
    tracker.finish();
}

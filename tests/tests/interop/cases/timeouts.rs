//! Sessions with a time limit.

use std::time::{Duration, Instant};

use rpc_session::{SessionError, SessionOptions, args};
use rpc_tests::peers::{Server, Tracker};
use rpc_tracker_client::RequestOptions;

use super::bench::{call, open, open_with, value};
use super::{RemoteSession, TrackerClient, bisync, case, sleep};
use crate::support::address;

const LIMIT: Duration = Duration::from_secs(1);

#[track_caller]
fn assert_timed_out(error: &SessionError) {
    assert!(error.is_session_timeout() && error.is_fatal(), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the session's time is up: Your 1.0s session has expired, \
         try to increase the \"session_timeout\" value."
    );
}

#[bisync]
async fn assert_ends_in_a_call(session: &RemoteSession, start: Instant) {
    let error = call(session, "rpc.test.sleep", args![20])
        .await
        .unwrap_err();
    assert_timed_out(&error);
    let taken = start.elapsed();
    assert!(taken >= LIMIT && taken < 10 * LIMIT, "{taken:?}");
    // It stays over, for the same reason.
    let error = call(session, "rpc.test.addone", args![1])
        .await
        .unwrap_err();
    assert_timed_out(&error);
}

#[bisync]
async fn assert_ends_while_idle(session: &RemoteSession) {
    let sum: i64 = value(session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
    // Some drops on the way: what is freed is no reason to miss what the server said.
    drop(session.function("rpc.test.addone").await.unwrap());
    sleep(2 * LIMIT).await;
    let error = call(session, "rpc.test.addone", args![1])
        .await
        .unwrap_err();
    assert_timed_out(&error);
}

#[bisync]
#[case]
async fn a_call_ends_when_the_time_is_up() {
    let start = Instant::now();
    let options = SessionOptions::default().with_session_timeout(LIMIT);
    let session = open_with(&options).await;
    assert_ends_in_a_call(&session, start).await;
}

#[bisync]
#[case]
async fn an_idle_session_ends_when_its_time_is_up() {
    let options = SessionOptions::default().with_session_timeout(LIMIT);
    let session = open_with(&options).await;
    assert_ends_while_idle(&session).await;
}

#[bisync]
#[case]
async fn a_session_from_a_tracker_has_the_limit_of_its_request() {
    let tracker = Tracker::start();
    let _server = Server::builder()
        .key("limited")
        .tracker(tracker.addr())
        .test_functions()
        .start();
    let client = TrackerClient::new(address(tracker.addr()));
    let request = RequestOptions::new("limited").with_session_timeout(LIMIT);
    let options = SessionOptions::default();

    let start = Instant::now();
    let session = RemoteSession::request(&client, &request, &options)
        .await
        .unwrap();
    assert_ends_in_a_call(&session, start).await;
    drop(session);
    let session = RemoteSession::request(&client, &request, &options)
        .await
        .unwrap();
    assert_ends_while_idle(&session).await;
}

/// The limit of this end, for a peer that says nothing.
#[bisync]
#[case]
async fn a_silent_server_is_given_up() {
    let options = SessionOptions::default().with_reply_timeout(Some(LIMIT));
    let session = open_with(&options).await;
    let start = Instant::now();
    let error = call(&session, "rpc.test.sleep", args![2])
        .await
        .unwrap_err();
    assert!(error.is_fatal() && !error.is_session_timeout(), "{error:?}");
    assert!(error.to_string().contains("waiting for a reply"), "{error}");
    let taken = start.elapsed();
    assert!(taken >= LIMIT && taken < 10 * LIMIT, "{taken:?}");
}

#[bisync]
#[case]
async fn a_session_without_a_limit_outlives_a_short_one() {
    let session = open().await;
    sleep(2 * LIMIT).await;
    let sum: i64 = value(&session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
}

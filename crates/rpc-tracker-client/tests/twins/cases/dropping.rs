//! Futures that are dropped before they are done.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::thread;

use tokio::sync::oneshot;

use super::farm::{GRANT, REQUEST, Servers, client, options};
use crate::support::{Door, FakeTracker, Peer};

const SUMMARY: &str = r#"[0, {"queue_info": {}, "server_info": []}]"#;

#[tokio::test]
async fn a_request_that_is_dropped_in_the_queue_closes_its_connection() {
    let (queued, is_queued) = oneshot::channel();
    let tracker = FakeTracker::start(|door| {
        let mut peer = door.accept();
        peer.expect(REQUEST);
        queued.send(()).unwrap();
        peer.expect_end();
        let mut next = door.accept();
        next.expect("[6]");
        next.answer(SUMMARY);
    });
    let client = client(&tracker);
    let (wanted, servers) = (options(), Servers::good());
    tokio::select! {
        session = client.request(&wanted, &servers) => panic!("{session:?}"),
        heard = is_queued => heard.unwrap(),
    }
    assert!(client.summary().await.unwrap().servers.is_empty());
    tracker.finish();
}

/// Wherever a request is dropped, the next exchange gets its own answer and not a late grant.
#[tokio::test]
async fn a_request_may_be_dropped_at_every_await_point() {
    let mut polls = 0;
    loop {
        let tracker = FakeTracker::start(serve_until_pinged);
        let client = client(&tracker);
        let (wanted, servers) = (options(), Servers::gone(1));
        let session = at_most(polls, client.request(&wanted, &servers)).await;
        client.summary().await.unwrap();
        client.ping().await.unwrap();
        drop(client);
        tracker.finish();
        if let Some(session) = session {
            assert_eq!(session.unwrap(), "k:0.5");
            break;
        }
        polls += 1;
    }
    // Greeting, grant, connect, and the same without greeting again.
    assert!(polls >= 4, "{polls}");
}

/// The result of `future` if it needs at most so many polls.
async fn at_most<T>(polls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        let Some(less) = left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        left = less;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Answers on each connection whatever is asked, until the first PING.
fn serve_until_pinged(door: &Door) {
    let (pinged, is_pinged) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        while is_pinged.try_recv().is_err() {
            if let Some(peer) = door.try_accept() {
                let pinged = pinged.clone();
                scope.spawn(move || serve(peer, &pinged));
            }
        }
    });
}

fn serve(mut peer: Peer, pinged: &std::sync::mpsc::Sender<()>) {
    if !peer.greet() {
        return;
    }
    while let Some(request) = peer.next_frame() {
        match request.as_str() {
            REQUEST => peer.answer(GRANT),
            "[6]" => peer.answer(SUMMARY),
            _ => {
                peer.answer("0");
                pinged.send(()).unwrap();
                return;
            }
        }
    }
}

//! One file, compiled both ways: `twins/both.rs` is a module of each twin.
#![allow(clippy::duplicate_mod)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[path = "twins"]
mod asynchronous {
    use std::task::Poll;

    use rpc_bisync::{as_is as bisync, as_is as only_async, nothing as only_sync};

    /// Something to wait for: ready at the second look.
    async fn wait() {
        let mut looks = 0;
        std::future::poll_fn(|context| {
            looks += 1;
            context.waker().wake_by_ref();
            if looks < 2 {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    pub(super) mod both;
}

#[path = "twins"]
mod blocking {
    use rpc_bisync::{as_is as only_sync, blocking as bisync, nothing as only_async};

    fn wait() {}

    pub(super) mod both;
}

/// Polls until the end, and says how many polls it took.
fn run<T>(future: impl Future<Output = T>) -> (T, u32) {
    let mut future = pin!(future);
    for polls in 1.. {
        let context = &mut Context::from_waker(Waker::noop());
        if let Poll::Ready(result) = future.as_mut().poll(context) {
            return (result, polls);
        }
    }
    unreachable!("the polls do not end")
}

#[test]
fn an_async_fn_is_a_plain_function_in_the_blocking_twin() {
    assert_eq!(run(asynchronous::both::twice(21)), (42, 3));
    assert_eq!(blocking::both::twice(21), 42);
}

#[test]
fn a_question_mark_behind_an_await_leaves_the_function() {
    for (text, expected) in [("41", Some(42)), ("no", None)] {
        assert_eq!(run(asynchronous::both::next(text)).0.ok(), expected);
        assert_eq!(blocking::both::next(text).ok(), expected);
    }
}

#[test]
fn closures_and_their_traits_are_turned() {
    assert_eq!(run(asynchronous::both::closures()).0, [2, 3, 5]);
    assert_eq!(blocking::both::closures(), [2, 3, 5]);
}

#[test]
fn what_stands_in_groups_is_turned() {
    assert_eq!(run(asynchronous::both::groups()).0, [1, 2, 3, 4, 5]);
    assert_eq!(blocking::both::groups(), [1, 2, 3, 4, 5]);
}

#[test]
fn traits_and_their_implementations_are_turned() {
    assert_eq!(
        run(asynchronous::both::greet(&asynchronous::both::Host)).0,
        "hello"
    );
    assert_eq!(blocking::both::greet(&blocking::both::Host), "hello");
}

#[test]
fn each_twin_has_what_is_its_own() {
    assert_eq!(asynchronous::both::name(), "async");
    assert_eq!(blocking::both::name(), "sync");
}

//! The client against scripted trackers, each case once for both twins.
#![cfg(any(feature = "async", feature = "sync"))]
// The files of `cases` belong to both twins.
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

mod support;

#[cfg(feature = "async")]
#[path = "cases"]
mod asynchronous {
    use async_trait::async_trait as connect_trait;
    use rpc_bisync::as_is as bisync;
    use rpc_tracker_client::asynchronous::{Connect, TrackerClient, TrackerConnection};
    use tokio::task::yield_now;
    use tokio::test as twin_test;

    macro_rules! spawn {
        ($work:expr) => {
            tokio::spawn(async move { $work })
        };
    }

    mod connecting;
    mod dropping;
    mod farm;
    mod queries;
    mod registration;
    mod request;
    mod run;

    async fn join<T>(task: tokio::task::JoinHandle<T>) -> T {
        task.await.unwrap()
    }
}

#[cfg(feature = "sync")]
#[path = "cases"]
mod blocking {
    use core::prelude::v1::test as twin_test;
    use std::thread::yield_now;

    use rpc_bisync::{as_is as connect_trait, blocking as bisync};
    use rpc_tracker_client::blocking::{Connect, TrackerClient, TrackerConnection};

    macro_rules! spawn {
        ($work:expr) => {
            std::thread::spawn(move || $work)
        };
    }

    mod connecting;
    mod farm;
    mod queries;
    mod registration;
    mod request;
    mod run;

    fn join<T>(thread: std::thread::JoinHandle<T>) -> T {
        thread.join().unwrap()
    }
}

//! Both clients against the reference implementation: its Python tracker and servers.
//!
//! Each case is written once, as async code, and belongs to two modules: in `asynchronous` it runs
//! as it stands, in `blocking` without `async` and `.await` (see `rpc_bisync`).
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]
// The files of `cases` belong to both twins.
#![allow(clippy::duplicate_mod)]

mod support;

#[path = "cases"]
mod asynchronous {
    use std::future::Future;

    use async_trait::async_trait as connect_trait;
    use rpc_bisync::as_is as bisync;
    use rpc_session::asynchronous::{
        Argument, Connector, Function, Module, Object, Output, RemoteSession, Tensor,
    };
    use rpc_tracker_client::asynchronous::{Connect, TrackerClient, TrackerConnection};
    use tokio::test as case;
    use tokio::time::sleep;

    mod bench;
    mod calls;
    mod devices;
    mod exceptions;
    mod faults;
    mod files;
    mod lifetimes;
    mod modules;
    mod multihop;
    mod offers;
    mod pipelining;
    mod queue;
    mod tensors;
    mod timeouts;
    mod timing;
    mod tracker;
    mod values;
    mod views;

    type Running<T> = tokio::task::JoinHandle<T>;

    /// Starts work beside the case.
    fn spawn<T, Fut>(work: impl FnOnce() -> Fut) -> Running<T>
    where
        T: Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        tokio::spawn(work())
    }

    async fn join<T>(running: Running<T>) -> T {
        running.await.unwrap()
    }
}

#[path = "cases"]
mod blocking {
    use core::prelude::v1::test as case;
    use std::thread::sleep;

    use rpc_bisync::{as_is as connect_trait, blocking as bisync};
    use rpc_session::blocking::{
        Argument, Connector, Function, Module, Object, Output, RemoteSession, Tensor,
    };
    use rpc_tracker_client::blocking::{Connect, TrackerClient, TrackerConnection};

    mod bench;
    mod calls;
    mod devices;
    mod exceptions;
    mod faults;
    mod files;
    mod lifetimes;
    mod modules;
    mod multihop;
    mod offers;
    mod queue;
    mod tensors;
    mod timeouts;
    mod timing;
    mod tracker;
    mod values;
    mod views;

    type Running<T> = std::thread::JoinHandle<T>;

    /// Starts work beside the case.
    fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Running<T> {
        std::thread::spawn(work)
    }

    fn join<T>(running: Running<T>) -> T {
        running.join().unwrap()
    }
}

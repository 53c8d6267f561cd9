//! Both twins against peers that are good, bad and silent. Each file of `dual` is written once and is
//! a module of each twin.
#![cfg(any(feature = "sync", feature = "async"))]
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

mod mock;
mod peer;
#[cfg(feature = "websocket")]
mod websocket;

#[cfg(feature = "async")]
#[path = "../dual"]
mod asynchronous {
    use rpc_bisync::{as_is as bisync, as_is as only_async, nothing as only_sync};
    use rpc_transport::asynchronous as twin;
    use tokio::test as twin_test;

    mod accepted;
    mod child;
    mod connect;
    mod framing;
    mod halves;
    mod handshake;
    mod incoming;
    mod introduction;
    mod tracker;
    #[cfg(feature = "websocket")]
    mod websocket;
}

#[cfg(feature = "sync")]
#[path = "../dual"]
mod blocking {
    use core::prelude::v1::test as twin_test;
    use rpc_bisync::{as_is as only_sync, blocking as bisync, nothing as only_async};
    use rpc_transport::blocking as twin;

    mod accepted;
    mod child;
    mod connect;
    mod ending;
    mod framing;
    mod handshake;
    mod incoming;
    mod tracker;
    #[cfg(feature = "websocket")]
    mod websocket;
    #[cfg(feature = "websocket")]
    mod websocket_threads;
}

//! Sessions with scripted servers, each case once for both twins.
#![cfg(any(feature = "async", feature = "sync"))]
// The files of `cases` belong to both twins.
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

mod support;

#[cfg(feature = "async")]
#[path = "cases"]
mod asynchronous {
    use rpc_bisync::{as_is as bisync, as_is as only_async, nothing as only_sync};
    use rpc_session::asynchronous::{
        Argument, Function, Module, Object, Output, RemoteSession, Tensor,
    };
    #[cfg(unix)]
    use rpc_transport::asynchronous::spawn;
    use tokio::test as twin_test;
    use tokio::time::sleep as pause;

    mod arguments;
    mod bulk;
    mod cancel;
    #[cfg(unix)]
    mod child;
    mod copies;
    mod ending;
    mod files;
    mod handles;
    #[cfg(feature = "ndarray")]
    mod ndarray;
    mod opening;
    mod pipelining;
    mod replies;
    mod session;
    #[cfg(feature = "websocket")]
    mod websocket;
}

#[cfg(feature = "sync")]
#[path = "cases"]
mod blocking {
    use core::prelude::v1::test as twin_test;
    use std::thread::sleep as pause;

    use rpc_bisync::{as_is as only_sync, blocking as bisync, nothing as only_async};
    use rpc_session::blocking::{
        Argument, Function, Module, Object, Output, RemoteSession, Tensor,
    };
    #[cfg(unix)]
    use rpc_transport::blocking::spawn;

    mod arguments;
    mod bulk;
    #[cfg(unix)]
    mod child;
    mod copies;
    mod ending;
    mod files;
    mod handles;
    #[cfg(feature = "ndarray")]
    mod ndarray;
    mod opening;
    mod replies;
    mod session;
    mod threads;
    #[cfg(feature = "websocket")]
    mod websocket;
}

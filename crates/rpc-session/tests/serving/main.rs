//! Sessions served to clients that are good, bad and gone, each case once for both twins.
#![cfg(any(feature = "async", feature = "sync"))]
// The files of `cases` belong to both twins.
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

mod support;

#[cfg(feature = "async")]
#[path = "cases"]
mod asynchronous {
    use async_trait::async_trait as dyn_trait;
    use rpc_bisync::{as_is as bisync, as_is as only_async, nothing as only_sync};
    #[cfg(unix)]
    use rpc_session::asynchronous::StartProgram;
    use rpc_session::asynchronous::{
        BulkArgument, CallResult, ConnectNext, Construct, Constructors, DynRead, DynWrite, Expiry,
        Output, RemoteSession, Session, serve,
    };
    use rpc_transport::asynchronous::{Stream, connect};
    use tokio::io::{AsyncReadExt as ReadExt, AsyncWriteExt as WriteExt};
    use tokio::test as twin_test;
    use tokio::time::sleep as pause;

    mod copies;
    mod expiry;
    mod hops;
    mod malformed;
    mod mock;
    mod opening;
    #[cfg(unix)]
    mod program;
    mod requests;
    mod server;
    mod stall;
    mod vanishing;
}

#[cfg(feature = "sync")]
#[path = "cases"]
mod blocking {
    use core::prelude::v1::test as twin_test;
    use std::thread::sleep as pause;

    use rpc_bisync::{as_is as dyn_trait, as_is as only_sync};
    use rpc_bisync::{blocking as bisync, nothing as only_async};
    #[cfg(unix)]
    use rpc_session::blocking::StartProgram;
    use rpc_session::blocking::{
        BulkArgument, CallResult, ConnectNext, Construct, Constructors, DynRead, DynWrite, Expiry,
        Output, RemoteSession, Session, serve,
    };
    use rpc_transport::blocking::{Stream, connect};

    mod copies;
    mod expiry;
    mod hops;
    mod malformed;
    mod mock;
    mod opening;
    #[cfg(unix)]
    mod program;
    mod requests;
    mod server;
    mod stall;
    mod vanishing;
}

//! Local sessions, driven as their endpoint drives them, each case once for both twins.
#![cfg(any(feature = "async", feature = "sync"))]
// The files of `cases` belong to both twins.
#![allow(clippy::duplicate_mod, clippy::unwrap_used)]

#[cfg(feature = "sync")]
mod stalled;

#[cfg(feature = "async")]
#[path = "cases"]
mod asynchronous {
    use rpc_bisync::as_is as bisync;
    use rpc_session::asynchronous::{
        BulkArgument, CallResult, Construct, DynRead, LocalSession, LocalSessions, Session,
    };
    use tokio::io::AsyncReadExt as ReadExt;
    use tokio::test as twin_test;

    mod backend;
    mod client;
    mod copies;
    mod devices;
    mod files;
    mod functions;
    mod handles;
    mod memory;
    mod timing;
    mod values;
}

#[cfg(feature = "sync")]
#[path = "cases"]
mod blocking {
    use core::prelude::v1::test as twin_test;
    use std::io::Read as ReadExt;

    use rpc_bisync::blocking as bisync;
    use rpc_session::blocking::{
        BulkArgument, CallResult, Construct, DynRead, LocalSession, LocalSessions, Session,
    };

    mod backend;
    mod client;
    mod copies;
    mod devices;
    mod files;
    mod functions;
    mod handles;
    mod memory;
    mod timing;
    mod values;
}

//! The recorded sessions of `tests/vectors` against both twins of our session: a server plays the recorded
//! server's part, and every byte that we send is compared with what the reference's client sent. Where we
//! differ on purpose, a rule in [`replay`] says so by name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
// The files of `cases` belong to both twins.
#![allow(clippy::duplicate_mod)]

mod recording;
mod replay;

#[path = "cases"]
mod asynchronous {
    use rpc_bisync::{as_is as bisync, as_is as only_async, nothing as only_sync};
    use rpc_session::asynchronous::{
        Argument, Function, Module, Object, Output, RemoteSession, Tensor,
    };
    use tokio::test as twin_test;

    mod copies;
    mod opening;
    mod server_functions;
    mod session;
    mod values;
}

#[path = "cases"]
mod blocking {
    use core::prelude::v1::test as twin_test;

    use rpc_bisync::{as_is as only_sync, blocking as bisync, nothing as only_async};
    use rpc_session::blocking::{
        Argument, Function, Module, Object, Output, RemoteSession, Tensor,
    };

    mod copies;
    mod opening;
    mod server_functions;
    mod session;
    mod values;
}

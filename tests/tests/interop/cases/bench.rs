//! A session to try things on, and what most cases do with it.

use std::ops::Deref;
use std::time::{Duration, Instant};

use rpc_session::{SessionError, SessionOptions};

use super::{Argument, Output, RemoteSession, bisync, sleep};
use crate::support::Lease;

/// A session on a server of the pool.
pub(super) struct Bench {
    // Ends before the server is given back.
    session: RemoteSession,
    server: Lease,
}

impl Deref for Bench {
    type Target = RemoteSession;

    fn deref(&self) -> &RemoteSession {
        &self.session
    }
}

#[bisync]
pub(super) async fn open() -> Bench {
    Bench::on(Lease::take(), &SessionOptions::default()).await
}

#[bisync]
pub(super) async fn open_with(options: &SessionOptions) -> Bench {
    Bench::on(Lease::take(), options).await
}

#[bisync]
impl Bench {
    async fn on(server: Lease, options: &SessionOptions) -> Self {
        let session = RemoteSession::connect(&server.address(), "", options)
            .await
            .unwrap();
        Self { session, server }
    }

    /// Ends the session, which nothing else may hold any more, and opens another one on its server.
    pub(super) async fn reopen(self) -> Self {
        let Self { session, server } = self;
        drop(session);
        Self::on(server, &SessionOptions::default()).await
    }
}

/// Calls the global function `name`.
#[bisync]
pub(super) async fn call(
    session: &RemoteSession,
    name: &str,
    args: &[Argument<'_>],
) -> Result<Output, SessionError> {
    session.function(name).await?.call(args).await
}

/// Calls the global function `name`, which returns a `T`.
#[bisync]
pub(super) async fn value<T: TryFrom<Output, Error = SessionError>>(
    session: &RemoteSession,
    name: &str,
    args: &[Argument<'_>],
) -> T {
    let output = call(session, name, args).await.unwrap();
    output.try_into().unwrap()
}

/// What of `args` arrives at the server.
#[bisync]
pub(super) async fn describe(session: &RemoteSession, args: &[Argument<'_>]) -> String {
    value(session, "rpc.test.describe", args).await
}

/// Polls `condition` until it holds, for states that announce themselves to nobody.
#[bisync]
pub(super) async fn until(limit: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    const POLL_INTERVAL: Duration = Duration::from_millis(20);
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < limit, "waited {limit:?} for {what}");
        sleep(POLL_INTERVAL).await;
    }
}

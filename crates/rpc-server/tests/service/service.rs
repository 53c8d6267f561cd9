//! A server for a test.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rpc_server::{Isolation, Server, ServerBuilder, ServerHandle};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::client::{Client, Peer};
use crate::functions::{in_workers, on_threads};

pub(crate) const KEY: &str = "board";

/// A server of the key `board` that serves until this is dropped.
pub(crate) struct Service {
    pub(crate) addr: SocketAddr,
    pub(crate) handle: ServerHandle,
    pub(crate) served: JoinHandle<()>,
    folder: TempDir,
}

impl Service {
    /// A server with one worker process a session.
    pub(crate) async fn start() -> Self {
        Self::with(in_workers(), |builder| builder).await
    }

    /// Servers of both kinds.
    pub(crate) async fn both(build: impl Fn(ServerBuilder) -> ServerBuilder) -> [Self; 2] {
        [
            Self::with(in_workers(), &build).await,
            Self::with(on_threads(), &build).await,
        ]
    }

    #[expect(clippy::unused_async, reason = "tokio has to be there")]
    pub(crate) async fn with(
        isolation: Isolation,
        build: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let builder = ServerBuilder::new(KEY, isolation).with_work_dir(folder.path());
        let mut service = Self::of(build(builder).bind("127.0.0.1", 0..=0).unwrap());
        service.folder = folder;
        service
    }

    /// A server that is bound already. Its work directories are not here.
    pub(crate) fn of(server: Server) -> Self {
        Self {
            addr: server.local_addr(),
            handle: server.handle(),
            served: tokio::spawn(server.serve()),
            folder: TempDir::new().unwrap(),
        }
    }

    /// A client in a session.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr, KEY).await.unwrap()
    }

    /// Somebody who is connected.
    pub(crate) async fn peer(&self) -> Peer {
        Peer::connect(self.addr).await
    }

    /// It serves, as it should at any time.
    pub(crate) async fn serves(&self) {
        self.client().await.works().await;
    }

    /// Waits until there is no session, and nothing of any.
    pub(crate) async fn is_idle(&self) {
        let what = "the end of all sessions";
        until(what, || {
            self.handle.sessions() == 0 && self.dirs().is_empty()
        })
        .await;
    }

    /// The work directories that there are.
    pub(crate) fn dirs(&self) -> Vec<PathBuf> {
        let entries = self.folder.path().read_dir().unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Ends the server, and what it left behind can be looked at.
    pub(crate) async fn stop(&mut self) {
        self.handle.stop();
        within("the server to end", &mut self.served).await.unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// The result, which must come; how soon is not what these tests are about.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let Ok(result) = tokio::time::timeout(Duration::from_secs(60), future).await else {
        panic!("no end of waiting for {what}");
    };
    result
}

/// Waits for what announces itself to nobody.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

//! How cases open a session.

use rpc_session::{SessionError, SessionOptions};

use super::{RemoteSession, bisync, only_async, only_sync};
use crate::support::{KEY, Server};

#[bisync]
pub(super) async fn open<T: Send + 'static>(server: &Server<T>) -> RemoteSession {
    open_with(server, &SessionOptions::default()).await.unwrap()
}

#[bisync]
pub(super) async fn open_with<T: Send + 'static>(
    server: &Server<T>,
    options: &SessionOptions,
) -> Result<RemoteSession, SessionError> {
    RemoteSession::connect(server.address(), KEY, options).await
}

/// Waits for the end of the server's script, while the session's tasks go on.
#[only_async]
pub(super) async fn finish<T: Send + 'static>(server: Server<T>) -> T {
    match tokio::task::spawn_blocking(|| server.finish()).await {
        Ok(result) => result,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// Waits for the end of the server's script.
#[only_sync]
pub(super) fn finish<T: Send + 'static>(server: Server<T>) -> T {
    server.finish()
}

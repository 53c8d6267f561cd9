use std::error::Error;
use std::time::Duration;

use rpc_proto::tracker::Allocation;

use super::{bisync, connect_trait};

/// Turns a device that the tracker granted into a session: connects to the server, shakes hands with
/// the match key, and starts the session.
///
/// An allocation is good for one attempt. A failure here is one try of the request, and leads to
/// another allocation. So this is no place for retries, but it needs time limits of its own.
#[bisync]
#[connect_trait]
pub trait Connect: Sync {
    /// What is running at the end.
    type Session: Send;
    /// Why it is not.
    type Error: Error + Send + Sync + 'static;

    /// Makes a session of `allocation`. The server is to end it after `session_timeout`, unless that
    /// is none (it never is zero). It may have a fraction of a second, on which C++ servers of the
    /// reference end.
    async fn connect(
        &self,
        allocation: &Allocation,
        session_timeout: Option<Duration>,
    ) -> Result<Self::Session, Self::Error>;
}

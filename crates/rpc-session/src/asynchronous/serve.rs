//! Serving one connection on the caller's own task, and who may end it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rpc_transport::asynchronous::Stream;
use tokio::sync::Notify;

use super::dual::serve::constructor::Constructors;
use super::dual::serve::endpoint::Serving;
use super::wire::Wire;
use crate::{ServeError, ServeOptions};

/// When the time is up, the client may take so long to hear of it.
const MOMENT: Duration = Duration::from_millis(500);

/// Ends a session that is being served when its time is up. A clone is the same.
///
/// The function that the session is running is given up at its next `.await`; what it does without one
/// goes on until it returns.
#[derive(Debug, Clone, Default)]
pub struct Expiry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    limit: OnceLock<Duration>,
    expired: Notify,
}

impl Expiry {
    /// Has the client told that the time of `limit` is up, and the connection closed. The client is told
    /// nothing in the middle of an answer.
    ///
    /// Before a session is being served, or after it, this keeps it from being served any more.
    pub fn expire(&self, limit: Duration) {
        // The first limit counts.
        let _ = self.0.limit.set(limit);
        self.0.expired.notify_one();
    }

    async fn expired(&self) -> Duration {
        loop {
            if let Some(limit) = self.0.limit.get() {
                return *limit;
            }
            self.0.expired.notified().await;
        }
    }
}

/// Serves a connection whose handshake is done, until the client says goodbye or goes, or until
/// `expiry` says that its time is up. What the client held is freed then.
///
/// # Errors
/// The connection fails, the client breaks the protocol, or the time is up.
pub async fn serve(
    stream: Stream,
    constructors: &Constructors,
    options: &ServeOptions,
    expiry: &Expiry,
) -> Result<(), ServeError> {
    let mut serving = Serving::new(Wire::new(stream, options), options);
    let served = tokio::select! {
        biased;
        limit = expiry.expired() => Err(limit),
        served = serving.run(constructors) => Ok(served),
    };
    let ended = match served {
        Ok(ended) => ended,
        Err(limit) => {
            if serving.wire.expire(options, limit).await {
                serving.hear_out(MOMENT).await;
            }
            Err(ServeError::Expired { limit })
        }
    };
    serving.finish().await;
    ended
}

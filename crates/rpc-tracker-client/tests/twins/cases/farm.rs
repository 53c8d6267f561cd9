//! What the cases have in common: the servers behind the tracker, and options without long waits.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use rpc_tracker_client::{Allocation, RequestOptions, TrackerClientOptions};

use super::{Connect, TrackerClient, bisync, connect_trait, yield_now};
use crate::support::FakeTracker;

/// `[4, "k", "", 1]`, what [`options`] ask for.
pub(super) const REQUEST: &str = r#"[4, "k", "", 1]"#;
pub(super) const GRANT: &str = r#"[0, ["10.0.0.1", 9090, "k:0.5"]]"#;

/// A limit that passes in a test, after all that has to happen before.
pub(super) const SOON: Duration = Duration::from_secs(2);

/// Servers of which the first ones that a client comes to are gone. A session is its match key.
pub(super) struct Servers {
    gone: Mutex<u32>,
    seen: Mutex<Vec<(Allocation, Option<Duration>)>>,
}

impl Servers {
    pub(super) fn good() -> Self {
        Self::gone(0)
    }

    pub(super) fn gone(count: u32) -> Self {
        Self {
            gone: Mutex::new(count),
            seen: Mutex::default(),
        }
    }

    pub(super) fn seen(&self) -> Vec<(Allocation, Option<Duration>)> {
        self.seen.lock().unwrap().clone()
    }

    fn visit(&self, allocation: &Allocation, timeout: Option<Duration>) -> io::Result<String> {
        self.seen
            .lock()
            .unwrap()
            .push((allocation.clone(), timeout));
        let mut gone = self.gone.lock().unwrap();
        if *gone > 0 {
            *gone -= 1;
            return Err(io::Error::other("the server is gone"));
        }
        Ok(allocation.match_key.clone())
    }
}

#[bisync]
#[connect_trait]
impl Connect for Servers {
    type Session = String;
    type Error = io::Error;

    async fn connect(
        &self,
        allocation: &Allocation,
        session_timeout: Option<Duration>,
    ) -> Result<String, io::Error> {
        // A point where the future may be dropped.
        yield_now().await;
        self.visit(allocation, session_timeout)
    }
}

/// A client that does not wait for a tracker which refuses.
pub(super) fn client(tracker: &FakeTracker) -> TrackerClient {
    let options = TrackerClientOptions::default().with_connect_retry(None);
    TrackerClient::with_options(tracker.address(), options)
}

pub(super) fn options() -> RequestOptions {
    RequestOptions::new("k").without_backoff()
}

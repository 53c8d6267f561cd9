//! What the cases of both clients share and what is neither async nor blocking.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rpc_proto::Device;
use rpc_session::SessionError;
use rpc_tests::peers::{Server, Tracker, python};
use rpc_transport::Address;

/// For what a healthy peer does at once, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// The processor of a server.
pub(crate) const CPU: Device = Device::cpu(0);

/// Servers that nobody uses. A server takes one session at a time, and some seconds to start.
static FREE: Mutex<Vec<Server>> = Mutex::new(Vec::new());

/// A server with the test functions, an empty key and no tracker, for one case at a time.
#[derive(Debug)]
pub(crate) struct Lease(Option<Server>);

impl Lease {
    /// Takes a server that is free, or starts one.
    pub(crate) fn take() -> Self {
        let free = FREE.lock().unwrap().pop();
        Self(Some(free.unwrap_or_else(|| {
            Server::builder().test_functions().start()
        })))
    }

    pub(crate) fn address(&self) -> Address {
        address(self.0.as_ref().unwrap().addr())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // After a failure it may not serve any more, and its standard error is of interest.
        if !thread::panicking() {
            FREE.lock().unwrap().extend(self.0.take());
        }
    }
}

pub(crate) fn address(addr: SocketAddr) -> Address {
    Address::new(&addr.ip().to_string(), addr.port())
}

/// The message of a failure that the server reports.
#[track_caller]
pub(crate) fn message(error: &SessionError) -> &str {
    match error.remote() {
        Some(remote) => remote.message(),
        None => panic!("expected a failure that the server reports, not {error:?}"),
    }
}

/// What the reference's own client prints of the tracker.
pub(crate) fn reference_text_summary(tracker: &Tracker) -> String {
    let (host, port) = (tracker.addr().ip(), tracker.addr().port());
    python(&format!(
        "from tvm import rpc\n\
         print(rpc.connect_tracker('{host}', {port}).text_summary(), end='')"
    ))
}

/// Bytes that differ from place to place and from `seed` to `seed`.
pub(crate) fn pattern(nbytes: usize, seed: u64) -> Vec<u8> {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes: Vec<u8> = (0..nbytes.div_ceil(8) as u64)
        .flat_map(|word| {
            (word ^ seed)
                .wrapping_mul(ODD)
                .rotate_left(29)
                .to_le_bytes()
        })
        .collect();
    bytes.truncate(nbytes);
    bytes
}

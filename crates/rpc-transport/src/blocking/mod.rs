//! The blocking twin, on `std::net`.

mod stream;
#[path = "../dual"]
mod dual {
    use super::stream::{Reader, Stream, connect};
    use rpc_bisync::blocking as bisync;

    pub(super) mod handshake;
    pub(super) mod incoming;
    pub(super) mod tracker;
}

pub use dual::handshake::handshake;
pub use dual::incoming::Incoming;
pub use dual::tracker::TrackerStream;
#[cfg(unix)]
pub use stream::spawn;
pub use stream::{Carrier, Reader, Stream, connect};

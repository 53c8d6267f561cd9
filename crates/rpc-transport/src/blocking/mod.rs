//! The blocking twin, on `std::net`.

mod stream;
#[path = "../dual"]
mod dual {
    use super::stream::{Reader, Stream, look_up, open};
    use rpc_bisync::blocking as bisync;
    use std::net::TcpStream;

    #[cfg(test)]
    use core::prelude::v1::test as twin_test;

    pub(super) mod accepted;
    pub(super) mod connect;
    pub(super) mod handshake;
    pub(super) mod incoming;
    pub(super) mod tracker;
}

pub use dual::accepted::accepted;
pub use dual::connect::connect;
pub use dual::handshake::handshake;
pub use dual::incoming::Incoming;
pub use dual::tracker::TrackerStream;
#[cfg(unix)]
pub use stream::spawn;
pub use stream::{Carrier, Reader, Stream};

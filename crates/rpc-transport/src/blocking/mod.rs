//! The blocking twin, on `std::net`.

mod stream;
#[cfg(feature = "websocket")]
mod websocket;
#[path = "../dual"]
mod dual {
    use super::stream::{Reader, Stream, look_up, open};
    #[cfg(feature = "websocket")]
    use super::websocket::{WebSocket, receive, send};
    use rpc_bisync::blocking as bisync;
    use std::net::TcpStream;

    #[cfg(test)]
    use core::prelude::v1::test as twin_test;

    pub(super) mod accepted;
    pub(super) mod connect;
    pub(super) mod handshake;
    pub(super) mod incoming;
    pub(super) mod tracker;
    #[cfg(feature = "websocket")]
    mod upgrade;
}

pub use dual::accepted::accepted;
pub use dual::connect::{connect, connect_server};
pub use dual::handshake::handshake;
pub use dual::incoming::Incoming;
pub use dual::tracker::TrackerStream;
#[cfg(unix)]
pub use stream::spawn;
pub use stream::{Carrier, Reader, Stream};
#[cfg(feature = "websocket")]
pub use websocket::WebSocket;

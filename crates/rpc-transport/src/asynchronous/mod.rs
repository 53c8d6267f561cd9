//! The async twin, on tokio. It wants a runtime with I/O and time enabled and panics without one.

mod acceptor;
mod introduction;
mod stream;
#[cfg(feature = "websocket")]
mod websocket;
#[path = "../dual"]
mod dual {
    use super::stream::{Reader, Stream, look_up, open};
    #[cfg(feature = "websocket")]
    use super::websocket::{OnTcp as WebSocket, receive, send};
    use rpc_bisync::as_is as bisync;
    use tokio::net::TcpStream;

    #[cfg(test)]
    use tokio::test as twin_test;

    pub(super) mod accepted;
    pub(super) mod connect;
    pub(super) mod handshake;
    pub(super) mod incoming;
    pub(super) mod tracker;
    #[cfg(feature = "websocket")]
    mod upgrade;
}

pub use acceptor::Acceptor;
pub use dual::accepted::accepted;
pub use dual::connect::{connect, connect_server};
pub use dual::handshake::handshake;
pub use dual::incoming::Incoming;
pub use dual::tracker::TrackerStream;
pub use introduction::introduction;
#[cfg(unix)]
pub use stream::spawn;
pub use stream::{Reader, Stream, Writer};
#[cfg(feature = "websocket")]
pub use websocket::WebSocket;

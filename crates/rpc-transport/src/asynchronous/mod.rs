//! The async twin, on tokio. It wants a runtime with I/O and time enabled and panics without one.

mod acceptor;
mod introduction;
mod stream;
#[path = "../dual"]
mod dual {
    use super::stream::{Reader, Stream, look_up, open};
    use rpc_bisync::as_is as bisync;
    use tokio::net::TcpStream;

    #[cfg(test)]
    use tokio::test as twin_test;

    pub(super) mod accepted;
    pub(super) mod connect;
    pub(super) mod handshake;
    pub(super) mod incoming;
    pub(super) mod tracker;
}

pub use acceptor::Acceptor;
pub use dual::accepted::accepted;
pub use dual::connect::connect;
pub use dual::handshake::handshake;
pub use dual::incoming::Incoming;
pub use dual::tracker::TrackerStream;
pub use introduction::introduction;
#[cfg(unix)]
pub use stream::spawn;
pub use stream::{Reader, Stream, Writer};

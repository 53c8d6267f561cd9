//! The blocking twin, on `std::net`.

#[path = "../dual"]
mod dual {
    use std::thread::sleep;

    use rpc_bisync::{as_is as connect_trait, blocking as bisync};
    use rpc_transport::blocking::TrackerStream;

    pub(super) mod client;
    pub(super) mod connect;
    pub(super) mod connection;
    mod request;
    mod run;

    fn in_span<T>(span: tracing::Span, work: impl FnOnce() -> T) -> T {
        span.in_scope(work)
    }
}

pub use dual::client::TrackerClient;
pub use dual::connect::Connect;
pub use dual::connection::TrackerConnection;

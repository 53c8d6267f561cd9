//! The async twin, on tokio.

#[path = "../dual"]
mod dual {
    use async_trait::async_trait as connect_trait;
    use rpc_bisync::as_is as bisync;
    use rpc_transport::asynchronous::TrackerStream;
    use tokio::time::sleep;

    pub(super) mod client;
    pub(super) mod connect;
    pub(super) mod connection;
    mod request;
    mod run;

    async fn in_span<T>(span: tracing::Span, work: impl AsyncFnOnce() -> T) -> T {
        tracing::Instrument::instrument(work(), span).await
    }
}

pub use dual::client::TrackerClient;
pub use dual::connect::Connect;
pub use dual::connection::TrackerConnection;

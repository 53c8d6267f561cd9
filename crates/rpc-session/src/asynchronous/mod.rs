//! The async session, on tokio: calls may be issued concurrently through `&self`, and their answers
//! come back in order, so that many calls in flight cost about one round trip.
//!
//! A call whose future is dropped does no harm: its answer is read all the same, and what it brings is
//! freed. While a future reads a large result (a tensor, a file), the answers behind it wait for it, so
//! it should be polled to its end or dropped.
//!
//! Close a session before its runtime ends: tasks of the runtime say goodbye to the server and take the
//! replies that are still due. A server that cannot send them fails, and the reference's Python server
//! then serves nobody any more.

mod link;
mod serve;
mod wire;
#[path = "../dual"]
mod dual {
    use super::link::Link;
    use super::wire;
    use async_trait::async_trait as connect_trait;
    use async_trait::async_trait as dyn_trait;
    use rpc_bisync::{as_is as bisync, as_is as only_async, nothing as only_sync};
    use rpc_tracker_client::asynchronous::{Connect, TrackerClient};
    #[cfg(unix)]
    use rpc_transport::asynchronous::spawn;
    use rpc_transport::asynchronous::{
        Incoming, Reader, Stream as Carrier, connect_server, handshake,
    };
    use tokio::fs::File;
    use tokio::io::{AsyncReadExt as ReadExt, AsyncWriteExt as WriteExt};

    /// Where an upload comes from.
    pub type DynRead<'a> = dyn tokio::io::AsyncRead + Send + Unpin + 'a;
    /// Where a download goes.
    pub type DynWrite<'a> = dyn tokio::io::AsyncWrite + Send + Unpin + 'a;

    #[cfg(feature = "ndarray")]
    pub(super) mod arrays;
    pub(super) mod connector;
    pub(super) mod context;
    pub(super) mod device;
    pub(super) mod files;
    pub(super) mod function;
    pub(super) mod module;
    pub(super) mod payload;
    pub(super) mod serve;
    pub(super) mod session;
    pub(super) mod tensor;
    pub(super) mod value;
}

pub use dual::connector::Connector;
pub use dual::device::{RemoteDevice, Stream};
pub use dual::files::Files;
pub use dual::function::{Function, TimeEvaluator};
pub use dual::module::Module;
pub use dual::payload::Progress;
pub use dual::serve::constructor::{Construct, Constructors};
pub use dual::serve::files::call_file_function;
pub use dual::serve::hops::ConnectNext;
#[cfg(unix)]
pub use dual::serve::hops::StartProgram;
pub use dual::serve::local::{LocalSession, LocalSessions};
pub use dual::serve::session::{BulkArgument, CallResult, Session};
pub use dual::session::RemoteSession;
pub use dual::tensor::Tensor;
pub use dual::value::{Argument, Object, Output};
pub use dual::{DynRead, DynWrite};
pub use serve::{Expiry, serve};

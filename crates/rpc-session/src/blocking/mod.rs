//! The blocking session, on `std::net`: each call waits on the caller's own thread.

mod link;
mod serve;
mod wire;
#[path = "../dual"]
mod dual {
    use super::link::Link;
    use super::wire;
    use rpc_bisync::{as_is as connect_trait, as_is as dyn_trait, as_is as only_sync};
    use rpc_bisync::{blocking as bisync, nothing as only_async};
    use rpc_tracker_client::blocking::{Connect, TrackerClient};
    #[cfg(unix)]
    use rpc_transport::blocking::spawn;
    use rpc_transport::blocking::{Incoming, Reader, Stream as Carrier, connect_server, handshake};
    use std::fs::File;

    /// Where an upload comes from.
    pub type DynRead<'a> = dyn std::io::Read + 'a;
    /// Where a download goes.
    pub type DynWrite<'a> = dyn std::io::Write + 'a;

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

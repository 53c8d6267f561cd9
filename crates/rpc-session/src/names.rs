//! The names of the server's functions that a session uses. Public are those that a
//! [`Backend`](crate::Backend) answers to.

pub(crate) const SYSTEM_LIB: &str = "ffi.SystemLib";
/// Loads a module that was uploaded, by the name of its file.
pub const LOAD_MODULE: &str = "tvm.rpc.server.load_module";
pub(crate) const MODULE_GET_FUNCTION: &str = "tvm.rpc.server.ModuleGetFunction";
pub(crate) const IMPORT_MODULE: &str = "tvm.rpc.server.ImportModule";
pub(crate) const TIME_EVALUATOR: &str = "runtime.RPCTimeEvaluator";
pub(crate) const UPLOAD: &str = "tvm.rpc.server.upload";
pub(crate) const DOWNLOAD: &str = "tvm.rpc.server.download";
/// The bytes of the library that a file that was uploaded is, or is linked into.
pub const DOWNLOAD_LINKED: &str = "tvm.rpc.server.download_linked_module";
pub(crate) const REMOVE: &str = "tvm.rpc.server.remove";
pub(crate) const LIST: &str = "tvm.rpc.server.listdir";
pub(crate) const WORK_PATH: &str = "tvm.rpc.server.workpath";
/// Says how long a packet may be, on servers with little memory. Others do not have it.
pub(crate) const MAX_PACKET_SIZE: &str = "tvm.rpc.server.GetCRTMaxPacketSize";
/// The function of a module that is called when none is named.
pub(crate) const ENTRY: &str = "main";

/// What it means that a server has no function of this name.
pub(crate) fn hint(name: &str) -> &'static str {
    match name {
        LIST => ": it cannot list files (TVM's own Python server cannot)",
        TIME_EVALUATOR => ": its runtime was built without profiling",
        _ if name.starts_with("tvm.rpc.server.") => {
            ": it is no server for this job, or has no files"
        }
        _ => "",
    }
}

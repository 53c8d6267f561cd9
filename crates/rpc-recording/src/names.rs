//! Names of dialects and codes, as recordings have them.

use rpc_proto::Dialect;
use rpc_proto::codes::PacketCode;

/// The name of a dialect: `ffi` or `legacy`.
#[must_use]
pub fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Legacy => "legacy",
        _ => "ffi",
    }
}

/// A text that is not the name of a dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a dialect; expected ffi or legacy")]
pub struct UnknownDialect(String);

/// The dialect of that name.
///
/// # Errors
/// [`UnknownDialect`].
pub fn parse_dialect(name: &str) -> Result<Dialect, UnknownDialect> {
    match name {
        "ffi" => Ok(Dialect::Ffi),
        "legacy" => Ok(Dialect::Legacy),
        _ => Err(UnknownDialect(name.to_owned())),
    }
}

/// The name of a packet's code in the reference's sources.
pub(crate) fn code_name(code: PacketCode) -> String {
    let name = match code {
        PacketCode::SHUTDOWN => "kShutdown",
        PacketCode::INIT_SERVER => "kInitServer",
        PacketCode::CALL_FUNC => "kCallFunc",
        PacketCode::RETURN => "kReturn",
        PacketCode::EXCEPTION => "kException",
        PacketCode::COPY_FROM_REMOTE => "kCopyFromRemote",
        PacketCode::COPY_TO_REMOTE => "kCopyToRemote",
        PacketCode::COPY_ACK => "kCopyAck",
        PacketCode::GET_GLOBAL_FUNC => "kGetGlobalFunc",
        PacketCode::FREE_HANDLE => "kFreeHandle",
        PacketCode::DEV_SET_DEVICE => "kDevSetDevice",
        PacketCode::DEV_GET_ATTR => "kDevGetAttr",
        PacketCode::DEV_ALLOC_DATA => "kDevAllocData",
        PacketCode::DEV_FREE_DATA => "kDevFreeData",
        PacketCode::DEV_STREAM_SYNC => "kDevStreamSync",
        PacketCode::COPY_AMONG_REMOTE => "kCopyAmongRemote",
        PacketCode::DEV_ALLOC_DATA_WITH_SCOPE => "kDevAllocDataWithScope",
        PacketCode::DEV_CREATE_STREAM => "kDevCreateStream",
        PacketCode::DEV_FREE_STREAM => "kDevFreeStream",
        PacketCode::DEV_SET_STREAM => "kDevSetStream",
        PacketCode::DEV_GET_CURRENT_STREAM => "kDevGetCurrentStream",
        PacketCode(0) => "kNone",
        PacketCode(code) => return format!("code{code}"),
    };
    name.to_owned()
}

//! Every magic number and code of the protocol, once.
//!
//! Codes that a peer may extend are *open*: a newtype over the integer with named constants, so that
//! an unknown value is kept and printed, never lost.

use std::fmt;

/// First four bytes of a connection to a tracker, both ways (`71 f2 02 00` on the wire).
pub const TRACKER_MAGIC: i32 = 0x2f271;
/// First four bytes of a connection to a server or a proxy (`71 f2 0f 00` on the wire).
pub const RPC_MAGIC: i32 = 0xff271;
/// The protocol version that an init packet names. All known peers of both dialects say so.
pub const PROTOCOL_VERSION: &str = "0.8.0";
/// How the text of an exception starts when a server ended the session at its time limit.
pub const SESSION_TIMEOUT_PREFIX: &str = "RPCSessionTimeoutError: ";
/// How the text of an exception starts when a server has lost what served the session, for example since its
/// process crashed. These are words of ours; the reference's servers close the connection without any.
pub const SESSION_LOST_PREFIX: &str = "RPCSessionLostError: ";

macro_rules! open_code {
    ($(#[$meta:meta])* $name:ident($int:ty) { $($(#[$doc:meta])* $konst:ident = $value:expr, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$doc])* pub const $konst: Self = Self($value);)*

            /// The name of a known code.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$konst => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{} {}", stringify!($name), self.0),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({}", stringify!($name), self.0)?;
                if let Some(name) = self.name() {
                    write!(f, ": {name}")?;
                }
                f.write_str(")")
            }
        }
    };
}
pub(crate) use open_code;

open_code! {
    /// The answer of a server or a proxy to a handshake.
    HandshakeCode(i32) {
        /// Accepted; length and text of the peer's key follow.
        SUCCESS = RPC_MAGIC, "success";
        /// Somebody with the same key waits at this proxy already; the connection closes.
        DUPLICATE = RPC_MAGIC + 1, "duplicate key";
        /// The match key is not the one that is expected here; the connection closes.
        MISMATCH = RPC_MAGIC + 2, "key mismatch";
    }
}

open_code! {
    /// What a packet is for.
    PacketCode(i32) {
        /// The session ends.
        SHUTDOWN = 1, "shutdown";
        /// Opens the session, with the arguments of its constructor.
        INIT_SERVER = 2, "init";
        /// Calls a function by its handle.
        CALL_FUNC = 3, "call";
        /// A result.
        RETURN = 4, "return";
        /// A failure, in words.
        EXCEPTION = 5, "exception";
        /// Asks for the bytes of a tensor.
        COPY_FROM_REMOTE = 6, "copy from remote";
        /// Brings the bytes of a tensor.
        COPY_TO_REMOTE = 7, "copy to remote";
        /// The bytes that a copy from remote asked for.
        COPY_ACK = 8, "copy ack";
        /// Syscall: a global function's handle by name.
        GET_GLOBAL_FUNC = 9, "get global function";
        /// Syscall: gives up a handle.
        FREE_HANDLE = 10, "free handle";
        /// Syscall: makes a device current.
        DEV_SET_DEVICE = 11, "set device";
        /// Syscall: an attribute of a device.
        DEV_GET_ATTR = 12, "get device attribute";
        /// Syscall: allocates bytes on a device.
        DEV_ALLOC_DATA = 13, "allocate data";
        /// Syscall: frees what was allocated.
        DEV_FREE_DATA = 14, "free data";
        /// Syscall: waits until a stream is idle.
        DEV_STREAM_SYNC = 15, "synchronize stream";
        /// Syscall: copies between two tensors of the session.
        COPY_AMONG_REMOTE = 16, "copy among remote";
        /// Syscall: allocates a tensor, with a memory scope.
        DEV_ALLOC_DATA_WITH_SCOPE = 17, "allocate data with scope";
        /// Syscall: makes a stream.
        DEV_CREATE_STREAM = 18, "create stream";
        /// Syscall: frees a stream.
        DEV_FREE_STREAM = 19, "free stream";
        /// Syscall: makes a stream current.
        DEV_SET_STREAM = 20, "set stream";
        /// Syscall: the current stream.
        DEV_GET_CURRENT_STREAM = 21, "get current stream";
    }
}

/// Codes of a request to a tracker, and of its answer.
pub mod tracker {
    /// Is the tracker alive?
    pub const PING: i64 = 1;
    /// Ends the tracker.
    pub const STOP: i64 = 2;
    /// Offers a device.
    pub const PUT: i64 = 3;
    /// Asks for a device.
    pub const REQUEST: i64 = 4;
    /// Says who the connection belongs to.
    pub const UPDATE_INFO: i64 = 5;
    /// Asks for the state of queues and servers.
    pub const SUMMARY: i64 = 6;
    /// Asks for the match keys of this connection that are not taken yet.
    pub const GET_PENDING_MATCHKEYS: i64 = 7;
    /// The answer: done.
    pub const SUCCESS: i64 = 0;
    /// The answer: refused.
    pub const FAIL: i64 = -1;
}

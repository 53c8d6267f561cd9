use std::io;

use rpc_proto::OverLimit;
use rpc_proto::handshake::KeyError;
use rpc_transport::TransportError;

/// A server that cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The key has white space, so that no client could ask for it.
    #[error("no client could ask for the server's key")]
    Key(#[from] KeyError),
    /// The key is too long for a handshake.
    #[error("no client could be told the server's key")]
    LongKey(#[from] OverLimit),
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] TransportError),
    /// The socket that it listens on cannot be used.
    #[error("the listening socket cannot be used")]
    Socket(#[source] io::Error),
    /// The folder for work directories cannot be used.
    #[error("no work directories in {path}")]
    WorkDir {
        /// The folder.
        path: String,
        /// Why.
        source: io::Error,
    },
}

use std::io;

use rpc_transport::TransportError;

/// A server that cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The key is none that a client could ask for.
    #[error("the key {key:?} holds white space, and clients could never match it")]
    Key {
        /// The key.
        key: String,
    },
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

//! WebSockets without I/O: what comes in becomes a stream of bytes again, and a stream of bytes becomes
//! what goes out. Both twins move the bytes.
//!
//! The bytes of RPC travel in binary messages, whose bounds mean nothing. So no message is ever put
//! together: the payload of a frame is handed on as it comes, however long the frame is.

mod decoder;
mod inbound;
mod mask;
mod outbound;
#[cfg(test)]
mod tests;
mod upgrade;
mod violation;

pub(crate) use inbound::{Inbound, Next};
pub(crate) use outbound::Outbound;
pub(crate) use upgrade::Upgrade;
pub use upgrade::UpgradeError;
#[cfg(feature = "sync")]
pub(crate) use violation::Violation;

/// Which end of a connection is ours. A client masks what it sends, a server does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    #[cfg_attr(not(feature = "async"), allow(dead_code))]
    Server,
}

/// Most bytes of payload in a control frame.
const LONGEST_CONTROL: usize = 125;

/// A close without any trouble.
pub(crate) const NORMAL: u16 = 1000;

use std::fmt;

use crate::codes::{RPC_MAGIC, TRACKER_MAGIC};

/// The first bytes of a peer that speaks another protocol than the one that was asked for.
///
/// Prints them in hexadecimal, as text where they are text, and names the protocol when its first
/// bytes give it away. At most [`ForeignAnswer::KEPT`] bytes are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignAnswer(Vec<u8>);

impl ForeignAnswer {
    /// The most bytes that are kept of an answer.
    pub const KEPT: usize = 16;

    pub(crate) fn new(bytes: impl IntoIterator<Item = u8>) -> Self {
        Self(bytes.into_iter().take(Self::KEPT).collect())
    }

    /// What came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn protocol(&self) -> Option<&'static str> {
        let first: [u8; 4] = self.0.first_chunk().copied()?;
        match i32::from_le_bytes(first) {
            TRACKER_MAGIC => Some("this is a tracker"),
            RPC_MAGIC => Some("this is an RPC server or proxy"),
            _ if first == *b"HTTP" => Some("this is an HTTP server"),
            _ => None,
        }
    }
}

impl fmt::Display for ForeignAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")?;
        for byte in &self.0 {
            write!(f, " {byte:02x}")?;
        }
        if self.0.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            write!(f, " \"{}\"", self.0.escape_ascii())?;
        }
        match self.protocol() {
            Some(protocol) => write!(f, " ({protocol})"),
            None => Ok(()),
        }
    }
}

use std::fmt;

use crate::codes::PacketCode;
use crate::limits::OverLimit;

/// Bytes from a peer that do not follow the protocol.
///
/// Every variant but [`DecodeError::Argument`] names the offset at which the field starts, counted from
/// the first byte of the message that was being read (for a packet: from its length field).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message ends inside a field.
    #[error(
        "{field} at offset {offset} needs {needed} bytes, but only {available} are left in the message"
    )]
    Truncated {
        /// What was being read.
        field: &'static str,
        /// Where the field starts.
        offset: u64,
        /// Bytes that the field takes.
        needed: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// A length or count is larger than its limit; nothing was allocated for it.
    #[error("at offset {offset}: {over}")]
    OverLimit {
        /// Where the field starts.
        offset: u64,
        /// The field, what it held and what is allowed.
        over: OverLimit,
    },
    /// A field holds a value that the protocol does not allow there.
    #[error("{field} at offset {offset}: expected {expected}, found {found}")]
    Unexpected {
        /// What was being read.
        field: &'static str,
        /// Where the field starts.
        offset: u64,
        /// What the protocol allows there.
        expected: &'static str,
        /// What came, printed.
        found: String,
    },
    /// The message goes on after its last field.
    #[error("{field} ends at offset {offset}, but {extra} more bytes follow")]
    Trailing {
        /// The message.
        field: &'static str,
        /// Where its last field ends.
        offset: u64,
        /// Bytes behind it.
        extra: u64,
    },
    /// A text is not UTF-8.
    #[error("{field} at offset {offset} is not UTF-8")]
    NotUtf8 {
        /// What was being read.
        field: &'static str,
        /// Offset of the first byte that is not UTF-8.
        offset: u64,
    },
    /// A syscall does not take this argument. The packet itself is whole and well formed, so a server
    /// can answer with an exception and go on, as real ones do.
    #[error("argument #{index} of {syscall}: expected {expected}, found {found}")]
    Argument {
        /// The code of the packet.
        syscall: PacketCode,
        /// Which argument, from 0.
        index: usize,
        /// What the syscall takes there.
        expected: &'static str,
        /// What came, printed.
        found: String,
    },
}

impl DecodeError {
    /// The field that could not be read.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::Truncated { field, .. }
            | Self::Unexpected { field, .. }
            | Self::Trailing { field, .. }
            | Self::NotUtf8 { field, .. } => field,
            Self::OverLimit { over, .. } => over.field,
            Self::Argument { .. } => "argument",
        }
    }

    /// Where that is, but for [`DecodeError::Argument`].
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match *self {
            Self::Truncated { offset, .. }
            | Self::OverLimit { offset, .. }
            | Self::Unexpected { offset, .. }
            | Self::Trailing { offset, .. }
            | Self::NotUtf8 { offset, .. } => Some(offset),
            Self::Argument { .. } => None,
        }
    }

    pub(crate) fn unexpected(
        field: &'static str,
        offset: u64,
        expected: &'static str,
        found: impl fmt::Display,
    ) -> Self {
        Self::Unexpected {
            field,
            offset,
            expected,
            found: found.to_string(),
        }
    }
}

/// An error and its sources, as a program prints them.
#[cfg(test)]
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<_> = chain.map(ToString::to_string).collect();
    texts.join(": ")
}

//! How much a peer may make us take.

/// A length or count that is larger than its limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}, more than the limit of {limit}")]
pub struct OverLimit {
    /// What was being read or written.
    pub field: &'static str,
    /// What it holds.
    pub found: u64,
    /// The most that it may hold.
    pub limit: u64,
}

/// Checks `found` against `limit`.
pub(crate) fn within(field: &'static str, found: u64, limit: u64) -> Result<(), OverLimit> {
    if found <= limit {
        Ok(())
    } else {
        Err(OverLimit {
            field,
            found,
            limit,
        })
    }
}

/// The limits that a connection keeps, on what it reads and on what it writes.
///
/// The defaults suit a client of a device farm. A value is checked before memory is taken for it, and
/// what is over a limit is an error that names field, value and limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a frame that a tracker is sent; default 1 MiB, as the reference tracker's own limit.
    pub tracker_frame: u32,
    /// Bytes of a frame that a tracker answers with; default 16 MiB, enough for a summary of more than
    /// 200,000 servers. A tracker that announces more is not read any further.
    pub tracker_reply: u32,
    /// Bytes of a key in a handshake; default 4096.
    pub key: u32,
    /// Bytes of a packet that is held in memory whole; default 16 MiB. Bulk data (tensors, and text
    /// or bytes that are the result of a call) does not count: it goes past the buffer.
    pub packet: u64,
    /// Bytes of bulk data in one packet; default 64 GiB.
    pub payload: u64,
    /// Values in one sequence of packed arguments; default 4096.
    pub arguments: u32,
    /// Dimensions of a tensor; default 64.
    pub dimensions: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tracker_frame: 1 << 20,
            tracker_reply: 16 << 20,
            key: 4096,
            packet: 16 << 20,
            payload: 64 << 30,
            arguments: 4096,
            dimensions: 64,
        }
    }
}

impl Limits {
    /// Replaces [`Limits::tracker_frame`] (bytes).
    #[must_use]
    pub fn with_tracker_frame(mut self, bytes: u32) -> Self {
        self.tracker_frame = bytes;
        self
    }

    /// Replaces [`Limits::tracker_reply`] (bytes).
    #[must_use]
    pub fn with_tracker_reply(mut self, bytes: u32) -> Self {
        self.tracker_reply = bytes;
        self
    }

    /// Replaces [`Limits::key`] (bytes).
    #[must_use]
    pub fn with_key(mut self, bytes: u32) -> Self {
        self.key = bytes;
        self
    }

    /// Replaces [`Limits::packet`] (bytes).
    #[must_use]
    pub fn with_packet(mut self, bytes: u64) -> Self {
        self.packet = bytes;
        self
    }

    /// Replaces [`Limits::payload`] (bytes).
    #[must_use]
    pub fn with_payload(mut self, bytes: u64) -> Self {
        self.payload = bytes;
        self
    }

    /// Replaces [`Limits::arguments`] (values).
    #[must_use]
    pub fn with_arguments(mut self, count: u32) -> Self {
        self.arguments = count;
        self
    }

    /// Replaces [`Limits::dimensions`].
    #[must_use]
    pub fn with_dimensions(mut self, count: u32) -> Self {
        self.dimensions = count;
        self
    }
}

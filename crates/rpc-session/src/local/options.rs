/// What a client may take of a local session, and what it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalOptions {
    /// Bytes of memory in all: tensors that the client allocates or holds, and large text and bytes
    /// while a function is called with them; default 8 GiB. What functions take for themselves does not
    /// count, and neither do the up to 256 MiB with which a time evaluator empties the caches.
    pub memory: u64,
    /// Handles that a client may hold at once, and as many allocations; default 1,048,576.
    pub handles: usize,
    /// The longest packet that clients are asked to send when they copy tensors; default `None`, any.
    pub max_packet: Option<u32>,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            memory: 8 << 30,
            handles: 1 << 20,
            max_packet: None,
        }
    }
}

impl LocalOptions {
    /// Replaces [`LocalOptions::memory`] (bytes).
    ///
    /// ```
    /// use rpc_session::LocalOptions;
    ///
    /// // For a small board.
    /// let options = LocalOptions::default().with_memory(64 << 20).with_max_packet(1 << 20);
    /// assert_eq!(options.max_packet, Some(1_048_576));
    /// ```
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Replaces [`LocalOptions::handles`].
    #[must_use]
    pub fn with_handles(mut self, count: usize) -> Self {
        self.handles = count;
        self
    }

    /// Replaces [`LocalOptions::max_packet`] (bytes).
    #[must_use]
    pub fn with_max_packet(mut self, bytes: u32) -> Self {
        self.max_packet = Some(bytes);
        self
    }
}

use super::LONGEST_CONTROL;

/// What a peer did that is not in the protocol of WebSockets, or not in what RPC uses of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("expected a WebSocket frame without reserved bits, found {0:#04x} as its first byte")]
    ReservedBits(u8),
    #[error("expected a WebSocket frame of a known kind, found the code {0:#x}")]
    Opcode(u8),
    #[error("expected masked WebSocket frames from a client, found one without a mask")]
    Unmasked,
    #[error("expected WebSocket frames without a mask from a server, found a masked one")]
    Masked,
    #[error("expected at most 2^63 - 1 bytes in a WebSocket frame, found a length of {0}")]
    Length(u64),
    #[error("expected at most {LONGEST_CONTROL} bytes in a control frame, found a length of {0}")]
    LongControl(u64),
    #[error("expected a control frame in one piece, found a part of one")]
    FragmentedControl,
    #[error("expected no reason or a whole code in a close frame, found a single byte")]
    CloseReason,
    #[error("expected the begin of a message, found a continuation")]
    Continuation,
    #[error("expected the continuation of a message, found the begin of another")]
    Interrupted,
    #[error("expected binary messages, found a text message")]
    Text,
}

impl Violation {
    /// What a close frame says of it.
    pub(crate) fn code(self) -> u16 {
        const PROTOCOL_ERROR: u16 = 1002;
        const UNACCEPTABLE_DATA: u16 = 1003;
        match self {
            Self::Text => UNACCEPTABLE_DATA,
            _ => PROTOCOL_ERROR,
        }
    }
}

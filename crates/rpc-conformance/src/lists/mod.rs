//! Lists of cases that are expected to fail, or that fail now and then.
//!
//! One entry a line, with a reason; lines that are empty or begin with `#` say nothing:
//!
//! ```text
//! # ID[.CHECK] [until VERSION]: REASON
//! TRK-PUT-003: takes a port as text
//! TRK-REQUEST-002.order until 0.28: looks at the time of arrival alone
//! SRV-COPY-004[chunking=bytes]: a handshake has to come in one piece
//! ```

mod entry;
mod known;
mod write;

pub use entry::{List, ListError};
pub use known::Excuses;
pub use write::write_known_failures;

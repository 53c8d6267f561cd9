use std::fmt;

use rpc_proto::Device;
use rpc_transport::Chain;

/// Why a request was not done: what the client is told, as an exception.
///
/// Any error becomes one with `?`. The kind is a name like `ValueError`; a client
/// of the `ffi` dialect gets the message alone, as from the reference's servers.
///
/// ```
/// use rpc_session::Exception;
///
/// fn half(x: i64) -> Result<i64, Exception> {
///     match x % 2 {
///         0 => Ok(x / 2),
///         _ => Err(Exception::new("ValueError", format!("{x} is odd"))),
///     }
/// }
/// fn half_of(text: &str) -> Result<i64, Exception> {
///     half(text.parse()?)
/// }
/// assert_eq!(half_of("7").unwrap_err().to_string(), "ValueError: 7 is odd");
/// assert_eq!(half_of("x").unwrap_err().message(), "invalid digit found in string");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Exception {
    kind: String,
    message: String,
    traceback: String,
}

impl Exception {
    /// An exception of this kind.
    #[must_use]
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            traceback: String::new(),
        }
    }

    /// An exception of the usual kind, `RuntimeError`.
    #[must_use]
    pub fn runtime(message: impl Into<String>) -> Self {
        Self::new("RuntimeError", message)
    }

    /// There is no such device, and why: in words that clients of the reference know.
    #[must_use]
    pub fn no_device(device: Device, why: &str) -> Self {
        Self::runtime(match device.device_type.name() {
            Some(name) => format!("Device API {name} is not enabled: {why}"),
            None => format!("unknown device type {}: {why}", device.device_type.0),
        })
    }

    /// Where it was raised, a line for each function. It is for the log of the server; clients are not told.
    #[must_use]
    pub fn with_traceback(mut self, traceback: impl Into<String>) -> Self {
        self.traceback = traceback.into();
        self
    }

    /// Where it was raised; empty unless somebody said so.
    #[must_use]
    pub fn traceback(&self) -> &str {
        &self.traceback
    }

    /// The kind, for example `ValueError`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

// It is no `Error` itself, so that every error can become one.
impl<E: std::error::Error> From<E> for Exception {
    /// The error and its sources, in one line.
    fn from(error: E) -> Self {
        Self::runtime(Chain(&error).to_string())
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

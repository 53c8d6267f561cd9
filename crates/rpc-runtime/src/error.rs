//! Errors of the runtime.

use crate::abi::{ByteArray, ErrorCell};
use crate::library::symbols;
use crate::object::{Object, bytes_of};

/// What the runtime, or a function that it called, threw.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Error {
    /// The kind, for example `ValueError`.
    pub kind: String,
    /// What is wrong.
    pub message: String,
    /// Where in the runtime it was noticed: one line for each function, the innermost last.
    pub backtrace: String,
}

impl Error {
    /// An error of this kind.
    #[must_use]
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            backtrace: String::new(),
        }
    }

    /// Takes the error that a call on this thread has left.
    pub(crate) fn take() -> Self {
        let mut raised = std::ptr::null_mut();
        // SAFETY: `raised` is a place for a handle; what is put there is a reference of ours.
        let raised = unsafe {
            (symbols().take_error)(&mut raised);
            Object::from_raw(raised)
        };
        let Some(raised) = raised else {
            return Self::new("RuntimeError", "a call failed, and left no error");
        };
        // SAFETY: what was raised is an error, behind whose header stand three texts.
        let cell = unsafe { raised.cell::<ErrorCell>() };
        let text = |array: &ByteArray| {
            // SAFETY: they live as long as the error does, which is until the end of this function.
            String::from_utf8_lossy(unsafe { bytes_of(array) }).into_owned()
        };
        Self {
            kind: text(&cell.kind),
            message: text(&cell.message),
            backtrace: text(&cell.backtrace),
        }
    }

    /// Leaves the error for whoever called this thread.
    pub(crate) fn leave(&self) {
        let texts = [&self.kind, &self.message, &self.backtrace];
        let [kind, message, backtrace] = texts.map(|text| ByteArray::of(text.as_bytes()));
        let mut created = std::ptr::null_mut();
        // SAFETY: the texts are copied during the call; the reference that is given stays ours, and setting it
        // takes one of its own.
        unsafe {
            if (symbols().new_error)(&kind, &message, &backtrace, &mut created) == 0 {
                (symbols().set_error)(created);
                drop(Object::from_raw(created));
            }
        }
    }
}

//! How packed values are laid out. Each dialect has one module, and nothing above this folder
//! knows more of it than its name.

mod ffi;
mod fields;
mod legacy;
mod result;

use crate::wire::Reader;
use crate::{Bulk, DecodeError, HandleKind, Limits, Returned, Value, Values};

/// How a peer lays out packed values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// TVM since 0.22: type indices of tvm-ffi, each before its value.
    #[default]
    Ffi,
    /// TVM up to 0.20: the type codes of all values, then the values.
    Legacy,
}

/// Where a sequence of values stands: the reference writes text and bytes differently in each place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The arguments of a session's constructor.
    Init,
    /// The arguments of a call or of a syscall.
    Call,
    /// A result, or the text of an exception.
    Return,
}

/// Text or bytes of any size at the end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Bytes of the packet before the payload.
    pub(crate) head: u64,
    /// The payload.
    pub(crate) bulk: Bulk,
}

impl Dialect {
    /// Writes a sequence; with `bulk`, the head of one more value stands last, and the caller sends its
    /// bytes.
    pub(crate) fn put_values(
        self,
        place: Place,
        values: &[Value<'_>],
        bulk: Option<Bulk>,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::Ffi => ffi::put_values(place, values, bulk, out),
            Self::Legacy => legacy::put_values(values, bulk, out),
        }
    }

    /// Reads a sequence.
    pub(crate) fn values<'a>(
        self,
        reader: &mut Reader<'a>,
        limits: Limits,
    ) -> Result<Values<'a>, DecodeError> {
        match self {
            Self::Ffi => ffi::values(reader, limits),
            Self::Legacy => legacy::values(reader, limits),
        }
    }

    /// Reads the text of an exception. What is not UTF-8 in it is replaced.
    pub(crate) fn exception_text(
        self,
        reader: &mut Reader<'_>,
        limits: Limits,
    ) -> Result<String, DecodeError> {
        match self {
            Self::Ffi => ffi::exception_text(reader, limits),
            Self::Legacy => legacy::exception_text(reader, limits),
        }
    }

    /// The name of a type index, as the reference has it, for people.
    #[must_use]
    pub fn type_name(self, index: i64) -> Option<&'static str> {
        match self {
            Self::Ffi => ffi::type_name(index),
            Self::Legacy => legacy::type_name(index),
        }
    }

    /// Writes what a call gave back.
    pub(crate) fn put_returned(self, returned: &Returned<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Ffi => ffi::put_returned(returned, out),
            Self::Legacy => legacy::put_returned(returned, out),
        }
    }

    /// Writes a result of text or bytes, up to the bytes themselves.
    pub(crate) fn put_bulk_return(self, bulk: Bulk, out: &mut Vec<u8>) {
        match self {
            Self::Ffi => ffi::put_bulk_return(bulk, out),
            Self::Legacy => legacy::put_bulk_return(bulk, out),
        }
    }

    /// What a call gave back, from the sequence that holds it at `offset`.
    pub(crate) fn returned<'a>(
        self,
        values: Values<'a>,
        offset: u64,
    ) -> Result<Returned<'a>, DecodeError> {
        match self {
            Self::Ffi => ffi::returned(values, offset),
            Self::Legacy => legacy::returned(values, offset),
        }
    }

    /// Looks for text or bytes of any size in the first bytes of a return packet.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when more bytes are needed to tell.
    pub(crate) fn bulk_return(self, packet: &[u8]) -> Result<Option<Tail>, DecodeError> {
        match self {
            Self::Ffi => ffi::bulk_return(packet),
            Self::Legacy => legacy::bulk_return(packet),
        }
    }

    /// Looks for text or bytes of any size in the last argument of a call packet, of which the first
    /// bytes are there.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when more bytes are needed to tell; what else is wrong will be wrong
    /// again when the packet is read.
    pub(crate) fn bulk_argument(
        self,
        packet: &[u8],
        limits: Limits,
    ) -> Result<Option<Tail>, DecodeError> {
        match self {
            Self::Ffi => ffi::bulk_argument(packet, limits),
            Self::Legacy => legacy::bulk_argument(packet, limits),
        }
    }

    /// Reads all of a sequence but its last value, whose head [`Dialect::bulk_argument`] found behind
    /// them.
    pub(crate) fn values_before_bulk<'a>(
        self,
        reader: &mut Reader<'a>,
        limits: Limits,
    ) -> Result<Values<'a>, DecodeError> {
        match self {
            Self::Ffi => ffi::values_before_bulk(reader, limits),
            Self::Legacy => legacy::values_before_bulk(reader, limits),
        }
    }

    /// The number by which a packet that frees a handle says what it stands for, where the dialect says
    /// so.
    pub(crate) fn code_of_handle(self, kind: Option<HandleKind>) -> Option<i32> {
        match self {
            Self::Ffi => None,
            Self::Legacy => Some(legacy::code_of_handle(kind)),
        }
    }

    /// What such a number means.
    pub(crate) fn handle_of_code(self, code: i64) -> Option<HandleKind> {
        match self {
            Self::Ffi => None,
            Self::Legacy => legacy::handle_of_code(code),
        }
    }

    /// The shortest head of a return packet of text or bytes, in each dialect.
    pub(crate) const BULK_RETURN_HEAD: u64 = 40;
}

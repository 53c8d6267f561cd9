//! How packed values are laid out. Each dialect has one module, and nothing above this folder
//! knows more of it than its name.

mod ffi;

use crate::wire::Reader;
use crate::{BulkKind, DecodeError, Limits, Returned, Value, Values};

/// How a peer lays out packed values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// TVM since 0.22: type indices of tvm-ffi, each before its value.
    #[default]
    Ffi,
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

/// Text or bytes of any size at the end of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BulkReturn {
    /// What the payload is.
    pub(crate) kind: BulkKind,
    /// Bytes of the packet before the payload.
    pub(crate) head: u64,
    /// Bytes of the payload.
    pub(crate) payload: u64,
}

impl Dialect {
    /// Writes a sequence; with `payload`, the head of one more bytes value of that length stands
    /// last, and the caller sends its bytes.
    pub(crate) fn put_values(
        self,
        place: Place,
        values: &[Value<'_>],
        payload: Option<u64>,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::Ffi => ffi::put_values(place, values, payload, out),
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
        }
    }

    /// Writes what a call gave back.
    pub(crate) fn put_returned(self, returned: &Returned<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Ffi => ffi::put_returned(returned, out),
        }
    }

    /// Writes a result of text or bytes, up to the bytes themselves.
    pub(crate) fn put_bulk_return(self, kind: BulkKind, nbytes: u64, out: &mut Vec<u8>) {
        match self {
            Self::Ffi => ffi::put_bulk_return(kind, nbytes, out),
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
        }
    }

    /// Looks for text or bytes of any size in the first bytes of a return packet.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when more bytes are needed to tell.
    pub(crate) fn bulk_return(self, packet: &[u8]) -> Result<Option<BulkReturn>, DecodeError> {
        match self {
            Self::Ffi => ffi::bulk_return(packet),
        }
    }

    /// The shortest head of a return packet of text or bytes.
    pub(crate) const BULK_RETURN_HEAD: u64 = 40;
}

//! Little-endian fields: a cursor that reads them, and appends that write them.

use crate::DecodeError;
use crate::limits::within;

/// A cursor over one message. No read of a count goes without naming its limit; a length is bounded by
/// the message, from which the bytes are borrowed.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: u64,
}

macro_rules! read_int {
    ($($name:ident: $int:ty),* $(,)?) => {$(
        pub(crate) fn $name(&mut self, field: &'static str) -> Result<$int, DecodeError> {
            let mut le = [0; size_of::<$int>()];
            le.copy_from_slice(self.bytes(field, size_of::<$int>() as u64)?);
            Ok(<$int>::from_le_bytes(le))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// `offset` is where `bytes` starts in its message, for errors.
    pub(crate) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self {
            rest: bytes,
            offset,
        }
    }

    read_int! { u8: u8, u16: u16, i32: i32, u64: u64, i64: i64, f64: f64 }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.rest.len() as u64
    }

    pub(crate) fn bytes(&mut self, field: &'static str, len: u64) -> Result<&'a [u8], DecodeError> {
        let split = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest.split_at_checked(len));
        let Some((head, rest)) = split else {
            return Err(DecodeError::Truncated {
                field,
                offset: self.offset,
                needed: len,
                available: self.remaining(),
            });
        };
        self.rest = rest;
        self.offset += len;
        Ok(head)
    }

    /// A count that is a 32-bit signed integer on the wire.
    pub(crate) fn count(&mut self, field: &'static str, limit: u32) -> Result<u32, DecodeError> {
        let offset = self.offset;
        let count = self.i32(field)?;
        let count = u32::try_from(count)
            .map_err(|_| DecodeError::unexpected(field, offset, "a count of at least 0", count))?;
        within(field, count.into(), limit.into())
            .map_err(|over| DecodeError::OverLimit { offset, over })?;
        Ok(count)
    }

    /// Says that the message must end here.
    pub(crate) fn finish(self, field: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing {
                field,
                offset: self.offset,
                extra: self.remaining(),
            })
        }
    }
}

/// Appends fields to a message.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }
    fn put_i32(&mut self, value: i32) {
        self.put(&value.to_le_bytes());
    }
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }
    fn put_f64(&mut self, value: f64) {
        self.put(&value.to_le_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

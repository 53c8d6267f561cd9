//! Little-endian fields: a cursor that reads them, and appends that write them.

use std::borrow::Cow;

use crate::DecodeError;
use crate::explain::{Field, FieldValue, Log};
use crate::limits::within;

/// A cursor over one message. No read of a count goes without naming its limit; a length is bounded by
/// the message, from which the bytes are borrowed.
///
/// It notes what it reads if somebody [wants to know](Reader::noting).
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: u64,
    log: Option<Box<Log<'a>>>,
}

macro_rules! read_number {
    ($($name:ident: $number:ty => $value:ident),* $(,)?) => {$(
        pub(crate) fn $name(&mut self, field: &'static str) -> Result<$number, DecodeError> {
            let mut le = [0; size_of::<$number>()];
            le.copy_from_slice(self.take(field, size_of::<$number>() as u64)?);
            let number = <$number>::from_le_bytes(le);
            self.note(field, le.len() as u64, || FieldValue::$value(number.into()));
            Ok(number)
        }
    )*};
}

impl<'a> Reader<'a> {
    /// `offset` is where `bytes` starts in its message, for errors.
    pub(crate) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self {
            rest: bytes,
            offset,
            log: None,
        }
    }

    /// A reader of a message's first bytes that notes the fields.
    pub(crate) fn noting(bytes: &'a [u8]) -> Self {
        Self {
            log: Some(Box::default()),
            ..Self::new(bytes, 0)
        }
    }

    /// The fields that were read.
    pub(crate) fn into_fields(self) -> Vec<Field<'a>> {
        self.log.map(|log| log.fields).unwrap_or_default()
    }

    read_number! {
        u8: u8 => Unsigned,
        u16: u16 => Unsigned,
        i32: i32 => Int,
        u64: u64 => Unsigned,
        i64: i64 => Int,
        f64: f64 => Float,
        address: u64 => Address,
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.rest.len() as u64
    }

    pub(crate) fn bytes(&mut self, field: &'static str, len: u64) -> Result<&'a [u8], DecodeError> {
        let bytes = self.take(field, len)?;
        self.note(field, len, || FieldValue::Bytes(bytes));
        Ok(bytes)
    }

    /// A text.
    pub(crate) fn text(&mut self, field: &'static str, len: u64) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let text = std::str::from_utf8(self.bytes(field, len)?);
        let text = text.map_err(|error| DecodeError::NotUtf8 {
            field,
            offset: start + error.valid_up_to() as u64,
        })?;
        self.note_text(Cow::Borrowed(text));
        Ok(text)
    }

    /// A text of which what is not UTF-8 is replaced.
    pub(crate) fn lossy_text(
        &mut self,
        field: &'static str,
        len: u64,
    ) -> Result<Cow<'a, str>, DecodeError> {
        let text = String::from_utf8_lossy(self.bytes(field, len)?);
        self.note_text(text.clone());
        Ok(text)
    }

    fn take(&mut self, field: &'static str, len: u64) -> Result<&'a [u8], DecodeError> {
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

    /// Notes the field that was read last.
    fn note(&mut self, name: &'static str, len: u64, value: impl FnOnce() -> FieldValue<'a>) {
        if let Some(log) = &mut self.log {
            log.fields.push(Field {
                name,
                item: log.item,
                offset: self.offset - len,
                len,
                value: value(),
                meaning: None,
            });
        }
    }

    /// Notes that the bytes that were read last are a text.
    fn note_text(&mut self, text: Cow<'a, str>) {
        if let Some(field) = self.log.as_mut().and_then(|log| log.fields.last_mut()) {
            field.value = FieldValue::Text(text);
        }
    }

    /// Notes what the field means that was read last.
    pub(crate) fn means<M: Into<Cow<'static, str>>>(
        &mut self,
        meaning: impl FnOnce() -> Option<M>,
    ) {
        if let Some(field) = self.log.as_mut().and_then(|log| log.fields.last_mut()) {
            field.meaning = meaning().map(Into::into);
        }
    }

    /// Notes to which value of a sequence the next fields belong.
    pub(crate) fn item(&mut self, item: Option<u32>) {
        if let Some(log) = &mut self.log {
            log.item = item;
        }
    }

    /// Says that the message must end here.
    pub(crate) fn finish(&self, field: &'static str) -> Result<(), DecodeError> {
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

//! The arguments of a syscall, one after the other.

use std::borrow::Cow;

use crate::codes::PacketCode;
use crate::{
    DataType, DecodeError, Device, DeviceAttr, Dialect, HandleKind, TensorView, Value, Values,
    ValuesIter,
};

pub(super) struct Args<'a> {
    syscall: PacketCode,
    values: ValuesIter<'a>,
    taken: usize,
}

impl<'a> Args<'a> {
    pub(super) fn new(syscall: PacketCode, values: Values<'a>) -> Self {
        Self {
            syscall,
            values: values.into_iter(),
            taken: 0,
        }
    }

    /// A text, also as bytes: real servers take both.
    pub(super) fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let value = self.next();
        self.as_text(value, "a text")
    }

    pub(super) fn text_or_none(&mut self) -> Result<Option<Cow<'a, str>>, DecodeError> {
        match self.next() {
            Some(Value::None) => Ok(None),
            value => self.as_text(value, "a text or none").map(Some),
        }
    }

    pub(super) fn pointer(&mut self) -> Result<u64, DecodeError> {
        match self.next() {
            Some(Value::Pointer(address)) => Ok(address),
            Some(Value::None) => Ok(0),
            other => Err(self.wrong("a pointer", other)),
        }
    }

    pub(super) fn size(&mut self) -> Result<u64, DecodeError> {
        let size = self.int()?;
        u64::try_from(size).map_err(|_| self.error("an integer of at least 0", size.to_string()))
    }

    pub(super) fn attr(&mut self) -> Result<DeviceAttr, DecodeError> {
        let number = self.int()?;
        i32::try_from(number)
            .map(DeviceAttr)
            .map_err(|_| self.error("the number of an attribute", number.to_string()))
    }

    pub(super) fn device(&mut self) -> Result<Device, DecodeError> {
        match self.next() {
            Some(Value::Device(device)) => Ok(device),
            other => Err(self.wrong("a device", other)),
        }
    }

    /// A data type, also as text: real servers take both.
    pub(super) fn data_type(&mut self) -> Result<DataType, DecodeError> {
        let expected = "a data type";
        match self.next() {
            Some(Value::DataType(dtype)) => Ok(dtype),
            Some(Value::Str(text)) => text
                .parse()
                .map_err(|_| self.error(expected, "a text that is none".to_owned())),
            other => Err(self.wrong(expected, other)),
        }
    }

    /// What a handle stands for, if the dialect says so.
    pub(super) fn handle_kind(
        &mut self,
        dialect: Dialect,
    ) -> Result<Option<HandleKind>, DecodeError> {
        // Else there is a number even for what is unknown.
        if dialect.code_of_handle(None).is_none() {
            return Ok(None);
        }
        let code = self.int()?;
        let kind = dialect.handle_of_code(code);
        let expected = "the type code of a function, module, tensor or object";
        kind.map(Some)
            .ok_or_else(|| self.error(expected, code.to_string()))
    }

    pub(super) fn tensor(&mut self) -> Result<TensorView, DecodeError> {
        match self.next() {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            other => Err(self.wrong("a tensor", other)),
        }
    }

    fn int(&mut self) -> Result<i64, DecodeError> {
        match self.next() {
            Some(Value::Int(value)) => Ok(value),
            other => Err(self.wrong("an integer", other)),
        }
    }

    fn next(&mut self) -> Option<Value<'a>> {
        self.taken += 1;
        self.values.next()
    }

    fn as_text(
        &self,
        value: Option<Value<'a>>,
        expected: &'static str,
    ) -> Result<Cow<'a, str>, DecodeError> {
        let text = match value {
            Some(Value::Str(text)) => return Ok(text),
            Some(Value::Bytes(Cow::Borrowed(bytes))) => {
                std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
            }
            Some(Value::Bytes(Cow::Owned(bytes))) => String::from_utf8(bytes).ok().map(Cow::Owned),
            other => return Err(self.wrong(expected, other)),
        };
        text.ok_or_else(|| self.error(expected, "bytes that are not UTF-8".to_owned()))
    }

    /// The argument that was taken last is of the wrong kind.
    fn wrong(&self, expected: &'static str, found: Option<Value<'_>>) -> DecodeError {
        let found = found.map_or("no argument", |value| value.kind());
        self.error(expected, found.to_owned())
    }

    fn error(&self, expected: &'static str, found: String) -> DecodeError {
        DecodeError::Argument {
            syscall: self.syscall,
            index: self.taken - 1,
            expected,
            found,
        }
    }
}

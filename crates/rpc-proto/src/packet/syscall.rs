//! The thirteen fixed functions of a server.

use std::borrow::Cow;

use crate::codes::PacketCode;
use crate::dialect::Place;
use crate::{DataType, DecodeError, Device, DeviceAttr, Dialect, TensorView, Value, Values};

/// What a handle stands for. The `ffi` dialect does not send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HandleKind {
    /// A function.
    Function,
    /// A module.
    Module,
    /// A tensor that came back from a call.
    Tensor,
    /// Another object.
    Object,
}

/// One of the fixed functions of a server, with its arguments.
///
/// Each is answered by a return packet of one value (nothing, unless it says otherwise here) or by an
/// exception.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Syscall<'a> {
    /// A pointer: the handle of a global function, or null when there is none of that name.
    GetGlobalFunc {
        /// The name.
        name: Cow<'a, str>,
    },
    /// Gives up a handle.
    FreeHandle {
        /// The handle.
        handle: u64,
        /// What it stands for, where the dialect says so.
        kind: Option<HandleKind>,
    },
    /// Makes a device current.
    SetDevice {
        /// The device.
        device: Device,
    },
    /// Nothing, an integer or a text.
    GetAttr {
        /// The device.
        device: Device,
        /// The question.
        attr: DeviceAttr,
    },
    /// A pointer to fresh memory.
    AllocData {
        /// The device.
        device: Device,
        /// Bytes.
        nbytes: u64,
        /// Alignment in bytes.
        alignment: u64,
        /// A hint of what will be stored.
        dtype: DataType,
    },
    /// Frees memory.
    FreeData {
        /// The device.
        device: Device,
        /// The memory.
        data: u64,
    },
    /// Waits until a stream is idle.
    StreamSync {
        /// The device.
        device: Device,
        /// The stream; 0 is the default one.
        stream: u64,
    },
    /// Copies all of a tensor into another of the same size.
    CopyAmong {
        /// The source.
        from: TensorView,
        /// The destination.
        to: TensorView,
        /// The stream; 0 is the default one.
        stream: u64,
    },
    /// A pointer to fresh memory for a tensor.
    AllocDataWithScope {
        /// The tensor; its data pointer means nothing.
        tensor: TensorView,
        /// The memory scope, for example `global`.
        scope: Option<Cow<'a, str>>,
    },
    /// A pointer: the new stream.
    CreateStream {
        /// The device.
        device: Device,
    },
    /// Frees a stream.
    FreeStream {
        /// The device.
        device: Device,
        /// The stream.
        stream: u64,
    },
    /// Makes a stream current.
    SetStream {
        /// The device.
        device: Device,
        /// The stream.
        stream: u64,
    },
    /// A pointer: the current stream.
    GetCurrentStream {
        /// The device.
        device: Device,
    },
}

impl<'a> Syscall<'a> {
    /// The code of its packet.
    #[must_use]
    pub fn code(&self) -> PacketCode {
        match self {
            Self::GetGlobalFunc { .. } => PacketCode::GET_GLOBAL_FUNC,
            Self::FreeHandle { .. } => PacketCode::FREE_HANDLE,
            Self::SetDevice { .. } => PacketCode::DEV_SET_DEVICE,
            Self::GetAttr { .. } => PacketCode::DEV_GET_ATTR,
            Self::AllocData { .. } => PacketCode::DEV_ALLOC_DATA,
            Self::FreeData { .. } => PacketCode::DEV_FREE_DATA,
            Self::StreamSync { .. } => PacketCode::DEV_STREAM_SYNC,
            Self::CopyAmong { .. } => PacketCode::COPY_AMONG_REMOTE,
            Self::AllocDataWithScope { .. } => PacketCode::DEV_ALLOC_DATA_WITH_SCOPE,
            Self::CreateStream { .. } => PacketCode::DEV_CREATE_STREAM,
            Self::FreeStream { .. } => PacketCode::DEV_FREE_STREAM,
            Self::SetStream { .. } => PacketCode::DEV_SET_STREAM,
            Self::GetCurrentStream { .. } => PacketCode::DEV_GET_CURRENT_STREAM,
        }
    }

    pub(super) fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let mut put = |values: &[Value<'_>]| dialect.put_values(Place::Call, values, None, out);
        match self {
            Self::GetGlobalFunc { name } => put(&[Value::Str(Cow::Borrowed(name))]),
            Self::FreeHandle { handle, .. } => put(&[Value::Pointer(*handle)]),
            Self::SetDevice { device }
            | Self::CreateStream { device }
            | Self::GetCurrentStream { device } => put(&[Value::Device(*device)]),
            Self::GetAttr { device, attr } => put(&[Value::Device(*device), attr.0.into()]),
            Self::AllocData {
                device,
                nbytes,
                alignment,
                dtype,
            } => put(&[
                Value::Device(*device),
                Value::Int(nbytes.cast_signed()),
                Value::Int(alignment.cast_signed()),
                Value::DataType(*dtype),
            ]),
            Self::FreeData {
                device,
                data: pointer,
            }
            | Self::StreamSync {
                device,
                stream: pointer,
            }
            | Self::FreeStream {
                device,
                stream: pointer,
            }
            | Self::SetStream {
                device,
                stream: pointer,
            } => {
                put(&[Value::Device(*device), Value::Pointer(*pointer)]);
            }
            Self::CopyAmong { from, to, stream } => put(&[
                Value::Tensor(from.clone()),
                Value::Tensor(to.clone()),
                Value::Pointer(*stream),
            ]),
            Self::AllocDataWithScope { tensor, scope } => put(&[
                Value::Tensor(tensor.clone()),
                scope.as_deref().map_or(Value::None, Value::from),
            ]),
        }
    }

    /// Reads the arguments of the syscall `code`, which start at `offset`. Further arguments are
    /// ignored, as real servers do.
    pub(super) fn from_values(
        code: PacketCode,
        values: Values<'a>,
        offset: u64,
    ) -> Result<Self, DecodeError> {
        let mut args = Args {
            values: values.into_iter(),
            offset,
        };
        match code {
            PacketCode::GET_GLOBAL_FUNC => args.text().map(|name| Self::GetGlobalFunc { name }),
            PacketCode::FREE_HANDLE => args
                .pointer()
                .map(|handle| Self::FreeHandle { handle, kind: None }),
            PacketCode::DEV_SET_DEVICE => args.device().map(|device| Self::SetDevice { device }),
            PacketCode::DEV_GET_ATTR => args.get_attr(),
            PacketCode::DEV_ALLOC_DATA => args.alloc_data(),
            PacketCode::DEV_FREE_DATA => args
                .device_and_pointer()
                .map(|(device, data)| Self::FreeData { device, data }),
            PacketCode::DEV_STREAM_SYNC => args
                .device_and_pointer()
                .map(|(device, stream)| Self::StreamSync { device, stream }),
            PacketCode::COPY_AMONG_REMOTE => args.copy_among(),
            PacketCode::DEV_ALLOC_DATA_WITH_SCOPE => args.alloc_data_with_scope(),
            PacketCode::DEV_CREATE_STREAM => {
                args.device().map(|device| Self::CreateStream { device })
            }
            PacketCode::DEV_FREE_STREAM => args
                .device_and_pointer()
                .map(|(device, stream)| Self::FreeStream { device, stream }),
            PacketCode::DEV_SET_STREAM => args
                .device_and_pointer()
                .map(|(device, stream)| Self::SetStream { device, stream }),
            PacketCode::DEV_GET_CURRENT_STREAM => args
                .device()
                .map(|device| Self::GetCurrentStream { device }),
            _ => Err(DecodeError::unexpected("packet code", 8, "a syscall", code)),
        }
    }
}

/// The arguments of a syscall, taken one after the other.
struct Args<'a> {
    values: <Values<'a> as IntoIterator>::IntoIter,
    offset: u64,
}

impl<'a> Args<'a> {
    fn wrong(&self, expected: &'static str, found: Option<Value<'_>>) -> DecodeError {
        let found = found.map_or("no argument", |value| value.kind());
        DecodeError::unexpected("argument of a syscall", self.offset, expected, found)
    }

    fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        match self.values.next() {
            Some(Value::Str(text)) => Ok(text),
            other => Err(self.wrong("a text", other)),
        }
    }

    fn pointer(&mut self) -> Result<u64, DecodeError> {
        match self.values.next() {
            Some(Value::Pointer(address)) => Ok(address),
            Some(Value::None) => Ok(0),
            other => Err(self.wrong("a pointer", other)),
        }
    }

    fn int(&mut self) -> Result<i64, DecodeError> {
        match self.values.next() {
            Some(Value::Int(value)) => Ok(value),
            other => Err(self.wrong("an integer", other)),
        }
    }

    fn size(&mut self) -> Result<u64, DecodeError> {
        let size = self.int()?;
        u64::try_from(size).map_err(|_| {
            let expected = "an integer of at least 0";
            DecodeError::unexpected("argument of a syscall", self.offset, expected, size)
        })
    }

    fn device(&mut self) -> Result<Device, DecodeError> {
        match self.values.next() {
            Some(Value::Device(device)) => Ok(device),
            other => Err(self.wrong("a device", other)),
        }
    }

    fn tensor(&mut self) -> Result<TensorView, DecodeError> {
        match self.values.next() {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            other => Err(self.wrong("a tensor", other)),
        }
    }

    fn device_and_pointer(&mut self) -> Result<(Device, u64), DecodeError> {
        Ok((self.device()?, self.pointer()?))
    }

    fn get_attr(&mut self) -> Result<Syscall<'a>, DecodeError> {
        let device = self.device()?;
        let number = self.int()?;
        let attr = i32::try_from(number).map(DeviceAttr).map_err(|_| {
            let expected = "the number of an attribute";
            DecodeError::unexpected("argument of a syscall", self.offset, expected, number)
        })?;
        Ok(Syscall::GetAttr { device, attr })
    }

    fn alloc_data(&mut self) -> Result<Syscall<'a>, DecodeError> {
        let device = self.device()?;
        let nbytes = self.size()?;
        let alignment = self.size()?;
        match self.values.next() {
            Some(Value::DataType(dtype)) => Ok(Syscall::AllocData {
                device,
                nbytes,
                alignment,
                dtype,
            }),
            other => Err(self.wrong("a data type", other)),
        }
    }

    fn copy_among(&mut self) -> Result<Syscall<'a>, DecodeError> {
        Ok(Syscall::CopyAmong {
            from: self.tensor()?,
            to: self.tensor()?,
            stream: self.pointer()?,
        })
    }

    fn alloc_data_with_scope(&mut self) -> Result<Syscall<'a>, DecodeError> {
        let tensor = self.tensor()?;
        let scope = match self.values.next() {
            Some(Value::Str(scope)) => Some(scope),
            Some(Value::None) => None,
            other => return Err(self.wrong("a memory scope or none", other)),
        };
        Ok(Syscall::AllocDataWithScope { tensor, scope })
    }
}

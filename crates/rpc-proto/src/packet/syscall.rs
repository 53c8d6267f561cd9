//! The thirteen fixed functions of a server.

use std::borrow::Cow;

use super::args::Args;
use crate::codes::PacketCode;
use crate::dialect::Place;
use crate::{DataType, DecodeError, Device, DeviceAttr, Dialect, TensorView, Value, Values};

/// What a handle stands for. Only the `legacy` dialect sends it.
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
        /// What it stands for, where the dialect says so. There, a handle of no kind is sent as an object.
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

impl PacketCode {
    /// What the arguments of a syscall are, in their order; nothing for other codes.
    #[must_use]
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::GET_GLOBAL_FUNC => &["name"],
            Self::FREE_HANDLE => &["handle", "kind"],
            Self::DEV_SET_DEVICE | Self::DEV_CREATE_STREAM | Self::DEV_GET_CURRENT_STREAM => {
                &["device"]
            }
            Self::DEV_GET_ATTR => &["device", "attribute"],
            Self::DEV_ALLOC_DATA => &["device", "bytes", "alignment", "data type"],
            Self::DEV_FREE_DATA => &["device", "data"],
            Self::DEV_STREAM_SYNC | Self::DEV_FREE_STREAM | Self::DEV_SET_STREAM => {
                &["device", "stream"]
            }
            Self::COPY_AMONG_REMOTE => &["from", "to", "stream"],
            Self::DEV_ALLOC_DATA_WITH_SCOPE => &["tensor", "scope"],
            _ => &[],
        }
    }
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

    /// The same syscall, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Syscall<'static> {
        use Syscall as S;
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::GetGlobalFunc { name } => S::GetGlobalFunc { name: owned(name) },
            Self::FreeHandle { handle, kind } => S::FreeHandle { handle, kind },
            Self::SetDevice { device } => S::SetDevice { device },
            Self::GetAttr { device, attr } => S::GetAttr { device, attr },
            Self::AllocData {
                device,
                nbytes,
                alignment,
                dtype,
            } => S::AllocData {
                device,
                nbytes,
                alignment,
                dtype,
            },
            Self::FreeData { device, data } => S::FreeData { device, data },
            Self::StreamSync { device, stream } => S::StreamSync { device, stream },
            Self::CopyAmong { from, to, stream } => S::CopyAmong { from, to, stream },
            Self::AllocDataWithScope { tensor, scope } => S::AllocDataWithScope {
                tensor,
                scope: scope.map(owned),
            },
            Self::CreateStream { device } => S::CreateStream { device },
            Self::FreeStream { device, stream } => S::FreeStream { device, stream },
            Self::SetStream { device, stream } => S::SetStream { device, stream },
            Self::GetCurrentStream { device } => S::GetCurrentStream { device },
        }
    }

    pub(super) fn put(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let mut put = |values: &[Value<'_>]| dialect.put_values(Place::Call, values, None, out);
        match self {
            Self::GetGlobalFunc { name } => put(&[Value::Str(Cow::Borrowed(name))]),
            Self::FreeHandle { handle, kind } => match dialect.code_of_handle(*kind) {
                None => put(&[Value::Pointer(*handle)]),
                Some(code) => put(&[Value::Pointer(*handle), code.into()]),
            },
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

    /// Reads the arguments of the syscall `code`. Further arguments are ignored, as real servers do.
    pub(super) fn from_values(
        code: PacketCode,
        values: Values<'a>,
        dialect: Dialect,
    ) -> Result<Self, DecodeError> {
        let mut args = Args::new(code, values);
        // The fields of each are read in the order in which they stand.
        Ok(match code {
            PacketCode::GET_GLOBAL_FUNC => Self::GetGlobalFunc { name: args.text()? },
            PacketCode::FREE_HANDLE => Self::FreeHandle {
                handle: args.pointer()?,
                kind: args.handle_kind(dialect)?,
            },
            PacketCode::DEV_SET_DEVICE => Self::SetDevice {
                device: args.device()?,
            },
            PacketCode::DEV_GET_ATTR => Self::GetAttr {
                device: args.device()?,
                attr: args.attr()?,
            },
            PacketCode::DEV_ALLOC_DATA => Self::AllocData {
                device: args.device()?,
                nbytes: args.size()?,
                alignment: args.size()?,
                dtype: args.data_type()?,
            },
            PacketCode::DEV_FREE_DATA => Self::FreeData {
                device: args.device()?,
                data: args.pointer()?,
            },
            PacketCode::DEV_STREAM_SYNC => Self::StreamSync {
                device: args.device()?,
                stream: args.pointer()?,
            },
            PacketCode::COPY_AMONG_REMOTE => Self::CopyAmong {
                from: args.tensor()?,
                to: args.tensor()?,
                stream: args.pointer()?,
            },
            PacketCode::DEV_ALLOC_DATA_WITH_SCOPE => Self::AllocDataWithScope {
                tensor: args.tensor()?,
                scope: args.text_or_none()?,
            },
            PacketCode::DEV_CREATE_STREAM => Self::CreateStream {
                device: args.device()?,
            },
            PacketCode::DEV_FREE_STREAM => Self::FreeStream {
                device: args.device()?,
                stream: args.pointer()?,
            },
            PacketCode::DEV_SET_STREAM => Self::SetStream {
                device: args.device()?,
                stream: args.pointer()?,
            },
            PacketCode::DEV_GET_CURRENT_STREAM => Self::GetCurrentStream {
                device: args.device()?,
            },
            _ => return Err(DecodeError::unexpected("packet code", 8, "a syscall", code)),
        })
    }
}

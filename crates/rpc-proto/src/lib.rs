//! Apache TVM's RPC protocol: every number and byte layout, and the state machines of its
//! connections. No sockets, no threads, no clocks.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`codes`] | magic numbers and codes |
//! | [`tracker`] | what a client or a server says to a tracker |
//! | [`handshake`] | how a connection to a server begins |
//! | [`packet`] | the packets of a session, and where each ends |
//! | [`endpoint`] | the two ends of a session |
//! | [`explain`] | what the bytes of a message say, field by field |
//!
//! Values ([`Value`], [`Returned`], [`TensorView`], [`Device`], [`DataType`]) are laid out by a
//! [`Dialect`]; [`Limits`] bounds what a peer can make us take. Everything reads from slices and
//! writes to a `Vec<u8>`, and bulk data only ever appears as a length.
#![forbid(unsafe_code)]

pub mod codes;
mod device;
mod dialect;
mod dtype;
pub mod endpoint;
mod error;
pub mod explain;
pub mod handshake;
mod limits;
pub mod packet;
mod tensor;
pub mod tracker;
mod value;
mod values;
mod wire;

pub use device::{Device, DeviceAttr, DeviceType, ParseDeviceAttrError, ParseDeviceError};
pub use dialect::Dialect;
pub use dtype::{DataType, ParseDataTypeError, TypeCode};
pub use endpoint::{ClientEndpoint, Received, ServerEndpoint};
pub use error::DecodeError;
pub use limits::{Limits, OverLimit};
pub use packet::{Bulk, BulkKind, HandleKind, Packet, Syscall};
pub use value::{OwnedValue, Returned, Shape, TensorView, Value};
pub use values::{Values, ValuesIter};

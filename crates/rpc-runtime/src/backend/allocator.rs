//! Fresh tensors of the runtime.

use rpc_proto::{DataType, Device, DeviceType, Shape};
use rpc_session::Exception;

use super::{exception, no_device};
use crate::{Arg, Error, Function, Runtime, Tensor, Value};

/// A tensor of more bytes has more bits than 64 bits count.
const MOST_BYTES: u64 = (1 << 60) - 1;

/// The functions that make tensors.
#[derive(Debug)]
pub(super) struct Allocator {
    shape: Function,
    allocate: Function,
}

impl Allocator {
    pub(super) fn new(runtime: Runtime) -> Result<Self, Error> {
        Ok(Self {
            shape: runtime.named("ffi.Shape")?,
            allocate: runtime.named("runtime.TVMTensorAllocWithScope")?,
        })
    }

    /// A tensor in fresh memory.
    pub(super) fn tensor(
        &self,
        device: Device,
        shape: &[i64],
        dtype: DataType,
        scope: Option<&str>,
    ) -> Result<Tensor, Exception> {
        if !may_exist(device) {
            return Err(no_device(device));
        }
        // The runtime counts bits in 64 bits: above that it would give less memory than it says.
        let nbytes = Shape::from(shape).nbytes(dtype);
        if nbytes.is_none_or(|nbytes| nbytes > MOST_BYTES) {
            return Err(Exception::new(
                "MemoryError",
                format!("no memory has room for a tensor of {dtype} {shape:?}"),
            ));
        }
        let sizes: Vec<_> = shape.iter().map(|&size| Arg::Int(size)).collect();
        let Value::Object(shape) = self.shape.call(&sizes).map_err(exception)? else {
            return Err(Exception::runtime("the runtime made no shape of sizes"));
        };
        let scope = scope.map_or(Arg::None, Arg::Str);
        let args = [
            Arg::Object(&shape),
            Arg::DataType(dtype),
            Arg::Device(device),
            scope,
        ];
        match self.allocate.call(&args).map_err(exception)? {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(Exception::runtime(format!(
                "the runtime made {other:?} in place of a tensor"
            ))),
        }
    }
}

/// The runtime has a table of the kinds of devices, and does not check whether it ends before the one it is
/// asked for.
pub(super) fn may_exist(device: Device) -> bool {
    let kind = device.device_type;
    (0..=DeviceType::TRN.0).contains(&kind.0) && kind.name().is_some() && device.id >= 0
}

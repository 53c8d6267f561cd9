//! Devices, data types and tensors on the wire: the same bytes in all dialects.

use crate::limits::within;
use crate::wire::{Put, Reader};
use crate::{DataType, DecodeError, Device, DeviceType, Limits, OverLimit, TensorView, TypeCode};

/// Bytes of a tensor of no dimensions.
const FIXED_LEN: u64 = 32;

pub(crate) fn put_device(device: Device, out: &mut Vec<u8>) {
    out.put_i32(device.device_type.0);
    out.put_i32(device.id);
}

pub(crate) fn device(reader: &mut Reader<'_>) -> Result<Device, DecodeError> {
    let device_type = DeviceType(reader.i32("device type")?);
    reader.means(|| device_type.name());
    let id = reader.i32("device id")?;
    Ok(Device { device_type, id })
}

pub(crate) fn put_dtype(dtype: DataType, out: &mut Vec<u8>) {
    out.put(&[dtype.code.0, dtype.bits]);
    out.put_u16(dtype.lanes);
}

pub(crate) fn dtype(reader: &mut Reader<'_>) -> Result<DataType, DecodeError> {
    let code = TypeCode(reader.u8("type code")?);
    let bits = reader.u8("bits of a lane")?;
    let lanes = reader.u16("lanes")?;
    let dtype = DataType { code, bits, lanes };
    reader.means(|| Some(dtype.to_string()));
    Ok(dtype)
}

/// Checks that a peer with these limits would take the tensor.
pub(crate) fn check(tensor: &TensorView, limits: Limits) -> Result<(), OverLimit> {
    // The count is a signed integer on the wire, whatever the limit.
    let most = limits.dimensions.min(i32::MAX.unsigned_abs());
    let dimensions = tensor.shape.len() as u64;
    within("number of dimensions", dimensions, most.into())
}

pub(crate) fn put(tensor: &TensorView, out: &mut Vec<u8>) {
    out.put_u64(tensor.data);
    put_device(tensor.device, out);
    let dimensions = i32::try_from(tensor.shape.len()).expect("the caller has checked the shape");
    out.put_i32(dimensions);
    put_dtype(tensor.dtype, out);
    for &size in &*tensor.shape {
        out.put_i64(size);
    }
    out.put_u64(tensor.byte_offset);
}

pub(crate) fn view(reader: &mut Reader<'_>, limits: Limits) -> Result<TensorView, DecodeError> {
    let data = reader.address("data pointer")?;
    let device = device(reader)?;
    let dimensions = reader.count("number of dimensions", limits.dimensions)?;
    let dtype = dtype(reader)?;
    let shape = (0..dimensions)
        .map(|_| reader.i64("size of a dimension"))
        .collect::<Result<_, _>>()?;
    Ok(TensorView {
        data,
        device,
        dtype,
        shape,
        byte_offset: reader.u64("byte offset")?,
    })
}

/// Bytes of the tensor that starts at `reader`, once its number of dimensions is there.
pub(crate) fn len(mut reader: Reader<'_>, limits: Limits) -> Result<u64, DecodeError> {
    reader.address("data pointer")?;
    device(&mut reader)?;
    let dimensions = reader.count("number of dimensions", limits.dimensions)?;
    Ok(FIXED_LEN + 8 * u64::from(dimensions))
}

use bytemuck::Pod;
use rpc_proto::DataType;

/// A Rust type whose slices can be copied to and from tensors.
///
/// Bytes are copied as they are, so host and device have to agree on their order (little endian, in
/// all that the reference runs on).
pub trait Element: Pod + Send + Sync {
    /// The data type of tensors of this element.
    const DTYPE: DataType;

    /// Can a tensor of `dtype` be read and written as a slice of this type?
    #[must_use]
    fn fits(dtype: DataType) -> bool {
        dtype == Self::DTYPE
    }
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {
        $(impl Element for $type {
            const DTYPE: DataType = DataType::$dtype;
        })*
    };
}

elements! {
    i8 => INT8, i16 => INT16, i32 => INT32, i64 => INT64,
    u16 => UINT16, u32 => UINT32, u64 => UINT64,
    f32 => FLOAT32, f64 => FLOAT64,
}

#[cfg(feature = "half")]
elements! { half::f16 => FLOAT16, half::bf16 => BFLOAT16 }

impl Element for u8 {
    const DTYPE: DataType = DataType::UINT8;

    /// A tensor of `bool` is one of bytes that are 0 or 1.
    fn fits(dtype: DataType) -> bool {
        dtype == DataType::UINT8 || dtype == DataType::BOOL
    }
}

//! What `libtvm_ffi` lays out in memory, and the functions of its C interface. Everything here is as in the
//! header `tvm/ffi/c_api.h` of its version 0.1.

use std::ffi::{c_int, c_void};

/// A reference to an object: its header, behind which the object itself stands.
pub(crate) type Handle = *mut Header;

/// Which kind of value it is. Numbers from [`OBJECT`](index::OBJECT) on are kinds of objects.
pub(crate) mod index {
    pub(crate) const NONE: i32 = 0;
    pub(crate) const INT: i32 = 1;
    pub(crate) const BOOL: i32 = 2;
    pub(crate) const FLOAT: i32 = 3;
    pub(crate) const POINTER: i32 = 4;
    pub(crate) const DATA_TYPE: i32 = 5;
    pub(crate) const DEVICE: i32 = 6;
    pub(crate) const TENSOR_VIEW: i32 = 7;
    pub(crate) const RAW_STR: i32 = 8;
    pub(crate) const BYTES_VIEW: i32 = 9;
    /// A place of a reference, which may be taken from there.
    pub(crate) const MOVED: i32 = 10;
    pub(crate) const SMALL_STR: i32 = 11;
    pub(crate) const SMALL_BYTES: i32 = 12;
    pub(crate) const OBJECT: i32 = 64;
    pub(crate) const STR: i32 = 65;
    pub(crate) const BYTES: i32 = 66;
    pub(crate) const FUNCTION: i32 = 68;
    pub(crate) const TENSOR: i32 = 70;
    pub(crate) const MODULE: i32 = 73;
}

/// A value, or a view of one. The eight bytes hold a number, a pointer, a data type, a device or a short
/// text, as `index` says.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Any {
    pub(crate) index: i32,
    /// Of a short text or short bytes; of others 0.
    pub(crate) small_len: u32,
    pub(crate) bits: u64,
}

impl Any {
    pub(crate) const NONE: Self = Self::new(index::NONE, 0);

    pub(crate) const fn new(index: i32, bits: u64) -> Self {
        Self {
            index,
            small_len: 0,
            bits,
        }
    }
}

/// Bytes that somebody else owns.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteArray {
    pub(crate) data: *const u8,
    pub(crate) len: usize,
}

impl ByteArray {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            len: bytes.len(),
        }
    }
}

/// The beginning of each object.
#[repr(C, align(8))]
#[derive(Debug)]
pub(crate) struct Header {
    counts: u64,
    pub(crate) index: i32,
    padding: u32,
    deleter: u64,
}

/// What stands behind the header of an error.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorCell {
    pub(crate) kind: ByteArray,
    pub(crate) message: ByteArray,
    pub(crate) backtrace: ByteArray,
}

/// A tensor, as DLPack has it; it stands behind the header of a tensor object, too.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct DlTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device_type: i32,
    pub(crate) device_id: i32,
    pub(crate) ndim: i32,
    pub(crate) dtype: DlDataType,
    pub(crate) shape: *mut i64,
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

/// A data type, as DLPack has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DlDataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

/// What is called when a function is: the function's own data, the arguments, and where the result goes.
/// Other than 0 stands for an error that was set before.
pub(crate) type SafeCall = unsafe extern "C" fn(*mut c_void, *const Any, i32, *mut Any) -> c_int;
/// Drops the data of a function.
pub(crate) type Deleter = unsafe extern "C" fn(*mut c_void);

/// The functions of the C interface. Those that give an integer give 0 where all went well; else the error
/// waits to be taken, on this thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbols {
    pub(crate) version: unsafe extern "C" fn(*mut Version),
    pub(crate) inc_ref: unsafe extern "C" fn(Handle) -> c_int,
    pub(crate) dec_ref: unsafe extern "C" fn(Handle) -> c_int,
    pub(crate) get_global: unsafe extern "C" fn(*const ByteArray, *mut Handle) -> c_int,
    pub(crate) set_global: unsafe extern "C" fn(*const ByteArray, Handle, c_int) -> c_int,
    pub(crate) call: unsafe extern "C" fn(Handle, *mut Any, i32, *mut Any) -> c_int,
    pub(crate) to_owned: unsafe extern "C" fn(*const Any, *mut Any) -> c_int,
    pub(crate) take_error: unsafe extern "C" fn(*mut Handle),
    pub(crate) set_error: unsafe extern "C" fn(Handle),
    pub(crate) new_error: unsafe extern "C" fn(
        *const ByteArray,
        *const ByteArray,
        *const ByteArray,
        *mut Handle,
    ) -> c_int,
    pub(crate) new_function:
        unsafe extern "C" fn(*mut c_void, SafeCall, Option<Deleter>, *mut Handle) -> c_int,
    pub(crate) new_str: unsafe extern "C" fn(*const ByteArray, *mut Any) -> c_int,
    pub(crate) new_bytes: unsafe extern "C" fn(*const ByteArray, *mut Any) -> c_int,
    pub(crate) current_stream: unsafe extern "C" fn(i32, i32) -> *mut c_void,
}

const _: () = {
    assert!(size_of::<Any>() == 16);
    assert!(size_of::<Header>() == 24);
    assert!(size_of::<DlTensor>() == 48);
};

//! References to objects of the runtime.

use std::fmt;
use std::ptr::NonNull;
use std::slice;

use crate::abi::{ByteArray, DlTensor, Header, index};
use crate::library::symbols;

/// A reference to an object of the runtime, which keeps it alive. A clone is another reference to the same
/// object.
pub struct Object(NonNull<Header>);

// SAFETY: counts of references are atomic, and nothing here changes what is in an object.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    /// Takes over a reference; none where it is null.
    ///
    /// # Safety
    /// It is null, or the caller's own reference to a living object, which it gives away.
    pub(crate) unsafe fn from_raw(handle: *mut Header) -> Option<Self> {
        NonNull::new(handle).map(Self)
    }

    /// The reference, which stays this one's.
    pub(crate) fn as_raw(&self) -> *mut Header {
        self.0.as_ptr()
    }

    /// Gives the reference away.
    pub(crate) fn into_raw(self) -> *mut Header {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }

    /// The kind of the object, as the runtime numbers them.
    #[must_use]
    pub fn type_index(&self) -> i32 {
        // SAFETY: it is alive as long as the reference is, and its kind never changes. Nothing refers to the
        // counts beside it, which other threads change.
        unsafe { (&raw const (*self.as_raw()).index).read() }
    }

    /// Whether it is a function.
    #[must_use]
    pub fn is_function(&self) -> bool {
        self.type_index() == index::FUNCTION
    }

    /// Whether it is a module.
    #[must_use]
    pub fn is_module(&self) -> bool {
        self.type_index() == index::MODULE
    }

    /// The bytes of an object that is a text or bytes.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if ![index::STR, index::BYTES].contains(&self.type_index()) {
            return None;
        }
        // SAFETY: behind the header of these two stand the place and the number of their bytes, which stay as
        // they are for as long as the object lives.
        let array = unsafe { self.cell::<ByteArray>() };
        // SAFETY: as above.
        Some(unsafe { bytes_of(array) })
    }

    /// What an object that is a tensor says of itself.
    pub(crate) fn tensor(&self) -> Option<&DlTensor> {
        // SAFETY: behind the header of a tensor stands what DLPack has of it.
        (self.type_index() == index::TENSOR).then(|| unsafe { self.cell::<DlTensor>() })
    }

    /// What stands behind the header.
    ///
    /// # Safety
    /// Objects of this kind have a `T` there.
    pub(crate) unsafe fn cell<T>(&self) -> &T {
        // SAFETY: the caller knows that there is one; objects are aligned as their headers are.
        unsafe { &*self.0.as_ptr().add(1).cast::<T>() }
    }
}

/// Bytes that lie somewhere.
///
/// # Safety
/// They are there, and stay as they are, for as long as `'a`.
pub(crate) unsafe fn bytes_of<'a>(array: &ByteArray) -> &'a [u8] {
    match array.data.is_null() {
        true => &[],
        // SAFETY: the caller's word.
        false => unsafe { slice::from_raw_parts(array.data, array.len) },
    }
}

impl Clone for Object {
    fn clone(&self) -> Self {
        // SAFETY: it is alive. It fails for no object that is.
        unsafe { (symbols().inc_ref)(self.as_raw()) };
        Self(self.0)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and nobody uses it afterwards.
        unsafe { (symbols().dec_ref)(self.as_raw()) };
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object(kind {}, {:p})", self.type_index(), self.0)
    }
}

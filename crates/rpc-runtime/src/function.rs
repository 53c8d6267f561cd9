//! Functions of the runtime, and functions in Rust for it.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use crate::abi;
use crate::error::Error;
use crate::library::{Runtime, symbols};
use crate::memory::Lease;
use crate::object::Object;
use crate::tensor::Tensor;
use crate::value::{Arg, Packed, Value};

/// A function of the runtime, of a module, or of this program.
#[derive(Debug, Clone)]
pub struct Function(Object);

impl Function {
    /// An object that is one.
    pub(crate) fn new(object: Object) -> Self {
        Self(object)
    }

    /// The object that it is.
    #[must_use]
    pub fn object(&self) -> &Object {
        &self.0
    }

    /// Calls it.
    ///
    /// # Errors
    /// What it threw; or a tensor is an argument whose memory the caller is reading or writing at this moment.
    pub fn call(&self, args: &[Arg<'_>]) -> Result<Value, Error> {
        for arg in args {
            if let Arg::Object(object) = arg {
                check_unused(object)?;
            }
        }
        let mut packed = Packed::new(args)?;
        let mut result = abi::Any::NONE;
        let views = packed.views();
        let count = i32::try_from(views.len())
            .map_err(|_| Error::new("ValueError", "more arguments than there are numbers"))?;
        // SAFETY: the arguments, and what they point to, live in `packed` until the end of this function;
        // `result` is a place for a value, which is ours afterwards.
        let status =
            unsafe { (symbols().call)(self.0.as_raw(), views.as_mut_ptr(), count, &mut result) };
        match status {
            // SAFETY: as above.
            0 => unsafe { Value::from_owned(result) },
            _ => Err(Error::take()),
        }
    }
}

impl TryFrom<Object> for Function {
    type Error = Object;

    /// The object, if it is a function; else itself again.
    fn try_from(object: Object) -> Result<Self, Object> {
        match object.is_function() {
            true => Ok(Self(object)),
            false => Err(object),
        }
    }
}

impl Runtime {
    /// Makes a function of the runtime out of one in Rust. A panic in it is an error for whoever calls it.
    ///
    /// # Errors
    /// The runtime has no memory for it.
    pub fn new_function(
        self,
        body: impl Fn(&[Value]) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> Result<Function, Error> {
        let body: Box<Body> = Box::new(Box::new(body));
        let data = Box::into_raw(body).cast();
        let mut created = std::ptr::null_mut();
        // SAFETY: `data` is what `call_body` and `drop_body` take it for, and the runtime calls the latter once,
        // after all calls.
        let status =
            unsafe { (symbols().new_function)(data, call_body, Some(drop_body), &mut created) };
        if status != 0 {
            // SAFETY: the runtime has not taken it.
            unsafe { drop_body(data) };
            return Err(Error::take());
        }
        // SAFETY: what was created is a reference of ours.
        let created = unsafe { Object::from_raw(created) };
        let missing = || Error::new("RuntimeError", "the runtime made no function");
        created.map(Function).ok_or_else(missing)
    }
}

type Body = Box<dyn Fn(&[Value]) -> Result<Value, Error> + Send + Sync>;

/// Calls a function in Rust.
///
/// # Safety
/// `data` is a `Body`; there are so many arguments, and a place for the result.
unsafe extern "C" fn call_body(
    data: *mut c_void,
    args: *const abi::Any,
    count: i32,
    result: *mut abi::Any,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's word.
    let (body, args) = unsafe {
        let args = match args.is_null() {
            true => &[],
            false => slice::from_raw_parts(args, count),
        };
        (&*data.cast::<Body>(), args)
    };
    // What unwinds must not leave this function, whose caller knows nothing of it.
    let called = catch_unwind(AssertUnwindSafe(|| {
        // It ends when this returns, and with it the use of tensors that are lent for the call.
        let lease = Lease::default();
        // SAFETY: arguments are values of the runtime, which are there during the call.
        let args = args
            .iter()
            .map(|arg| unsafe { Value::from_view(arg, &lease) });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        body(&args)?.into_owned()
    }));
    let called = called.unwrap_or_else(|panic| Err(Error::new("RuntimeError", text_of(&*panic))));
    match called {
        Ok(value) => {
            // SAFETY: the caller's word.
            unsafe { result.write(value) };
            0
        }
        Err(error) => {
            error.leave();
            -1
        }
    }
}

/// The caller has no reference to the memory of an object that is a tensor: the function may write it.
fn check_unused(object: &Object) -> Result<(), Error> {
    if object.tensor().is_none() {
        return Ok(());
    }
    let tensor = Tensor::of_object(object.clone())?;
    let memory = tensor.memory();
    memory.check_unused(&(0..memory.nbytes()), true)
}

/// What a panic says.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a function panicked")
}

/// Drops a function in Rust.
///
/// # Safety
/// `data` is a `Body` that nobody uses any more.
unsafe extern "C" fn drop_body(data: *mut c_void) {
    // SAFETY: the caller's word.
    let body = unsafe { Box::from_raw(data.cast::<Body>()) };
    // What unwinds must not leave this function, whose caller knows nothing of it.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(body))) {
        tracing::error!(message = text_of(&*panic), "dropping a function panicked");
    }
}

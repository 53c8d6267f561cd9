//! TVM's own runtime, loaded when a program asks for it: its functions, its modules, its tensors.
//!
//! A program that uses this crate is built without TVM, and runs without it as well, until
//! [`Runtime::load`] finds `libtvm_ffi` and `libtvm_runtime` on the machine. This is the one crate of the
//! project that has `unsafe` code: what it hands out is safe.
//!
//! ```no_run
//! use rpc_runtime::{Place, Runtime, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::load(&Place::Auto)?;
//! let load = runtime.function("ffi.ModuleLoadFromFile").ok_or("an odd runtime")?;
//! let module = load.call(&["vadd.so".into()])?;
//! println!("loaded {module:?}");
//! # Ok(())
//! # }
//! ```

mod abi;
mod backend;
mod error;
mod find;
mod function;
mod lending;
mod library;
mod link;
mod memory;
mod object;
mod tensor;
mod value;
mod view;

pub use backend::TvmBackend;
pub use error::Error;
pub use find::{Libraries, NotFound, Place, VARIABLE, find};
pub use function::Function;
pub use library::{LoadError, Runtime};
pub use link::{LinkError, Linker};
pub use memory::Memory;
pub use object::Object;
pub use tensor::Tensor;
pub use value::{Arg, Value};
pub use view::TensorView;

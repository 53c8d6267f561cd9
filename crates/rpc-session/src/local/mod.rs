//! What a local session is made of: functions in Rust, and memory of this process.

mod args;
mod backend;
mod buffer;
mod exception;
mod function;
mod functions;
mod host;
mod module;
mod object;
mod options;
mod random;
mod server;
mod state;
mod tensor;
mod test_functions;
mod timer;
mod value;
mod workdir;

pub use args::FromArg;
pub use backend::{Backend, DeviceMemory};
#[cfg(any(feature = "sync", feature = "async"))]
pub(crate) use buffer::Span;
pub use exception::Exception;
pub use function::{Callable, IntoFunction, IntoReturn, LocalFunction};
pub use functions::Functions;
pub use module::{CompiledModule, LocalModule};
pub use object::LocalObject;
pub use options::LocalOptions;
#[cfg(any(feature = "sync", feature = "async"))]
pub(crate) use state::{Callee, State};
pub use tensor::LocalTensor;
pub use test_functions::test_functions;
pub use value::{Arg, LocalValue};
pub use workdir::{FileFunction, NewFile, WorkDir};

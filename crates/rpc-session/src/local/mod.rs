//! What a local session is made of.

mod exception;

pub use exception::Exception;

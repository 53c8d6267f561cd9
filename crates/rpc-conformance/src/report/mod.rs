//! What a run is written as.

mod text;

pub use text::text;

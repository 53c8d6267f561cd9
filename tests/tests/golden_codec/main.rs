//! The recorded conversations of `tests/vectors` against the codec: what real peers sent is understood,
//! means what the recording says it means, and is written by us with the same bytes.
//!
//! Some messages were made by hand to see what real peers do with them. Those that we rightly do not
//! reproduce are listed one by one beside each test; a listed message that does come out the same is as
//! much a failure as an unlisted one that does not.

mod describe;
mod exceptions;
mod keys;
mod packets;
mod tracker;
mod vectors;

//! The recorded conversations of `tests/vectors` against the codec: what real peers sent is understood,
//! means what the recording says it means, and is written by us with the same bytes.
//!
//! Some messages were made by hand to see what real peers do with them. Those that we rightly do not
//! reproduce are listed one by one; a listed message that does come out the same is as
//! much a failure as an unlisted one that does not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod describe;
mod exceptions;
mod keys;
mod odd_packets;
mod packets;
mod tracker;
mod vectors;

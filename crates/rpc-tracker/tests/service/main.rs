//! A tracker on loopback, and peers that say what they like.

#![allow(clippy::unwrap_used)]

mod peer;

mod allocation;
mod client;
mod framing;
mod hostile;
mod lifecycle;
mod listing;

//! The suite's part in each role: what a case can say to the peer under test, and expect of it.

pub(crate) mod client;
pub(crate) mod packets;
pub(crate) mod served;
pub(crate) mod server;
pub(crate) mod tracker;

pub(crate) use client::Client;
pub(crate) use server::Server;
pub(crate) use tracker::{Reaction, Tracker, TrackerWire};

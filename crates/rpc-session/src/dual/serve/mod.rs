//! The serving side: sessions, their constructors, and the endpoint that serves them.

pub(in super::super) mod constructor;
pub(in super::super) mod endpoint;
pub(in super::super) mod files;
pub(in super::super) mod hops;
pub(in super::super) mod local;
pub(in super::super) mod remote;
pub(in super::super) mod session;

//! Cases for servers: `SRV-`.

mod calls;
mod constructors;
mod copies;
mod copies_refused;
mod devices;
mod endings;
mod exceptions;
mod exchange;
mod files;
mod framing;
mod handles;
mod hop;
mod hops;
mod hops_syscalls;
mod hops_traffic;
mod malformed;
mod malformed_values;
mod memory;
mod modules;
mod shaking;
mod timeouts;
mod timing;
mod values_args;
mod values_handles;
mod values_results;
mod values_text;

use super::{Untested, by_hand};
use crate::case::Case;

pub(super) const AREAS: &[&[Case]] = &[
    shaking::CASES,
    framing::CASES,
    malformed::CASES,
    malformed_values::CASES,
    values_args::CASES,
    values_text::CASES,
    values_handles::CASES,
    values_results::CASES,
    constructors::CASES,
    hops::CASES,
    hops_traffic::CASES,
    hops_syscalls::CASES,
    calls::CASES,
    exceptions::CASES,
    devices::CASES,
    memory::CASES,
    copies::CASES,
    copies_refused::CASES,
    handles::CASES,
    files::CASES,
    modules::CASES,
    timing::CASES,
    endings::CASES,
    timeouts::CASES,
];

pub(super) const UNTESTED: &[Untested] = &[
    (
        "6.2.7",
        "what other constructors there are is the server's own business",
    ),
    (
        "6.3.18",
        "a freedom: the cases of 6.3 answer such questions, whether or not they come",
    ),
    ("7.5.10", "what a server frees does not show on the wire"),
    (
        "10.2.6",
        "it needs a module that was compiled for the machine of the server under test",
    ),
    (
        "10.2.7",
        "it needs a module that was compiled for the machine of the server under test",
    ),
    (
        "8.2.4",
        "how long a call may go on after its client has gone is for the server to say",
    ),
];

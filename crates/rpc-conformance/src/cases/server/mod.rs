//! Cases for servers: `SRV-`.

mod calls;
mod constructors;
mod copies;
mod copies_refused;
mod devices;
mod exceptions;
mod exchange;
mod files;
mod handles;
mod hop;
mod hops;
mod hops_traffic;
mod memory;
mod modules;
mod timing;
mod values_args;
mod values_handles;
mod values_results;
mod values_text;

use super::{Untested, by_hand};
use crate::case::Case;

pub(super) const AREAS: &[&[Case]] = &[
    values_args::CASES,
    values_text::CASES,
    values_handles::CASES,
    values_results::CASES,
    constructors::CASES,
    hops::CASES,
    hops_traffic::CASES,
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
];

pub(super) const UNTESTED: &[Untested] = &[];

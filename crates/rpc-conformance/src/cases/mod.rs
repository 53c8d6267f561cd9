//! Every case of the suite, by role and area.

mod by_hand;
mod client;
mod server;
mod tracker;

use crate::case::Case;

/// A clause of the specification that no case checks, and why.
pub type Untested = (&'static str, &'static str);

/// Every case, in the order of the specification.
pub fn all() -> impl Iterator<Item = &'static Case> + Clone {
    let roles = [tracker::AREAS, server::AREAS, client::AREAS];
    roles.into_iter().flatten().flat_map(|area| area.iter())
}

/// Every clause that no case checks, and why.
pub fn untested() -> impl Iterator<Item = &'static Untested> {
    let lists = [tracker::UNTESTED, server::UNTESTED, client::UNTESTED, PROXY];
    lists.into_iter().flatten()
}

/// Why no case checks what a proxy does.
const NO_PROXY: &str = "there is no role for proxies yet";

const PROXY: &[Untested] = &[
    ("11.1.1", NO_PROXY),
    ("11.1.2", NO_PROXY),
    ("11.1.3", NO_PROXY),
    ("11.1.4", NO_PROXY),
    ("11.1.5", NO_PROXY),
    ("11.1.6", NO_PROXY),
    ("11.1.7", NO_PROXY),
    ("11.2.1", NO_PROXY),
    ("11.2.2", NO_PROXY),
    ("11.2.3", NO_PROXY),
    ("11.3.1", NO_PROXY),
    ("11.3.2", NO_PROXY),
    ("11.3.3", NO_PROXY),
    ("12.1.1", NO_PROXY),
    ("12.1.2", NO_PROXY),
    ("12.1.3", NO_PROXY),
    ("12.1.4", NO_PROXY),
];

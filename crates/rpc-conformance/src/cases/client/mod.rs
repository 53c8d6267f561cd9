//! Cases for clients: `CLI-`.

mod asking;
mod borrowing;
mod calls;
mod endings;
mod exceptions;
mod handshakes;
mod malformed;
mod memory;
mod results;
mod retries;

use super::{Untested, by_hand};
use crate::case::Case;

pub(super) const AREAS: &[&[Case]] = &[
    asking::CASES,
    retries::CASES,
    borrowing::CASES,
    handshakes::CASES,
    calls::CASES,
    results::CASES,
    exceptions::CASES,
    memory::CASES,
    endings::CASES,
    malformed::CASES,
];

pub(super) const UNTESTED: &[Untested] = &[
    (
        "9.1.13",
        "which addresses a name has is for the machine to say, not for the suite",
    ),
    (
        "9.1.14",
        "the script stops waiting only by ending, which closes everything",
    ),
    ("9.2.12", "how long is for the client to say"),
    ("9.2.13", "a pause could only be judged by time"),
    ("9.3.9", "a freedom"),
    (
        "9.4.9",
        "how bytes were written cannot be seen at the other end",
    ),
    ("9.9.2", "a freedom"),
];

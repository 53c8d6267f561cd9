//! Cases for trackers: `TRK-`.

mod frames;
mod greeting;
mod info;
mod lifetimes;
mod pending;
mod put;
mod queue;
mod refusals;
mod stop;
mod summary;

use super::Untested;
use crate::case::Case;

pub(super) const AREAS: &[&[Case]] = &[
    greeting::CASES,
    frames::CASES,
    refusals::CASES,
    put::CASES,
    info::CASES,
    queue::CASES,
    lifetimes::CASES,
    pending::CASES,
    summary::CASES,
    stop::CASES,
];

pub(super) const UNTESTED: &[Untested] = &[
    (
        "1.2.1",
        "every case that reads or sends a number rests on it",
    ),
    (
        "1.2.2",
        "tested where the lengths are: 2.2.8, 3 and 5, with texts beyond ASCII",
    ),
    ("1.2.3", "tested where the texts are: 2.2.8, 3 and 5"),
    (
        "1.3.1",
        "tested for each protocol: 2.2.2, 2.2.3, and in 3 and 4",
    ),
    (
        "1.3.2",
        "how much memory a peer takes does not show on the wire; what it does then is 2.2.5 and 8",
    ),
    (
        "1.3.3",
        "tested for each protocol: 2.1.4, 2.3.5, and in 3 and 8",
    ),
    (
        "2.9.2",
        "the key of a tracker under test is not known to the suite",
    ),
];

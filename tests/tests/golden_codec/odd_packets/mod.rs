//! Packets that rightly do not come out as they were recorded.

pub(crate) mod ffi;
pub(crate) mod legacy;

use crate::exceptions::Exception;

const UNKNOWN_CODE: &str = "no such code";
const BAD_LENGTH: &str = "made by hand: the length of the packet is not that of its content";
const BAD_VALUE: &str = "made by hand: no value of the protocol";
const BAD_ARGUMENT: &str = "made by hand: not what this syscall takes";
const OTHER_FORM: &str =
    "made by hand: a form of the value that a receiver takes, but no client writes";

const PADDING: &str = "made by hand: padding of -1, which is ignored";
const ONE_TOO_MANY: &str = "made by hand: one argument too many, which is ignored";
const BYTES_FOR_TEXT: &str =
    "made by hand: bytes for a text, which a server takes, but no client writes";

const ANY_RETURN: &str = "made by hand: any return opens a session";
const SAME_RESULT: &str =
    "made by hand: a form of the result that a client takes, but no server writes";
const NO_RESULT: &str = "made by hand: no result of this request";
const BEHIND_TEXT: &str = "made by hand: a value behind the text, which is ignored";
const NOT_ASKED: &str = "made by hand: breaks the session";

/// Requests of both kinds of peers that are not written as they were recorded.
pub(crate) const REQUESTS: &[Exception] = &[
    ("malformed_packets.json", 63, "found 99", UNKNOWN_CODE),
    ("malformed_packets.json", 71, "found 22", UNKNOWN_CODE),
    ("malformed_packets.json", 79, "found 0", UNKNOWN_CODE),
    ("malformed_packets.json", 87, "found -1", UNKNOWN_CODE),
    ("malformed_packets.json", 119, "only 0 are left", BAD_LENGTH),
    (
        "malformed_packets.json",
        128,
        "expected 0, or at least 4 for the code, found 2",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        136,
        "4 more bytes follow",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        143,
        "4 more bytes follow",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        152,
        "4 more bytes follow",
        BAD_LENGTH,
    ),
    ("malformed_packets.json", 197, "found 50", BAD_VALUE),
    ("malformed_packets.json", 221, "found 999", BAD_VALUE),
    ("malformed_packets.json", 228, "found -1", BAD_VALUE),
    (
        "malformed_packets.json",
        236,
        "number of values at offset 12",
        BAD_VALUE,
    ),
    ("session_func_arg_hand.json", 28, "written as", OTHER_FORM),
    (
        "session_syscalls_hand.json",
        46,
        "null",
        "made by hand: none for the default stream",
    ),
];

/// Such replies.
pub(crate) const REPLIES: &[Exception] = &[
    ("fake_server_replies.json", 35, "written as", ANY_RETURN),
    ("fake_server_replies.json", 42, "written as", ANY_RETURN),
    (
        "fake_server_replies.json",
        74,
        "written as",
        "made by hand: none for a null pointer",
    ),
    (
        "fake_server_replies.json",
        83,
        "a pointer or none, found an integer",
        NO_RESULT,
    ),
    (
        "fake_server_replies.json",
        92,
        "a pointer or none, found 2 values",
        NO_RESULT,
    ),
    ("fake_server_replies.json", 99, "written as", ANY_RETURN),
    ("fake_server_replies.json", 116, "written as", SAME_RESULT),
    ("fake_server_replies.json", 155, "found 3 values", NO_RESULT),
    (
        "fake_server_replies.json",
        168,
        "expected the number of a type first, found none",
        NO_RESULT,
    ),
    (
        "fake_server_replies.json",
        181,
        "expected the number of a type first, found no value",
        NO_RESULT,
    ),
];

//! Packets of `legacy` peers.

use super::{
    BAD_ARGUMENT, BAD_LENGTH, BAD_VALUE, BEHIND_TEXT, BYTES_FOR_TEXT, NO_RESULT, NOT_ASKED,
    ONE_TOO_MANY, PADDING, SAME_RESULT, UNKNOWN_CODE,
};
use crate::exceptions::Exception;

/// Requests that are not written as they were recorded.
pub(crate) const REQUESTS: &[Exception] = &[
    ("malformed_packets.json", 205, "found 14", BAD_VALUE),
    ("malformed_packets.json", 213, "found 13", BAD_VALUE),
    (
        "malformed_packets.json",
        244,
        "type codes at offset 16 needs 4000 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        252,
        "found no argument",
        BAD_ARGUMENT,
    ),
    ("malformed_packets.json", 262, "means", ONE_TOO_MANY),
    (
        "malformed_packets.json",
        272,
        "text at offset 28 needs 1000 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        280,
        "text at offset 28 needs 9223372036854775808 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        301,
        "expected a pointer, found an integer",
        BAD_ARGUMENT,
    ),
    (
        "malformed_packets.json",
        311,
        "number of dimensions at offset 28",
        BAD_VALUE,
    ),
    (
        "malformed_packets.json",
        326,
        "found 16 before 4 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        331,
        "version at offset 20 needs 1000 bytes",
        BAD_LENGTH,
    ),
    ("session_func_arg_hand.json", 30, "pad=-1", PADDING),
    (
        "session_syscalls_hand.json",
        72,
        "expected a text, found an integer",
        BAD_ARGUMENT,
    ),
    ("session_syscalls_hand.json", 74, "means", BYTES_FOR_TEXT),
];

/// Replies that are not written as they were recorded.
pub(crate) const REPLIES: &[Exception] = &[
    ("fake_server_replies.json", 235, "written as", SAME_RESULT),
    (
        "fake_server_replies.json",
        248,
        "3 for a tensor, found 2 values",
        NO_RESULT,
    ),
    ("fake_server_replies.json", 276, "written as", SAME_RESULT),
    ("fake_server_replies.json", 289, "written as", SAME_RESULT),
    ("fake_server_replies.json", 315, "means", BEHIND_TEXT),
    ("fake_server_replies.json", 351, "found 99", UNKNOWN_CODE),
    (
        "fake_server_replies.json",
        365,
        "where nothing was due",
        NOT_ASKED,
    ),
    (
        "fake_server_replies.json",
        417,
        "2 bytes of a tensor, where 4",
        NOT_ASKED,
    ),
    (
        "fake_server_replies.json",
        440,
        "6 bytes of a tensor, where 4",
        NOT_ASKED,
    ),
    (
        "fake_server_replies.json",
        488,
        "where a copy ack or an exception was due",
        NOT_ASKED,
    ),
];

//! Packets of `ffi` peers.

use super::{
    BAD_ARGUMENT, BAD_LENGTH, BAD_VALUE, BEHIND_TEXT, BYTES_FOR_TEXT, NO_RESULT, NOT_ASKED,
    ONE_TOO_MANY, OTHER_FORM, PADDING, SAME_RESULT, UNKNOWN_CODE,
};
use crate::exceptions::Exception;

const HOP: &str = "a server that passes bytes on makes an object of them, also of few bytes";

/// Requests that are not written as they were recorded.
pub(crate) const REQUESTS: &[Exception] = &[
    ("malformed_packets.json", 205, "found 10", BAD_VALUE),
    ("malformed_packets.json", 213, "found 70", BAD_VALUE),
    (
        "malformed_packets.json",
        246,
        "type index at offset 43 needs 4 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        254,
        "found no argument",
        BAD_ARGUMENT,
    ),
    ("malformed_packets.json", 261, "means", ONE_TOO_MANY),
    (
        "malformed_packets.json",
        271,
        "text at offset 28 needs 1000 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        279,
        "text at offset 28 needs 9223372036854775808 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        303,
        "expected a pointer, found an integer",
        BAD_ARGUMENT,
    ),
    (
        "malformed_packets.json",
        313,
        "number of dimensions at offset 28",
        BAD_VALUE,
    ),
    (
        "malformed_packets.json",
        328,
        "found 16 before 4 bytes",
        BAD_LENGTH,
    ),
    (
        "malformed_packets.json",
        333,
        "version at offset 20 needs 1000 bytes",
        BAD_LENGTH,
    ),
    (
        "session_call_args.json",
        68,
        r#"["code10_8"]"#,
        "the recorder has no name for float8_e4m3fn",
    ),
    ("session_func_arg_hand.json", 12, "written as", OTHER_FORM),
    ("session_func_arg_hand.json", 30, "written as", OTHER_FORM),
    ("session_func_arg_hand.json", 32, "written as", OTHER_FORM),
    ("session_func_arg_hand.json", 36, "written as", OTHER_FORM),
    (
        "session_func_arg_hand.json",
        38,
        r#""args":[5]"#,
        "made by hand: a bool of 5, which is true",
    ),
    ("session_func_arg_hand.json", 40, "pad=-1", PADDING),
    ("session_init_multihop.json", 33, "written as", HOP),
    ("session_module_hand.json", 6, "written as", OTHER_FORM),
    (
        "session_syscalls_hand.json",
        74,
        "expected a text, found an integer",
        BAD_ARGUMENT,
    ),
    ("session_syscalls_hand.json", 76, "means", BYTES_FOR_TEXT),
];

/// Replies that are not written as they were recorded.
pub(crate) const REPLIES: &[Exception] = &[
    ("fake_server_replies.json", 191, "written as", SAME_RESULT),
    ("fake_server_replies.json", 204, "written as", SAME_RESULT),
    ("fake_server_replies.json", 217, "written as", SAME_RESULT),
    ("fake_server_replies.json", 230, "written as", SAME_RESULT),
    ("fake_server_replies.json", 243, "written as", SAME_RESULT),
    ("fake_server_replies.json", 256, "written as", SAME_RESULT),
    ("fake_server_replies.json", 297, "written as", SAME_RESULT),
    (
        "fake_server_replies.json",
        310,
        "3 for a tensor, found 2 values",
        NO_RESULT,
    ),
    ("fake_server_replies.json", 353, "written as", SAME_RESULT),
    ("fake_server_replies.json", 379, "means", BEHIND_TEXT),
    ("fake_server_replies.json", 415, "found 99", UNKNOWN_CODE),
    (
        "fake_server_replies.json",
        429,
        "where nothing was due",
        NOT_ASKED,
    ),
    (
        "fake_server_replies.json",
        481,
        "2 bytes of a tensor, where 4",
        NOT_ASKED,
    ),
    (
        "fake_server_replies.json",
        504,
        "6 bytes of a tensor, where 4",
        NOT_ASKED,
    ),
    (
        "fake_server_replies.json",
        552,
        "where a copy ack or an exception was due",
        NOT_ASKED,
    ),
    ("session_init_multihop.json", 34, "written as", HOP),
    ("session_init_multihop.json", 35, "written as", HOP),
];

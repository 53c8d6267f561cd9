//! Packets that rightly do not come out as they were recorded.

use crate::exceptions::Exception;

const UNKNOWN_CODE: &str = "no such code";
const BAD_LENGTH: &str = "made by hand: the length of the packet is not that of its content";
const BAD_VALUE: &str = "made by hand: no value of the protocol";
const BAD_ARGUMENT: &str = "made by hand: not what this syscall takes";
const OTHER_FORM: &str =
    "made by hand: a form of the value that a receiver takes, but no client writes";
const HOP: &str = "a server that passes bytes on makes an object of them, also of few bytes";

/// Requests that are not written as they were recorded.
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
    ("malformed_packets.json", 205, "found 10", BAD_VALUE),
    ("malformed_packets.json", 213, "found 70", BAD_VALUE),
    (
        "malformed_packets.json",
        221,
        "expected 115 inside an object, found 999",
        BAD_VALUE,
    ),
    ("malformed_packets.json", 228, "found -1", BAD_VALUE),
    (
        "malformed_packets.json",
        236,
        "number of values at offset 12",
        BAD_VALUE,
    ),
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
    (
        "malformed_packets.json",
        261,
        "means",
        "made by hand: one argument too many, which is ignored",
    ),
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
    ("session_func_arg_hand.json", 28, "written as", OTHER_FORM),
    ("session_func_arg_hand.json", 30, "written as", OTHER_FORM),
    ("session_func_arg_hand.json", 32, "written as", OTHER_FORM),
    ("session_func_arg_hand.json", 36, "written as", OTHER_FORM),
    (
        "session_func_arg_hand.json",
        38,
        r#""args":[5]"#,
        "made by hand: a bool of 5, which is true",
    ),
    (
        "session_func_arg_hand.json",
        40,
        "pad=-1",
        "made by hand: padding of -1, which is ignored",
    ),
    ("session_init_multihop.json", 33, "written as", HOP),
    ("session_module_hand.json", 6, "written as", OTHER_FORM),
    (
        "session_syscalls_hand.json",
        46,
        "null",
        "made by hand: none for the default stream",
    ),
    (
        "session_syscalls_hand.json",
        74,
        "expected a text, found an integer",
        BAD_ARGUMENT,
    ),
    (
        "session_syscalls_hand.json",
        76,
        "means",
        "made by hand: bytes for a text, which a server takes, but no client writes",
    ),
];

const ANY_RETURN: &str = "made by hand: any return opens a session";
const SAME_RESULT: &str =
    "made by hand: a form of the result that a client takes, but no server writes";
const NO_RESULT: &str = "made by hand: no result of this request";
const NOT_ASKED: &str = "made by hand: breaks the session";

/// Replies that are not written as they were recorded.
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
        "expected a type index first, found none",
        NO_RESULT,
    ),
    (
        "fake_server_replies.json",
        181,
        "expected a type index first, found no value",
        NO_RESULT,
    ),
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
    (
        "fake_server_replies.json",
        379,
        "means",
        "made by hand: a value behind the text, which is ignored",
    ),
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

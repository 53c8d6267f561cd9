//! How a connection to a server or a proxy begins.

use rpc_recording::{Direction, Kind};

use super::assemble::{all, handshake, i32};
use super::vector::{Area, Status, Vector};

const SUCCESS: i32 = 0xff271;
const DUPLICATE: i32 = 0xff272;
const MISMATCH: i32 = 0xff273;

pub(super) fn area() -> Area {
    Area {
        name: "handshake",
        description: "What the connecting side says first (c2s), and its answer (s2c). A server connects \
                      to a proxy.",
        vectors: [openings(), answers(), no_openings(), no_answers()].concat(),
    }
}

fn message(
    direction: Direction,
    status: Status,
    name: &str,
    about: &str,
    bytes: Vec<u8>,
) -> Vector {
    Vector::new(Kind::Handshake, direction, status, name, about, bytes)
}

fn openings() -> Vec<Vector> {
    let opening = |status, name, about, key: &str| {
        message(
            Direction::C2s,
            status,
            name,
            about,
            handshake(SUCCESS, key.as_bytes()),
        )
    };
    use Status::{Accepted, Canonical};
    vec![
        opening(
            Canonical,
            "client",
            "A client names the match key.",
            "client:x1",
        ),
        opening(
            Canonical,
            "client-no-key",
            "A match key may be empty.",
            "client:",
        ),
        opening(
            Canonical,
            "client-of-a-tracker",
            "The match key that a tracker granted.",
            "client:x1:0.33779848957395986",
        ),
        opening(
            Canonical,
            "client-timeout",
            "A session timeout in whole seconds.",
            "client:x1 -timeout=60",
        ),
        opening(
            Canonical,
            "client-timeout-fraction",
            "A session timeout in parts of a second.",
            "client:x1 -timeout=0.5",
        ),
        opening(
            Canonical,
            "server",
            "A server connects to its proxy.",
            "server:x1",
        ),
        opening(
            Accepted,
            "client-unknown-option",
            "Options that nobody knows are ignored.",
            "client:x1 -foo=1",
        ),
        opening(
            Accepted,
            "client-blank",
            "Blanks mean nothing.",
            "  client:x1",
        ),
        opening(
            Accepted,
            "client-timeout-exponent",
            "A timeout is any way to write a number.",
            "client:x1 -timeout=6e1",
        ),
    ]
}

fn answers() -> Vec<Vector> {
    let answer = |status, name, about, bytes| message(Direction::S2c, status, name, about, bytes);
    use Status::{Accepted, Canonical};
    vec![
        answer(
            Canonical,
            "accepted",
            "A server names its key.",
            handshake(SUCCESS, b"server:x1"),
        ),
        answer(
            Canonical,
            "accepted-by-proxy",
            "A proxy passes on the whole key of the other side.",
            handshake(SUCCESS, b"client:x1 -timeout=30"),
        ),
        answer(
            Canonical,
            "duplicate",
            "Somebody with this key waits at the proxy already.",
            i32(DUPLICATE),
        ),
        answer(
            Canonical,
            "mismatch",
            "Another match key is expected.",
            i32(MISMATCH),
        ),
        answer(
            Accepted,
            "accepted-no-key",
            "What the other side calls itself may be empty.",
            handshake(SUCCESS, b""),
        ),
        answer(
            Accepted,
            "accepted-any-key",
            "It is text for people; no client looks at it.",
            handshake(SUCCESS, b"whatever"),
        ),
    ]
}

fn no_openings() -> Vec<Vector> {
    let wrong = |name, about, bytes| message(Direction::C2s, Status::Invalid, name, about, bytes);
    vec![
        wrong("magic-wrong", "No magic of the protocol.", i32(0x1234_5678)),
        wrong(
            "magic-of-a-tracker",
            "What is said to a tracker.",
            i32(0x2f271),
        ),
        wrong("magic-alone", "The key is missing.", i32(SUCCESS)),
        wrong(
            "key-negative",
            "A length is not negative.",
            all(&[i32(SUCCESS), i32(-5)]),
        ),
        wrong(
            "key-cut",
            "Three of nine bytes.",
            handshake(SUCCESS, b"client:x1")[..11].to_vec(),
        ),
        wrong(
            "key-longer",
            "The length counts bytes; this one counts characters.",
            all(&[i32(SUCCESS), i32(9), "client:ключ".as_bytes().to_vec()]),
        ),
        wrong(
            "key-not-utf8",
            "A key is UTF-8.",
            handshake(SUCCESS, b"client:\xff\xfe"),
        ),
        wrong(
            "key-no-role",
            "Neither a client nor a server.",
            handshake(SUCCESS, b"x1"),
        ),
        wrong(
            "key-empty",
            "Neither a client nor a server.",
            handshake(SUCCESS, b""),
        ),
        wrong(
            "timeout-text",
            "A timeout is a number.",
            handshake(SUCCESS, b"client:x1 -timeout=abc"),
        ),
        wrong(
            "timeout-negative",
            "A timeout is not negative.",
            handshake(SUCCESS, b"client:x1 -timeout=-1"),
        ),
    ]
}

fn no_answers() -> Vec<Vector> {
    let wrong = |name, about, bytes| message(Direction::S2c, Status::Invalid, name, about, bytes);
    vec![
        wrong("code-unknown", "No such code.", i32(0x123)),
        wrong(
            "code-of-a-tracker",
            "The answer of a tracker.",
            i32(0x2f271),
        ),
        wrong("code-cut", "Two of four bytes.", i32(SUCCESS)[..2].to_vec()),
        wrong(
            "answer-key-negative",
            "A length is not negative.",
            all(&[i32(SUCCESS), i32(-1)]),
        ),
        wrong(
            "answer-key-cut",
            "Three of nine bytes.",
            handshake(SUCCESS, b"server:x1")[..11].to_vec(),
        ),
        wrong(
            "mismatch-with-key",
            "A refusal has no key.",
            handshake(MISMATCH, b"server:x1"),
        ),
    ]
}

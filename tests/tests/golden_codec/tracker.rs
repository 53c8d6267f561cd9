//! The messages of trackers.

use rpc_proto::Limits;
use rpc_proto::tracker::{Connection, Reply, Request};

use crate::exceptions::{Exception, Verdict};
use crate::vectors::{Direction, Kind, Message, traces};

const NO_REQUEST: &str = "made by hand: no request";
const OTHER_TEXT: &str = "made by hand: JSON of the same meaning, which no client writes";

const GREETINGS: &[Exception] = &[(
    "tracker_errors.json",
    85,
    "written as",
    "made by hand: not the magic of the protocol",
)];

const REQUESTS: &[Exception] = &[
    (
        "tracker_basic.json",
        8,
        "null]",
        "made by hand: a PUT without a custom address, like one of null",
    ),
    ("tracker_errors.json", 2, "found [99]", NO_REQUEST),
    ("tracker_errors.json", 7, "found [0]", NO_REQUEST),
    ("tracker_errors.json", 32, "not JSON", NO_REQUEST),
    ("tracker_errors.json", 37, r#"found {"a":1}"#, NO_REQUEST),
    ("tracker_errors.json", 42, "found []", NO_REQUEST),
    ("tracker_errors.json", 47, r#"found [4,"dev"]"#, NO_REQUEST),
    ("tracker_errors.json", 52, r#"found [3,"dev"]"#, NO_REQUEST),
    ("tracker_errors.json", 57, r#"found ["1"]"#, NO_REQUEST),
    ("tracker_errors.json", 62, "written as", OTHER_TEXT),
    (
        "tracker_errors.json",
        68,
        "not JSON: invalid unicode",
        NO_REQUEST,
    ),
    ("tracker_errors.json", 81, "written as", OTHER_TEXT),
    ("tracker_nonascii.json", 6, "written as", OTHER_TEXT),
    ("tracker_nonascii.json", 14, "written as", OTHER_TEXT),
];

#[test]
fn greetings() {
    let mut greeting = Vec::new();
    let _ = Connection::new(Limits::default(), &mut greeting);
    check(GREETINGS, Kind::Magic, Direction::C2s, 41, |bytes| {
        same(&greeting, bytes)
    });
    check(&[], Kind::Magic, Direction::S2c, 39, |bytes| {
        same(&greeting, bytes)
    });
}

#[test]
fn requests() {
    check(REQUESTS, Kind::Json, Direction::C2s, 76, |bytes| {
        let request = Request::decode(&bytes[4..]).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        request.encode(Limits::default(), &mut out).unwrap();
        same(&out, bytes)
    });
}

#[test]
fn replies() {
    check(&[], Kind::Json, Direction::S2c, 79, |bytes| {
        let reply = Reply::decode(&bytes[4..]).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        reply.encode(Limits::default(), &mut out).unwrap();
        same(&out, bytes)
    });
}

fn check(
    exceptions: &'static [Exception],
    kind: Kind,
    dir: Direction,
    reproduced: usize,
    reproduce: impl Fn(&[u8]) -> Result<(), String>,
) {
    let mut verdict = Verdict::new(exceptions);
    for trace in traces() {
        let meant = |message: &&Message| message.kind == kind && message.dir == dir;
        for message in trace.messages.iter().filter(meant) {
            verdict.add(&trace.file, message.i, reproduce(&message.bytes()));
        }
    }
    verdict.assert(reproduced);
}

fn same(written: &[u8], recorded: &[u8]) -> Result<(), String> {
    if written == recorded {
        Ok(())
    } else {
        Err(format!("written as {}", written.escape_ascii()))
    }
}

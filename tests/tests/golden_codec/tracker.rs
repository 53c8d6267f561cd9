//! The messages of trackers.

use rpc_proto::Limits;
use rpc_proto::tracker::{Connection, Reply, Request};

use crate::exceptions::{Exception, Verdict};
use crate::vectors::{Direction, FFI, Kind, LEGACY, Message, Peers};

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
    let greeted = |bytes: &[u8]| same(&greeting, bytes);
    let (to, from) = ((Kind::Magic, Direction::C2s), (Kind::Magic, Direction::S2c));
    check(FFI, to, GREETINGS, 41, greeted);
    check(FFI, from, &[], 39, greeted);
    check(LEGACY, to, GREETINGS, 41, greeted);
    check(LEGACY, from, &[], 39, greeted);
}

#[test]
fn requests() {
    let request = |bytes: &[u8]| {
        let request = Request::decode(&bytes[4..]).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        request.encode(Limits::default(), &mut out).unwrap();
        same(&out, bytes)
    };
    let of = (Kind::Json, Direction::C2s);
    check(FFI, of, REQUESTS, 76, request);
    check(LEGACY, of, REQUESTS, 76, request);
}

#[test]
fn replies() {
    let reply = |bytes: &[u8]| {
        let reply = Reply::decode(&bytes[4..]).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        reply.encode(Limits::default(), &mut out).unwrap();
        same(&out, bytes)
    };
    let of = (Kind::Json, Direction::S2c);
    check(FFI, of, &[], 79, reply);
    check(LEGACY, of, &[], 79, reply);
}

fn check(
    peers: Peers,
    (kind, dir): (Kind, Direction),
    exceptions: &[Exception],
    reproduced: usize,
    reproduce: impl Fn(&[u8]) -> Result<(), String>,
) {
    let mut verdict = Verdict::new(&[exceptions]);
    for trace in peers.traces() {
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

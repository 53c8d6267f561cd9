//! What is said to trackers, and what they answer.

use rpc_recording::{Direction, Kind};

use super::assemble::{frame, i32};
use super::vector::{Area, Status, Vector};

const TRACKER: i32 = 0x2f271;
const SERVER: i32 = 0xff271;

pub(super) fn area() -> Area {
    Area {
        name: "tracker",
        description: "The greeting of both sides, and the frames of JSON behind it. A request goes c2s, \
                      its reply s2c.",
        vectors: [
            greetings(),
            requests(),
            replies(),
            no_requests(),
            no_replies(),
        ]
        .concat(),
    }
}

fn greetings() -> Vec<Vector> {
    use {Direction::*, Status::*};
    let greeting = |direction, status, name: &str, about: &str, bytes| {
        Vector::new(Kind::Magic, direction, status, name, about, bytes)
    };
    vec![
        greeting(
            C2s,
            Canonical,
            "greeting",
            "A peer greets, and waits for the same four bytes.",
            i32(TRACKER),
        ),
        greeting(
            S2c,
            Canonical,
            "greeting-reply",
            "The tracker greets back.",
            i32(TRACKER),
        ),
        greeting(
            C2s,
            Invalid,
            "greeting-wrong",
            "No magic of the protocol: a tracker closes.",
            i32(0x1234_5678),
        ),
        greeting(
            C2s,
            Invalid,
            "greeting-of-a-session",
            "What a client says to a server.",
            i32(SERVER),
        ),
        greeting(
            S2c,
            Invalid,
            "greeting-http",
            "What a web server might answer.",
            b"HTTP".to_vec(),
        ),
        greeting(
            S2c,
            Invalid,
            "greeting-cut",
            "Three of the four bytes.",
            i32(TRACKER)[..3].to_vec(),
        ),
    ]
}

fn json(direction: Direction, status: Status, name: &str, about: &str, text: &[u8]) -> Vector {
    Vector::new(Kind::Json, direction, status, name, about, frame(text))
}

fn requests() -> Vec<Vector> {
    let canonical = |name, about, text: &str| {
        json(
            Direction::C2s,
            Status::Canonical,
            name,
            about,
            text.as_bytes(),
        )
    };
    let accepted = |name, about, text: &str| {
        json(
            Direction::C2s,
            Status::Accepted,
            name,
            about,
            text.as_bytes(),
        )
    };
    vec![
        canonical("ping", "Is the tracker alive?", "[1]"),
        canonical(
            "stop",
            "Ends the tracker, for who knows its stop key.",
            r#"[2, "tracker:0.1"]"#,
        ),
        canonical(
            "put",
            "Offers a device at the address of this connection.",
            r#"[3, "dev", [9090, "dev:0.5"], null]"#,
        ),
        canonical(
            "put-custom-addr",
            "Offers a device at an address of its own.",
            r#"[3, "dev", [9090, "dev:0.125"], "10.1.2.3"]"#,
        ),
        canonical("request", "Asks for a device.", r#"[4, "dev", "", 1]"#),
        canonical(
            "request-priority",
            "Asks with a higher priority.",
            r#"[4, "dev", "", 5]"#,
        ),
        canonical(
            "request-low-priority",
            "A priority may be negative.",
            r#"[4, "dev", "", -1]"#,
        ),
        canonical(
            "request-fraction",
            "A priority may be any number.",
            r#"[4, "dev", "", 1.5]"#,
        ),
        canonical(
            "request-user",
            "Asks and says who asks.",
            r#"[4, "dev", "user", 1]"#,
        ),
        canonical(
            "update-info",
            "A server says who it is; the tracker knows the host.",
            r#"[5, {"key": "server:dev", "addr": [null, 9090]}]"#,
        ),
        canonical(
            "update-info-host",
            "A server says which host clients shall use.",
            r#"[5, {"key": "server:a", "addr": ["1.2.3.4", 1]}]"#,
        ),
        canonical(
            "update-info-proxy",
            "A proxy speaks for the servers behind it.",
            r#"[5, {"key": "server:proxy[x1]", "addr": [null, 17131]}]"#,
        ),
        canonical(
            "summary",
            "Asks for the state of queues and servers.",
            "[6]",
        ),
        canonical(
            "pending-match-keys",
            "Asks which offers of this connection nobody took.",
            "[7]",
        ),
        canonical(
            "request-not-ascii",
            "Text is written as ASCII.",
            r#"[4, "\u043a\u043b\u044e\u0447", "", 1]"#,
        ),
        accepted(
            "request-utf8",
            "Text may be UTF-8 as well.",
            r#"[4, "ключ", "", 1]"#,
        ),
        accepted(
            "put-short",
            "A custom address that is missing is none.",
            r#"[3, "dev", [9090, "dev:0.25"]]"#,
        ),
        accepted(
            "update-info-text-port",
            "A server of another make writes its port as text.",
            r#"[5, {"key": "server:dev", "addr": [null, "15201"]}]"#,
        ),
        accepted(
            "update-info-no-addr",
            "A server that does not say where it listens.",
            r#"[5, {"key": "server:dev"}]"#,
        ),
        accepted("ping-spaced", "White space means nothing.", " [ 1 ] \n"),
        accepted(
            "ping-float",
            "A code is a number, however it is written.",
            "[1.0]",
        ),
        accepted(
            "ping-more",
            "More than a request needs is ignored.",
            "[1, 2]",
        ),
    ]
}

fn replies() -> Vec<Vector> {
    let canonical = |name, about, text: &str| {
        json(
            Direction::S2c,
            Status::Canonical,
            name,
            about,
            text.as_bytes(),
        )
    };
    let accepted = |name, about, text: &str| {
        json(
            Direction::S2c,
            Status::Accepted,
            name,
            about,
            text.as_bytes(),
        )
    };
    vec![
        canonical("reply-done", "To PING, STOP, PUT and UPDATE_INFO.", "0"),
        canonical("reply-refused", "To a STOP with another key.", "-1"),
        canonical(
            "reply-granted",
            "To a REQUEST, when there is a device.",
            r#"[0, ["127.0.0.1", 9090, "dev:0.5"]]"#,
        ),
        canonical(
            "reply-granted-not-ascii",
            "Text is written as ASCII.",
            r#"[0, ["127.0.0.1", 1, "\u043a\u043b\u044e\u0447:0.5"]]"#,
        ),
        canonical(
            "reply-pending",
            "To GET_PENDING_MATCHKEYS: a list without a status, in any order.",
            r#"["dev:0.5", "dev:0.25", "dev:0.125"]"#,
        ),
        canonical(
            "reply-pending-none",
            "The same when all offers are taken.",
            "[]",
        ),
        canonical(
            "reply-summary",
            "To a SUMMARY.",
            r#"[0, {"queue_info": {"dev": {"free": 3, "pending": 0}}, "server_info": [{"key": "server:dev", "addr": ["127.0.0.1", 9090]}]}]"#,
        ),
        canonical(
            "reply-summary-waiting",
            "The same with requests that wait and no server.",
            r#"[0, {"queue_info": {"dev": {"free": 0, "pending": 4}}, "server_info": []}]"#,
        ),
        canonical(
            "reply-summary-nothing",
            "The same of a tracker that nobody has asked yet.",
            r#"[0, {"queue_info": {}, "server_info": []}]"#,
        ),
        accepted(
            "reply-summary-text-port",
            "A port that a server wrote as text comes back so.",
            r#"[0, {"queue_info": {}, "server_info": [{"key": "server:dev", "addr": ["127.0.0.1", "15201"]}]}]"#,
        ),
        accepted(
            "reply-refused-why",
            "A refusal may be a list that starts with its status.",
            r#"[-1, "no such key"]"#,
        ),
    ]
}

fn no_requests() -> Vec<Vector> {
    let bytes = |name: &str, about: &str, bytes: Vec<u8>| {
        Vector::new(
            Kind::Json,
            Direction::C2s,
            Status::Invalid,
            name,
            about,
            bytes,
        )
    };
    let text = |name, about, text: &str| {
        json(
            Direction::C2s,
            Status::Invalid,
            name,
            about,
            text.as_bytes(),
        )
    };
    vec![
        bytes("length-zero", "A frame has one byte at least.", i32(0)),
        bytes("length-negative", "A length is not negative.", i32(-1)),
        bytes(
            "length-too-large",
            "More than the 1 MiB that a tracker takes.",
            i32((1 << 20) + 1),
        ),
        bytes(
            "length-largest",
            "The most that the field holds.",
            i32(i32::MAX),
        ),
        bytes(
            "length-cut",
            "The length itself is not complete.",
            vec![3, 0, 0],
        ),
        bytes(
            "frame-cut",
            "Two of three bytes.",
            frame(b"[1]")[..6].to_vec(),
        ),
        text("not-json", "A list that does not end.", "[1"),
        text(
            "nan",
            "Python writes NaN, which is no JSON.",
            r#"[4, "dev", "", NaN]"#,
        ),
        json(
            Direction::C2s,
            Status::Invalid,
            "not-utf8",
            "JSON is UTF-8.",
            b"[4, \"\xff\xfe\", \"\", 1]",
        ),
        text("no-list", "A request is a list.", r#"{"a": 1}"#),
        text("empty-list", "A request has a code.", "[]"),
        text("code-unknown", "No such code.", "[99]"),
        text("code-zero", "Zero is a status, not a code.", "[0]"),
        text("code-text", "A code is a number.", r#"["1"]"#),
        text("stop-short", "STOP has a stop key.", "[2]"),
        text("put-too-short", "PUT has an offer.", r#"[3, "dev"]"#),
        text(
            "put-flat",
            "The offer of a PUT is a list.",
            r#"[3, "dev", 9090, "dev:0.5", null]"#,
        ),
        text(
            "put-port-zero",
            "No client can connect to port 0.",
            r#"[3, "dev", [0, "dev:0.5"], null]"#,
        ),
        text(
            "put-port-large",
            "A port has 16 bits.",
            r#"[3, "dev", [70000, "dev:0.5"], null]"#,
        ),
        text(
            "put-key-number",
            "A key is a text.",
            r#"[3, 1, [9090, "dev:0.5"], null]"#,
        ),
        text(
            "request-too-short",
            "REQUEST has a user and a priority.",
            r#"[4, "dev"]"#,
        ),
        text(
            "request-priority-text",
            "A priority is a number.",
            r#"[4, "dev", "", "high"]"#,
        ),
        text(
            "update-info-list",
            "UPDATE_INFO has an object.",
            r#"[5, ["server:dev"]]"#,
        ),
    ]
}

fn no_replies() -> Vec<Vector> {
    let text = |name, about, text: &str| {
        json(
            Direction::S2c,
            Status::Invalid,
            name,
            about,
            text.as_bytes(),
        )
    };
    vec![
        text("reply-null", "An answer is a status or a list.", "null"),
        text("reply-fraction", "A status is a whole number.", "0.5"),
        text(
            "reply-status-alone",
            "A list with a status has a result.",
            "[0]",
        ),
        text(
            "reply-granted-short",
            "A grant has host, port and match key.",
            r#"[0, ["127.0.0.1", 9090]]"#,
        ),
        text(
            "reply-granted-port",
            "A port has 16 bits.",
            r#"[0, ["127.0.0.1", 70000, "dev:0.5"]]"#,
        ),
        text(
            "reply-granted-host",
            "A host is a text.",
            r#"[0, [null, 9090, "dev:0.5"]]"#,
        ),
        text(
            "reply-pending-number",
            "Match keys are texts.",
            r#"["dev:0.5", 5]"#,
        ),
        text(
            "reply-summary-half",
            "A summary has queues and servers.",
            r#"[0, {"queue_info": {}}]"#,
        ),
    ]
}

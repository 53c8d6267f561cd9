//! The messages of handshakes.

use std::collections::BTreeMap;

use rpc_proto::Limits;
use rpc_proto::codes::HandshakeCode;
use rpc_proto::handshake::{Handshake, HandshakeError, SessionKey, put_accept, put_refuse};

use crate::exceptions::{Exception, Verdict};
use crate::vectors::{Direction, FFI, Kind, LEGACY, Peers};

const NO_MAGIC: &str = "made by hand: not the magic of the protocol";
const NO_CLIENT: &str = "made by hand: not the key of a client";

const OPENINGS: &[Exception] = &[
    ("handshake_bad.json", 0, "no key", NO_MAGIC),
    ("handshake_bad.json", 3, "no key", NO_MAGIC),
    ("handshake_bad.json", 7, r#"found "x1""#, NO_CLIENT),
    ("handshake_bad.json", 11, r#"found "server:x1""#, NO_CLIENT),
    (
        "handshake_bad.json",
        19,
        r#"found "abc""#,
        "made by hand: a timeout that is no number",
    ),
    ("handshake_bad.json", 23, r#"found """#, NO_CLIENT),
    ("handshake_bad.json", 26, r#"found """#, NO_CLIENT),
    (
        "handshake_bad.json",
        32,
        "invalid utf-8",
        "made by hand: keys are UTF-8",
    ),
    (
        "handshake_bad.json",
        41,
        "written as",
        "made by hand: a blank in front, which is ignored",
    ),
    (
        "proxy_mismatch_duplicate.json",
        18,
        "written as",
        "made by hand: an unknown option behind the timeout, where we write it before",
    ),
    ("proxy_mismatch_duplicate.json", 26, "no key", NO_MAGIC),
];

const ANSWERS: &[Exception] = &[(
    "fake_server_replies.json",
    1,
    "answered with bytes 23 01 00 00",
    NO_MAGIC,
)];

#[test]
fn openings() {
    // The same message, before which one more came from the first ones.
    let abc = |i| {
        (
            "proxy_mismatch_duplicate.json",
            i,
            r#"found "abc""#,
            NO_CLIENT,
        )
    };
    check_openings(FFI, abc(35), 159);
    check_openings(LEGACY, abc(34), 154);
}

fn check_openings(peers: Peers, own: Exception, reproduced: usize) {
    let mut verdict = Verdict::new(&[OPENINGS, &[own]]);
    for trace in peers.traces() {
        for message in trace
            .messages
            .iter()
            .filter(|message| message.kind == Kind::Handshake)
        {
            if message.dir == Direction::C2s {
                let to_proxy = trace.connections[message.conn].link.ends_with("proxy");
                verdict.add(&trace.file, message.i, opening(&message.bytes(), to_proxy));
            }
        }
    }
    verdict.assert(reproduced);
}

#[test]
fn answers() {
    check_answers(FFI, 158);
    check_answers(LEGACY, 153);
}

fn check_answers(peers: Peers, reproduced: usize) {
    let mut verdict = Verdict::new(&[ANSWERS]);
    for trace in peers.traces() {
        let mut handshakes = BTreeMap::new();
        for message in trace
            .messages
            .iter()
            .filter(|message| message.kind == Kind::Handshake)
        {
            let handshake = handshakes
                .entry(message.conn)
                .or_insert_with(|| Handshake::new("", Limits::default(), &mut Vec::new()).unwrap());
            if message.dir == Direction::S2c {
                verdict.add(&trace.file, message.i, answer(handshake, &message.bytes()));
            }
        }
    }
    verdict.assert(reproduced);
}

/// Reads the key of the side that connects as a server or a proxy does, and opens with it. To a proxy that
/// side may be a server.
fn opening(bytes: &[u8], to_proxy: bool) -> Result<(), String> {
    let key = bytes.get(8..).ok_or("no key")?;
    let key = str::from_utf8(key).map_err(|error| error.to_string())?;
    let key = if to_proxy && key.starts_with("server:") {
        key.to_owned()
    } else {
        SessionKey::parse(key)
            .map_err(|error| error.to_string())?
            .to_string()
    };
    let mut out = Vec::new();
    Handshake::new(&key, Limits::default(), &mut out).map_err(|error| error.to_string())?;
    if out == bytes {
        Ok(())
    } else {
        Err(format!("written as {}", out.escape_ascii()))
    }
}

/// Reads an answer one byte at a time, and answers the same.
fn answer(handshake: &mut Handshake, bytes: &[u8]) -> Result<(), String> {
    let mut out = Vec::new();
    for byte in bytes {
        match handshake.receive(&[*byte]) {
            Ok(progress) => {
                assert_eq!(progress.consumed, 1);
                if let Some(accepted) = progress.accepted {
                    put_accept(&accepted.key, Limits::default(), &mut out).unwrap();
                }
            }
            Err(HandshakeError::Mismatch) => put_refuse(HandshakeCode::MISMATCH, &mut out),
            Err(HandshakeError::Duplicate) => put_refuse(HandshakeCode::DUPLICATE, &mut out),
            Err(error) => return Err(error.to_string()),
        }
    }
    if out == bytes {
        Ok(())
    } else {
        Err(format!("written as {}", out.escape_ascii()))
    }
}

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::error::in_full;

/// Recorded from apache-tvm 0.27.0.post1: the answer of the server whose key is "x1".
const ACCEPTED: &[u8] = b"\x71\xf2\x0f\x00\x09\x00\x00\x00server:x1";

fn handshake() -> Handshake {
    Handshake::new("client:x1", Limits::default(), &mut Vec::new()).unwrap()
}

fn accepted(key: &str) -> Option<Accepted> {
    Some(Accepted { key: key.into() })
}

/// Hands over one byte at a time.
fn slowly(input: &[u8]) -> Result<Option<Accepted>, HandshakeError> {
    let mut handshake = handshake();
    for (at, byte) in input.iter().enumerate() {
        let progress = handshake.receive(&[*byte])?;
        assert_eq!(progress.consumed, 1);
        if progress.accepted.is_some() {
            assert_eq!(at + 1, input.len());
            return Ok(progress.accepted);
        }
    }
    Ok(None)
}

#[test]
fn opens_as_the_reference_client_does() {
    // Recorded from apache-tvm 0.27.0.post1: session_timeout = 0, 60, 0.5, 7.25.
    let recorded: [(u64, &[u8]); 4] = [
        (0, b"\x71\xf2\x0f\x00\x09\x00\x00\x00client:x1"),
        (
            60_000,
            b"\x71\xf2\x0f\x00\x15\x00\x00\x00client:x1 -timeout=60",
        ),
        (
            500,
            b"\x71\xf2\x0f\x00\x16\x00\x00\x00client:x1 -timeout=0.5",
        ),
        (
            7250,
            b"\x71\xf2\x0f\x00\x17\x00\x00\x00client:x1 -timeout=7.25",
        ),
    ];
    for (millis, bytes) in recorded {
        let key = SessionKey::new("x1")
            .unwrap()
            .with_timeout(Duration::from_millis(millis));
        let mut out = Vec::new();
        Handshake::new(&key.to_string(), Limits::default(), &mut out).unwrap();
        assert_eq!(out, bytes);
    }
    // Recorded too: the length counts bytes.
    let mut out = Vec::new();
    Handshake::new("client:кл", Limits::default(), &mut out).unwrap();
    assert_eq!(
        out,
        b"\x71\xf2\x0f\x00\x0b\x00\x00\x00client:\xd0\xba\xd0\xbb"
    );
}

#[test]
fn is_accepted_in_one_piece_and_in_many() {
    let progress = handshake().receive(ACCEPTED).unwrap();
    assert_eq!(progress.consumed, 17);
    assert_eq!(progress.accepted, accepted("server:x1"));
    assert_eq!(slowly(ACCEPTED), Ok(accepted("server:x1")));
}

#[test]
fn leaves_what_belongs_to_packets() {
    let mut both = ACCEPTED.to_vec();
    both.extend_from_slice(b"\x0c\x00\x00\x00\x00\x00\x00\x00");
    let mut handshake = handshake();
    assert_eq!(handshake.receive(&both).unwrap().consumed, 17);
    assert_eq!(handshake.needed(), 0);
    let after = handshake.receive(&both[17..]).unwrap();
    assert_eq!((after.consumed, after.accepted), (0, None));
}

#[test]
fn the_text_of_the_peers_key_does_not_matter() {
    let empty = b"\x71\xf2\x0f\x00\x00\x00\x00\x00";
    assert_eq!(slowly(empty), Ok(accepted("")));
    // Recorded from apache-tvm 0.27.0.post1: a length in characters cuts the key "server:кл".
    let cut = b"\x71\xf2\x0f\x00\x09\x00\x00\x00server:\xd0\xba";
    assert_eq!(slowly(cut), Ok(accepted("server:к")));
    let not_utf8 = b"\x71\xf2\x0f\x00\x02\x00\x00\x00\xff\xfe";
    assert_eq!(slowly(not_utf8), Ok(accepted("\u{fffd}\u{fffd}")));
}

#[test]
fn refusals_are_told_apart() {
    // The first one recorded from apache-tvm 0.27.0.post1.
    assert_eq!(slowly(b"\x73\xf2\x0f\x00"), Err(HandshakeError::Mismatch));
    assert_eq!(slowly(b"\x72\xf2\x0f\x00"), Err(HandshakeError::Duplicate));
}

#[test]
fn strangers_are_named() {
    let says = |input: &[u8]| in_full(&handshake().receive(input).unwrap_err());
    assert_eq!(
        says(b"\x71\xf2\x02\x00"),
        "not a TVM RPC server: answered with bytes 71 f2 02 00 (this is a tracker)"
    );
    assert_eq!(
        says(b"HTTP/1.1 400 Bad Request\r\n"),
        "not a TVM RPC server: answered with bytes 48 54 54 50 2f 31 2e 31 20 34 30 30 20 42 61 64 \
         \"HTTP/1.1 400 Bad\" (this is an HTTP server)"
    );
    assert_eq!(
        says(b"\x00\x01\x02\x03"),
        "not a TVM RPC server: answered with bytes 00 01 02 03"
    );
}

#[test]
fn every_cut_says_how_much_came() {
    for cut in 0..ACCEPTED.len() {
        let mut handshake = handshake();
        let progress = handshake.receive(&ACCEPTED[..cut]).unwrap();
        assert_eq!((progress.consumed, progress.accepted), (cut, None));
        let needed = match cut {
            0..4 => 4,
            4..8 => 8,
            _ => 17,
        };
        let received = cut as u64;
        assert_eq!(handshake.end(), HandshakeError::Closed { received, needed });
    }
    let mut handshake = handshake();
    handshake.receive(&ACCEPTED[..5]).unwrap();
    assert_eq!(
        handshake.end().to_string(),
        "server closed during handshake (5 of 8 bytes)"
    );
}

#[test]
fn lengths_are_checked_before_anything_is_taken() {
    let with_length = |length: i32| {
        let mut out = RPC_MAGIC.to_le_bytes().to_vec();
        out.put_i32(length);
        out
    };
    assert_eq!(handshake().receive(&with_length(4096)).unwrap().consumed, 8);
    for (length, says) in [
        (
            4097,
            "at offset 4: length of the peer's key is 4097, more than the limit of 4096",
        ),
        (
            -1,
            "length of the peer's key at offset 4: expected a count of at least 0, found -1",
        ),
    ] {
        let error = handshake().receive(&with_length(length)).unwrap_err();
        assert_eq!(
            in_full(&error),
            format!("the server's answer to the handshake is wrong: {says}")
        );
    }
    let mut out = Vec::new();
    let limits = Limits::default().with_key(8);
    let error = Handshake::new("client:x1", limits, &mut out).unwrap_err();
    assert_eq!((error.found, error.limit), (9, 8));
    assert!(out.is_empty());
}

#[test]
fn a_server_answers_in_bytes() {
    let mut out = Vec::new();
    put_accept("server:x1", Limits::default(), &mut out).unwrap();
    assert_eq!(out, ACCEPTED);
    out.clear();
    put_accept("server:кл", Limits::default(), &mut out).unwrap();
    assert_eq!(slowly(&out), Ok(accepted("server:кл")));
    out.clear();
    put_refuse(HandshakeCode::MISMATCH, &mut out);
    assert_eq!(out, b"\x73\xf2\x0f\x00");
}

proptest! {
    #[test]
    fn arbitrary_answers_are_harmless(input in any::<Vec<u8>>()) {
        let mut handshake = handshake();
        if let Ok(progress) = handshake.receive(&input) {
            prop_assert!(progress.consumed <= input.len());
        }
        prop_assert!(handshake.received.capacity() <= 8 + 2 * input.len());
    }

    #[test]
    fn memory_grows_with_what_came_and_not_with_what_was_announced(
        length in prop_oneof![0..=4096, any::<i32>()],
        key in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let input = [&ACCEPTED[..4], &i32::to_le_bytes(length), &key].concat();
        let mut handshake = handshake();
        let received = handshake.receive(&input);
        prop_assert_eq!(received.is_ok(), (0..=4096).contains(&length));
        let taken = handshake.received.capacity();
        prop_assert!(taken <= 2 * input.len(), "{} bytes after {}", taken, input.len());
    }

    #[test]
    fn pieces_make_no_difference(key in any::<String>(), behind in any::<Vec<u8>>(), size in 1..9usize) {
        let mut input = Vec::new();
        put_accept(&key, Limits::default(), &mut input)?;
        let end = input.len();
        input.extend(behind);
        let mut handshake = handshake();
        let mut at = 0;
        let found = loop {
            let piece = &input[at..input.len().min(at + size)];
            let progress = handshake.receive(piece)?;
            at += progress.consumed;
            if let Some(accepted) = progress.accepted {
                break accepted;
            }
        };
        prop_assert_eq!((found.key, at), (key, end));
    }
}

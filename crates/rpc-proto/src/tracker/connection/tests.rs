use proptest::prelude::*;

use super::*;
use crate::error::in_full;
use crate::tracker::Allocation;

/// Recorded from the tracker of apache-tvm 0.27.0.post1: the answer to a REQUEST.
const GRANTED: &[u8] = b"\x23\0\0\0[0, [\"127.0.0.1\", 9090, \"dev:0.5\"]]";

fn connected(limits: Limits) -> Connection {
    let mut connection = Connection::new(limits, &mut Vec::new());
    let ready = connection.receive(b"\x71\xf2\x02\x00");
    assert_eq!(ready, Ok(Some(Event::Ready)));
    connection
}

fn waiting() -> Connection {
    let mut connection = connected(Limits::default());
    let mut out = Vec::new();
    connection.send(&Request::Ping, &mut out).unwrap();
    assert_eq!(out, b"\x03\0\0\0[1]");
    connection
}

fn granted() -> Event {
    Event::Reply(Reply::Granted(Allocation {
        host: "127.0.0.1".into(),
        port: 9090,
        match_key: "dev:0.5".into(),
    }))
}

#[test]
fn greets_alone_and_waits_for_the_echo() {
    let mut out = Vec::new();
    let mut connection = Connection::new(Limits::default(), &mut out);
    assert_eq!(out, b"\x71\xf2\x02\x00");
    let early = connection.send(&Request::Ping, &mut out);
    assert_eq!(early, Err(ConnectionError::Busy));
    assert_eq!(out.len(), 4);
    for byte in b"\x71\xf2\x02" {
        assert_eq!(connection.receive(&[*byte]), Ok(None));
    }
    assert_eq!(connection.receive(b"\x00"), Ok(Some(Event::Ready)));
    assert!(connection.is_idle());
}

#[test]
fn strangers_are_named() {
    let says = |input: &[u8]| {
        let mut connection = Connection::new(Limits::default(), &mut Vec::new());
        in_full(&connection.receive(input).unwrap_err())
    };
    assert_eq!(
        says(b"HTTP/1.1 400 Bad Request\r\n"),
        "not an RPC tracker: answered with bytes 48 54 54 50 2f 31 2e 31 20 34 30 30 20 42 61 64 \
         \"HTTP/1.1 400 Bad\" (this is an HTTP server)"
    );
    assert_eq!(
        says(b"\x71\xf2\x0f\x00"),
        "not an RPC tracker: answered with bytes 71 f2 0f 00 (this is an RPC server or proxy)"
    );
    assert_eq!(says(b"\xff"), "not an RPC tracker: answered with bytes ff");
    let closed = Connection::new(Limits::default(), &mut Vec::new()).end();
    assert_eq!(
        closed.to_string(),
        "not an RPC tracker: closed the connection after 0 of the 4 bytes of a greeting"
    );
}

#[test]
fn every_cut_of_a_reply_says_how_much_came() {
    for cut in 0..GRANTED.len() {
        let mut connection = waiting();
        assert_eq!(connection.receive(&GRANTED[..cut]), Ok(None));
        let received = cut as u64;
        let needed = if cut < 4 { 4 } else { 39 };
        assert_eq!(
            connection.end(),
            ConnectionError::ClosedInReply { received, needed }
        );
        assert_eq!(connection.receive(&GRANTED[cut..]), Ok(Some(granted())));
        assert_eq!(connection.end(), ConnectionError::Closed);
    }
}

#[test]
fn one_request_at_a_time() {
    let mut connection = waiting();
    let mut out = Vec::new();
    assert_eq!(
        connection.send(&Request::Ping, &mut out),
        Err(ConnectionError::Busy)
    );
    assert!(out.is_empty());
    assert_eq!(connection.receive(GRANTED), Ok(Some(granted())));
    assert_eq!(connection.send(&Request::Ping, &mut out), Ok(()));
}

#[test]
fn bytes_that_nobody_asked_for_break_the_connection() {
    let bytes = |bytes| Err(ConnectionError::Unrequested { bytes });
    let mut late = connected(Limits::default());
    assert_eq!(late.receive(b"\x01\0\0\x000"), bytes(5));
    assert_eq!(
        late.send(&Request::Ping, &mut Vec::new()),
        Err(ConnectionError::Broken)
    );
    assert_eq!(waiting().receive(b"\x01\0\0\x000\x01"), bytes(1));
    let mut early = Connection::new(Limits::default(), &mut Vec::new());
    assert_eq!(early.receive(b"\x71\xf2\x02\x00\x01\0\0\x000"), bytes(5));
}

#[test]
fn lengths_are_checked_before_anything_is_taken() {
    for (length, says) in [
        (
            0,
            "length of a tracker's frame at offset 0: expected a length of at least 1, found 0",
        ),
        (
            -1,
            "length of a tracker's frame at offset 0: expected a count of at least 0, found -1",
        ),
        (
            0x100_0001,
            "at offset 0: length of a tracker's frame is 16777217, more than the limit of 16777216",
        ),
        (
            i32::MAX,
            "at offset 0: length of a tracker's frame is 2147483647, more than the limit of 16777216",
        ),
    ] {
        let mut connection = waiting();
        let error = connection.receive(&i32::to_le_bytes(length)).unwrap_err();
        assert_eq!(
            in_full(&error),
            format!("the tracker's reply is wrong: {says}")
        );
        assert_eq!(connection.end(), ConnectionError::Broken);
    }
    assert_eq!(waiting().receive(&i32::to_le_bytes(0x100_0000)), Ok(None));
}

#[test]
fn a_reply_may_be_longer_than_a_request() {
    // The size of a summary of 20,000 servers.
    let text = format!("[{}]", vec![r#""dev:0.5""#; 120_000].join(","));
    assert!(text.len() > 0x10_0000);
    let length = u32::try_from(text.len()).unwrap();
    let mut connection = waiting();
    assert_eq!(connection.receive(&length.to_le_bytes()), Ok(None));
    let reply = connection.receive(text.as_bytes()).unwrap();
    let Some(Event::Reply(Reply::PendingMatchKeys(keys))) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(keys.len(), 120_000);
}

#[test]
fn memory_grows_with_what_came_and_not_with_what_was_announced() {
    let mut connection = waiting();
    connection.receive(&i32::to_le_bytes(0x100_0000)).unwrap();
    connection.receive(&[b' '; 1000]).unwrap();
    let taken = connection.received.capacity();
    assert!(taken <= 2 * 1004, "{taken} bytes");
}

#[test]
fn a_refusal_leaves_the_connection_usable_and_a_broken_reply_does_not() {
    let mut connection = waiting();
    let refused = connection.receive(b"\x02\0\0\0-1");
    assert_eq!(refused, Ok(Some(Event::Reply(Reply::refused()))));
    assert!(connection.is_idle());

    let mut connection = waiting();
    let error = connection.receive(b"\x03\0\0\0NaN").unwrap_err();
    assert_eq!(
        in_full(&error),
        "the tracker's reply is wrong: not JSON: expected value at line 1 column 1: NaN"
    );
    assert!(!connection.is_idle());
}

#[test]
fn a_request_over_the_limit_is_not_sent() {
    let mut connection = connected(Limits::default().with_tracker_frame(2));
    let mut out = Vec::new();
    let error = connection.send(&Request::Ping, &mut out).unwrap_err();
    assert!(matches!(error, ConnectionError::TooLarge(_)), "{error}");
    assert!(out.is_empty() && connection.is_idle());
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_harmless(pieces: Vec<Vec<u8>>, greeted: bool, length in 0..64i32) {
        let limits = Limits::default().with_tracker_reply(32);
        let mut connection = Connection::new(limits, &mut Vec::new());
        if greeted {
            connection = connected(limits);
            connection.send(&Request::Ping, &mut Vec::new())?;
            let _ = connection.receive(&length.to_le_bytes());
        }
        for piece in pieces {
            let _ = connection.receive(&piece);
            let _ = connection.end();
            prop_assert!(connection.received.capacity() <= 2 * (4 + 32));
        }
    }

    #[test]
    fn pieces_make_no_difference(size in 1..40usize) {
        let mut connection = waiting();
        let mut last = None;
        for piece in GRANTED.chunks(size) {
            prop_assert_eq!(&last, &None);
            last = connection.receive(piece)?;
        }
        prop_assert_eq!(last, Some(granted()));
    }
}

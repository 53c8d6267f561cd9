use proptest::prelude::*;

use super::*;
use crate::error::in_full;
use crate::tracker::{Port, Priority, Reply, ServerAddr, ServerInfo};

const GREETING: &[u8] = b"\x71\xf2\x02\x00";

fn connection() -> ServingConnection {
    ServingConnection::new(Limits::default())
}

/// All requests of one piece.
fn receive(
    connection: &mut ServingConnection,
    mut input: &[u8],
    out: &mut Vec<u8>,
) -> Result<Vec<Request>, ServingError> {
    let mut requests = Vec::new();
    while let Some(request) = connection.receive(&mut input, out)? {
        requests.push(request);
    }
    assert!(input.is_empty(), "all of a piece is taken");
    Ok(requests)
}

fn greeted(limits: Limits) -> ServingConnection {
    let mut connection = ServingConnection::new(limits);
    let mut out = Vec::new();
    assert_eq!(receive(&mut connection, GREETING, &mut out), Ok(vec![]));
    assert_eq!(out, GREETING);
    connection
}

/// What a connection says of bytes that follow the greeting.
fn says(limits: Limits, input: &[u8]) -> String {
    let mut connection = greeted(limits);
    let error = receive(&mut connection, input, &mut Vec::new()).unwrap_err();
    let again = connection.receive(&mut &b"\x03\0\0\0[1]"[..], &mut Vec::new());
    assert_eq!(again, Err(ServingError::Broken));
    in_full(&error)
}

fn conversation() -> (Vec<u8>, Vec<Request>) {
    let requests = vec![
        Request::Ping,
        Request::UpdateInfo(ServerInfo {
            key: "server:ключ".into(),
            addr: Some(ServerAddr {
                host: None,
                port: Port::Text("9090".into()),
            }),
        }),
        Request::Put {
            key: "k:1".into(),
            port: 9090,
            match_key: "k:1:0.5".into(),
            custom_addr: Some("a \"name\"".into()),
        },
        Request::Request {
            key: "k:1".into(),
            user: String::new(),
            priority: Priority::from(2),
        },
        Request::Summary,
    ];
    let mut bytes = GREETING.to_vec();
    for request in &requests {
        request.encode(Limits::default(), &mut bytes).unwrap();
    }
    (bytes, requests)
}

#[test]
fn a_conversation_may_be_cut_anywhere() {
    let (bytes, requests) = conversation();
    for cut in 0..=bytes.len() {
        let (mut connection, mut out) = (connection(), Vec::new());
        let (first, second) = bytes.split_at(cut);
        let mut came = receive(&mut connection, first, &mut out).unwrap();
        came.extend(receive(&mut connection, second, &mut out).unwrap());
        assert_eq!(came, requests);
        assert_eq!(out, GREETING, "it greets once");
        assert_eq!(connection.end(), None);
    }
}

#[test]
fn a_conversation_may_come_byte_by_byte() {
    let (bytes, requests) = conversation();
    let (mut connection, mut out) = (connection(), Vec::new());
    let mut came = Vec::new();
    for byte in bytes.chunks(1) {
        came.extend(receive(&mut connection, byte, &mut out).unwrap());
    }
    assert_eq!(came, requests);
    assert_eq!(out, GREETING);
}

#[test]
fn greets_as_soon_as_it_was_greeted() {
    let (mut connection, mut out) = (connection(), Vec::new());
    for byte in GREETING.chunks(1) {
        assert!(!connection.is_greeted());
        assert!(out.is_empty());
        assert_eq!(receive(&mut connection, byte, &mut out), Ok(vec![]));
    }
    assert!(connection.is_greeted());
    assert_eq!(out, GREETING);
}

#[test]
fn strangers_are_named_and_not_greeted() {
    for (input, what) in [
        (
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            "it began with bytes 47 45 54 20 2f 20 48 54 54 50 2f 31 2e 31 0d 0a",
        ),
        (b"\xff", "it began with bytes ff"),
        (b"\x00\x02\xf2\x71", "it began with bytes 00 02 f2 71"),
        (
            b"\x71\xf2\x0f\x00\x09\x00\x00\x00client:x1",
            "it takes this for an RPC server or proxy",
        ),
    ] {
        let (mut connection, mut out) = (connection(), Vec::new());
        let error = receive(&mut connection, input, &mut out).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("not a peer of a tracker: {what}")
        );
        assert!(out.is_empty());
        assert!(!connection.is_greeted());
    }
}

#[test]
fn lengths_are_checked_before_anything_is_taken() {
    let limits = Limits::default();
    let field = "the peer's frame is wrong: length of a tracker's frame at offset 0";
    let over = |found: u32| {
        format!(
            "the peer's frame is wrong: at offset 0: \
             length of a tracker's frame is {found}, more than the limit of 1048576"
        )
    };
    for (length, what) in [
        (
            0,
            format!("{field}: expected a length of at least 1, found 0"),
        ),
        (
            -1,
            format!("{field}: expected a count of at least 0, found -1"),
        ),
        (
            i32::MIN,
            format!("{field}: expected a count of at least 0, found -2147483648"),
        ),
        (1_048_577, over(1_048_577)),
        (i32::MAX, over(2_147_483_647)),
    ] {
        assert_eq!(says(limits, &length.to_le_bytes()), what);
    }
    // A length that is allowed takes no memory either before there is something to put in.
    let mut connection = greeted(limits);
    receive(
        &mut connection,
        &1_048_576_i32.to_le_bytes(),
        &mut Vec::new(),
    )
    .unwrap();
    assert!(connection.received.capacity() < 100);
}

#[test]
fn what_is_no_request_breaks_the_connection() {
    for (text, what) in [
        (
            &b"[1"[..],
            "not JSON: EOF while parsing a list at line 1 column 2: [1",
        ),
        (
            b"{}",
            "request: expected an array that starts with a code, found {}",
        ),
        (b"[99]", "request: expected a code from 1 to 7, found [99]"),
        (b"[0]", "request: expected a code from 1 to 7, found [0]"),
        (
            b"[\"1\"]",
            "request: expected an array that starts with a code, found [\"1\"]",
        ),
        (b"[4, null, \"\", 1]", "key: expected a string, found null"),
        (
            b"[3, \"k\"]",
            "request: expected [3, key, [port, match key], address or null], found [3,\"k\"]",
        ),
        (
            b"[5, {\"key\": 5, \"addr\": [null, 1]}]",
            "key: expected a string, found 5",
        ),
    ] {
        let mut frame = i32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
        frame.extend_from_slice(text);
        assert_eq!(
            says(Limits::default(), &frame),
            format!("the peer's request is wrong: {what}")
        );
    }
    let not_a_number = says(Limits::default(), b"\x10\0\0\0[4, \"k\", \"\", NaN]");
    assert!(not_a_number.contains("not JSON"), "{not_a_number}");
    let not_text = says(Limits::default(), b"\x03\0\0\0\xff\xff\xff");
    assert!(not_text.contains("not JSON"), "{not_text}");
}

#[test]
fn requests_ahead_of_a_wrong_one_count() {
    let mut connection = greeted(Limits::default());
    let mut input = &b"\x03\0\0\0[1]\x03\0\0\0[1]\0\0\0\0\x03\0\0\0[1]"[..];
    let mut out = Vec::new();
    assert_eq!(
        connection.receive(&mut input, &mut out),
        Ok(Some(Request::Ping))
    );
    assert_eq!(
        connection.receive(&mut input, &mut out),
        Ok(Some(Request::Ping))
    );
    assert!(connection.receive(&mut input, &mut out).is_err());
    assert_eq!(connection.end(), Some(ServingError::Broken));
}

#[test]
fn an_end_inside_a_message_is_told() {
    let closed = |received, needed| Some(ServingError::Closed { received, needed });
    let mut connection = connection();
    assert_eq!(connection.end(), None);
    assert!(connection.is_inside_message(), "a greeting is due");
    for (piece, end) in [
        (&b"\x71\xf2"[..], closed(2, 4)),
        (b"\x02\x00", None),
        (b"\x03\0", closed(2, 4)),
        (b"\0\0", closed(4, 7)),
        (b"[1", closed(6, 7)),
        (b"]", None),
    ] {
        receive(&mut connection, piece, &mut Vec::new()).unwrap();
        assert_eq!(connection.is_inside_message(), end.is_some());
        assert_eq!(connection.end(), end);
    }
}

#[test]
fn an_idle_connection_keeps_no_memory() {
    let mut connection = greeted(Limits::default());
    assert_eq!(connection.received.capacity(), 0);
    let text = format!("[2, \"{}\"]", "x".repeat(100_000));
    let mut frame = Vec::new();
    crate::tracker::json::put_text(text.as_bytes(), 1 << 20, &mut frame).unwrap();
    for piece in frame.chunks(4096) {
        receive(&mut connection, piece, &mut Vec::new()).unwrap();
    }
    assert_eq!(connection.received.capacity(), 0);
}

#[test]
fn both_ends_understand_each_other() {
    use crate::tracker::{Connection, Event};

    let (mut to_tracker, mut to_client) = (Vec::new(), Vec::new());
    let mut client = Connection::new(Limits::default(), &mut to_tracker);
    let mut tracker = connection();
    assert_eq!(
        receive(&mut tracker, &to_tracker, &mut to_client),
        Ok(vec![])
    );
    assert_eq!(client.receive(&to_client), Ok(Some(Event::Ready)));

    to_tracker.clear();
    to_client.clear();
    client
        .send(&Request::PendingMatchKeys, &mut to_tracker)
        .unwrap();
    assert_eq!(
        receive(&mut tracker, &to_tracker, &mut to_client),
        Ok(vec![Request::PendingMatchKeys])
    );
    let reply = Reply::PendingMatchKeys(vec!["k:0.5".into()]);
    reply.encode(Limits::default(), &mut to_client).unwrap();
    assert_eq!(client.receive(&to_client), Ok(Some(Event::Reply(reply))));
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same(sizes in prop::collection::vec(1_usize..40, 1..60)) {
        let (bytes, requests) = conversation();
        let (mut connection, mut out) = (connection(), Vec::new());
        let (mut came, mut rest) = (Vec::new(), bytes.as_slice());
        for size in sizes.into_iter().cycle() {
            let (piece, behind) = rest.split_at(size.min(rest.len()));
            came.extend(receive(&mut connection, piece, &mut out)?);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(came, requests);
        prop_assert_eq!(out, GREETING);
    }

    #[test]
    fn arbitrary_bytes_are_harmless(bytes: Vec<u8>, is_greeted: bool) {
        let mut connection = if is_greeted { greeted(Limits::default()) } else { connection() };
        let mut input = bytes.as_slice();
        while let Ok(Some(_)) = connection.receive(&mut input, &mut Vec::new()) {}
        prop_assert!(connection.received.len() <= bytes.len());
    }
}

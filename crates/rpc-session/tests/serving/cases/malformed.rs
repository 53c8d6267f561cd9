//! Clients that break the protocol.

use std::thread;

use rpc_proto::{Packet, Value, Values};
use rpc_session::ServeError;

use super::server::{Server, serve_memory};
use crate::support::memory::Memory;
use crate::support::{Stage, call, chain, encoded, init, tensor};

fn packet(code: i32, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let nbytes = body.len() as u64 + 4;
    [&nbytes.to_le_bytes()[..], &code.to_le_bytes(), &body].concat()
}

fn i32s(values: &[i32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn u64s(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

const INIT: i32 = 2;
const CALL: i32 = 3;
const COPY_TO: i32 = 7;
const LOOK_UP: i32 = 9;

/// A tensor with this count of dimensions, and nothing behind its data type.
fn tensor_of(dimensions: i32) -> Vec<u8> {
    [
        u64s(&[0x1000]),
        i32s(&[1, 0, dimensions]),
        vec![2, 32, 1, 0],
    ]
    .concat()
}

/// A call of function 1, up to its arguments.
fn call_of(args: &[u8]) -> Vec<u8> {
    packet(CALL, &[&u64s(&[1]), args])
}

/// A packet that says that it is so long, whatever it is.
fn announced(nbytes: u64, mut packet: Vec<u8>) -> Vec<u8> {
    packet[..8].copy_from_slice(&nbytes.to_le_bytes());
    packet
}

/// What cannot be understood, and what is said of it.
fn rows() -> Vec<(Vec<u8>, &'static str)> {
    let answers = [
        Packet::void(),
        Packet::Exception { text: "x".into() },
        Packet::CopyAck { nbytes: 1 << 33 },
    ];
    let text = |length: u64| [i32s(&[1, 8]), u64s(&[length]), b"name".to_vec()].concat();
    let mut rows = vec![
        (packet(0, &[]), "expected a code from 1 to 21, found 0"),
        (packet(22, &[]), "found 22"),
        (packet(99, &[&[0; 100]]), "found 99"),
        (packet(-1, &[]), "found -1"),
        (
            u64s(&[2]),
            "expected 0, or at least 4 for the code, found 2",
        ),
        (u64s(&[1]), "found 1"),
        (
            u64s(&[1 << 62]),
            "packet length is 4611686018427387904, more than the limit",
        ),
        (
            u64s(&[u64::MAX]),
            "packet length is 18446744073709551615, more than",
        ),
        (
            announced(1 << 36, packet(LOOK_UP, &[])),
            "packet is 68719476744, more than the limit of 16777216",
        ),
        // One byte too few, and too many.
        (
            announced(34, packet(LOOK_UP, &[&text(15), b"0123456789a"])),
            "text at offset 28 needs 15",
        ),
        (packet(LOOK_UP, &[&text(4), b"more"]), "4 more bytes follow"),
        (
            packet(INIT, &[&u64s(&[5]), b"0.8.0", &i32s(&[0]), b"more"]),
            "4 more bytes follow",
        ),
        (packet(1, &[b"more"]), "4 more bytes follow"),
        (
            call_of(&i32s(&[1, 50])),
            "type index at offset 24: expected an index",
        ),
        (call_of(&i32s(&[1, 10])), "found 10"),
        (call_of(&i32s(&[1, 70])), "found 70"),
        (call_of(&i32s(&[1, -1])), "found -1"),
        (
            call_of(&i32s(&[1, 200, 999, 0, 0])),
            "expected 115 inside an object, found 999",
        ),
        (
            call_of(&i32s(&[-1])),
            "expected a count of at least 0, found -1",
        ),
        (
            call_of(&i32s(&[1000, 0])),
            "type index at offset 28 needs 4 bytes",
        ),
        (
            call_of(&i32s(&[5000])),
            "number of values is 5000, more than the limit of 4096",
        ),
        (call_of(&[]), "number of values at offset 20 needs 4 bytes"),
        (
            packet(CALL, &[&[0; 4]]),
            "function handle at offset 12 needs 8 bytes",
        ),
        (
            call_of(&text(1000)),
            "text at offset 36 needs 1000 bytes, but only 4 are left",
        ),
        (call_of(&text(1 << 63)), "needs 9223372036854775808 bytes"),
        (
            call_of(&[i32s(&[1, 8]), u64s(&[2]), vec![b'a', 0xff]].concat()),
            "is not UTF-8",
        ),
        (
            call_of(&[i32s(&[1, 7]), tensor_of(-1)].concat()),
            "count of at least 0, found -1",
        ),
        (
            call_of(&[i32s(&[1, 7]), tensor_of(65)].concat()),
            "dimensions is 65, more than",
        ),
        (
            call_of(&[i32s(&[1, 7]), tensor_of(2)].concat()),
            "size of a dimension",
        ),
        (
            packet(COPY_TO, &[&tensor_of(-1)]),
            "count of at least 0, found -1",
        ),
        (
            packet(COPY_TO, &[&tensor_of(i32::MAX)]),
            "dimensions is 2147483647, more than",
        ),
        (
            packet(COPY_TO, &[&tensor_of(0)[..19]]),
            "packet at offset 0 needs 32 bytes",
        ),
        (
            packet(COPY_TO, &[&tensor_of(0)]),
            "packet at offset 0 needs 52 bytes",
        ),
        (
            packet(COPY_TO, &[&tensor_of(0), &u64s(&[0, 16]), b"less"]),
            "expected the length of the data that follows, found 16 before 4 bytes",
        ),
        (
            packet(COPY_TO, &[&tensor_of(0), &u64s(&[0, 2]), b"more"]),
            "found 2 before 4 bytes",
        ),
        (
            packet(INIT, &[&u64s(&[1000]), b"0.8.0"]),
            "version at offset 20 needs 1000 bytes",
        ),
        (
            packet(INIT, &[&u64s(&[2]), b"\xff\xff", &i32s(&[0])]),
            "version at offset 20 is not UTF-8",
        ),
        // An argument that is not the last one has to fit into the limit of a packet.
        (
            announced(
                1 << 34,
                call_of(&[i32s(&[2, 66, 66]), u64s(&[1 << 33]), b"some".to_vec()].concat()),
            ),
            "packet is 8589934636, more than the limit of 16777216",
        ),
        (
            announced(
                1 << 34,
                call_of(&[i32s(&[2, 66, 66]), u64s(&[u64::MAX]), b"some".to_vec()].concat()),
            ),
            "packet is 17179869192, more than the limit of 16777216",
        ),
        // Neither does a last one that leaves something behind it, or has not enough.
        (
            announced(
                1 << 34,
                call_of(&[i32s(&[1, 66, 66]), u64s(&[1 << 33])].concat()),
            ),
            "packet is 17179869192, more than the limit of 16777216",
        ),
        (
            announced(
                1 << 34,
                call_of(&[i32s(&[1, 66, 66]), u64s(&[1 << 35])].concat()),
            ),
            "packet is 17179869192, more than the limit of 16777216",
        ),
        (
            announced(1 << 34, call_of(&i32s(&[1, 50]))),
            "packet is 17179869192, more than the limit of 16777216",
        ),
    ];
    rows.extend(answers.iter().map(|answer| {
        let mut bytes = encoded(answer);
        bytes.truncate(64);
        (bytes, "where a request was due")
    }));
    rows
}

#[test]
fn a_client_that_breaks_the_protocol_is_told_how_and_turned_away() {
    for (bytes, told) in rows() {
        for opened in [true, false] {
            let server = Server::start();
            let mut client = server.stranger();
            if opened {
                client.asks(&init()).void();
            }
            client.send(&bytes);
            let text = client.turned_away();
            assert!(text.contains(told), "{text}, not {told}");
            let stage = server.stage.clone();
            let ended = server.finish().unwrap_err();
            assert!(matches!(ended, ServeError::Protocol { .. }), "{ended:?}");
            assert!(chain(&ended).contains(told), "{}", chain(&ended));
            assert_eq!(stage.shutdowns(), usize::from(opened));
            assert_eq!(stage.calls(), [""; 0]);
        }
    }
}

#[test]
fn what_is_malformed_is_so_in_any_pieces() {
    let goodbye = [encoded(&Packet::void()), encoded(&Packet::Shutdown)];
    for (bytes, told) in rows() {
        let input = [encoded(&init()), bytes].concat();
        for piece in [1, 5, usize::MAX] {
            let stage = Stage::default();
            let memory = Memory::new(&input).in_pieces(piece);
            let (ended, received) = serve_memory(&stage, memory);
            let ended = ended.unwrap_err();
            assert!(
                chain(&ended).contains(told),
                "{}, not {told}",
                chain(&ended)
            );
            assert_eq!(received[..20], goodbye[0]);
            assert_eq!(received[received.len() - 12..], goodbye[1]);
            assert_eq!(stage.shutdowns(), 1);
        }
    }
}

#[test]
fn a_request_that_no_session_can_do_costs_itself_only() {
    let server = Server::start();
    let mut client = server.client();
    let no_args = packet(LOOK_UP, &[&i32s(&[0])]);
    let number = packet(LOOK_UP, &[&i32s(&[1, 1]), &u64s(&[7])]);
    for (bytes, told) in [
        (
            no_args,
            "argument #0 of get global function: expected a text, found no argument",
        ),
        (
            number,
            "argument #0 of get global function: expected a text, found an integer",
        ),
        (
            packet(
                13,
                &[&i32s(&[4, 6, 1, 0, 1]), &u64s(&[u64::MAX]), &i32s(&[0, 0])],
            ),
            "argument #1 of allocate data: expected an integer of at least 0, found -1",
        ),
    ] {
        client.send(&bytes);
        client.exception(told);
    }
    // Bytes do for a text, and what is too much is ignored.
    let bytes = [i32s(&[2, 9]), u64s(&[1]), b"f".to_vec(), i32s(&[0])].concat();
    client.send(&packet(LOOK_UP, &[&bytes]));
    client.pointer(super::mock::ADDRESS);
    assert_eq!(server.stage.calls(), ["get_function(\"f\")"]);
    // Null and nonsense are up to the session.
    client.asks(&call(0, [])).answer();
    let nowhere = Packet::CopyFrom {
        tensor: rpc_proto::TensorView {
            data: 0,
            ..tensor()
        },
        nbytes: 0,
    };
    client.asks(&nowhere).answer();
    client.is_served();
}

#[test]
fn the_last_words_are_heard_although_the_client_talks_on() {
    let server = Server::start();
    let mut client = server.client();
    let mut talking = client.try_clone();
    let talk = thread::spawn(move || {
        talking.send(&packet(99, &[]));
        talking.send(&vec![1; 8 << 20]);
        talking.leave();
    });
    let text = client.exception_text();
    assert!(text.contains("found 99"), "{text}");
    client.gets(&encoded(&Packet::Shutdown));
    talk.join().unwrap();
    assert_eq!(client.rest(), b"");
    assert!(server.finish().is_err());
}

#[test]
fn a_client_that_breaks_the_protocol_and_goes_is_told_apart_from_one_that_goes() {
    let server = Server::start();
    let mut client = server.client();
    // What is not read resets the connection, so that nothing can be said any more.
    client.asks(&call(1, []));
    crate::support::stage::wait_until("the call", || !server.stage.calls().is_empty());
    client.send(&packet(99, &[&[0; 1000]]));
    drop(client);
    let ended = server.finish().unwrap_err();
    assert!(
        matches!(
            ended,
            ServeError::Protocol { .. } | ServeError::Transport(_)
        ),
        "{ended:?}"
    );
}

#[test]
fn a_large_argument_that_is_not_the_last_is_read_whole() {
    let server = Server::start();
    let mut client = server.client();
    let args = |length: usize| {
        let packet = Packet::Call {
            function: 1,
            args: Values::from_iter([Value::from(vec![7; length]), Value::Int(1)]),
            bulk: None,
        };
        encoded(&packet)
    };
    client.send(&args(15 << 20));
    client.answer();
    assert!(server.stage.calls()[0].ends_with("7, 7]), Int(1)])"));
    client.is_served();
    let mut talking = client.try_clone();
    let talk = thread::spawn(move || talking.send(&args(17 << 20)));
    let text = client.turned_away();
    assert!(text.contains("more than the limit of 16777216"), "{text}");
    talk.join().unwrap_or_default();
}

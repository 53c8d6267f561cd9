//! Data on its way in and out.

use std::thread;

use rpc_proto::{Bulk, BulkKind, Packet, Returned, Value, Values};
use rpc_session::ServeError;

use super::server::{Server, serve_memory};
use crate::support::memory::Memory;
use crate::support::{Act, Client, Stage, call, encoded, encoded_returned, init, pattern, tensor};

const MIB: usize = 1 << 20;
const SIZES: [usize; 10] = [
    1,
    7,
    16 << 10,
    (16 << 10) + 1,
    256 << 10,
    (256 << 10) + 1,
    MIB - 1,
    MIB,
    3 * MIB + 5,
    64 * MIB,
];

fn copy_to(nbytes: usize) -> Vec<u8> {
    encoded(&Packet::CopyTo {
        tensor: tensor(),
        nbytes: nbytes as u64,
    })
}

fn copy_from(nbytes: usize) -> Packet<'static> {
    Packet::CopyFrom {
        tensor: tensor(),
        nbytes: nbytes as u64,
    }
}

fn ack(data: &[u8]) -> Vec<u8> {
    let nbytes = data.len() as u64;
    [&encoded(&Packet::CopyAck { nbytes })[..], data].concat()
}

#[test]
fn data_of_any_size_comes_in_and_goes_out() {
    let server = Server::start();
    let mut client = server.client();
    for size in SIZES {
        let data = pattern(size);
        client.send(&copy_to(size));
        client.send(&data);
        client.void();
        assert!(server.stage.payload() == data, "{size} bytes in");
        client.asks(&copy_from(size));
        client.gets(&ack(&data));
    }
    client.is_served();
}

#[test]
fn data_comes_in_and_goes_out_in_any_pieces() {
    let stage = Stage::default();
    let data = pattern(1000);
    let input = [
        encoded(&init()),
        copy_to(data.len()),
        data.clone(),
        encoded(&copy_from(data.len())),
    ];
    let answers = [
        encoded(&Packet::void()),
        encoded(&Packet::void()),
        ack(&data),
    ];
    let written: [&[usize]; 4] = [&[1000], &[0, 1, 999, 0], &[0, 1000], &[10; 100]];
    for piece in [1, 3, 13, 999, usize::MAX] {
        for lengths in written {
            let mut rest = &data[..];
            let pieces = lengths.iter().map(|&length| {
                let (piece, behind) = rest.split_at(length);
                rest = behind;
                piece.to_vec()
            });
            // The upload takes the first act.
            stage.plan(Act::Take(usize::MAX, Ok(())));
            stage.plan(Act::Give(pieces.collect(), Ok(())));
            let memory = Memory::new(&input.concat()).in_pieces(piece);
            let (ended, received) = serve_memory(&stage, memory);
            ended.unwrap();
            assert!(
                received == answers.concat(),
                "{lengths:?} in pieces of {piece}"
            );
            assert_eq!(stage.payload(), data);
        }
    }
}

#[test]
fn what_the_session_does_not_read_is_skipped() {
    let server = Server::start();
    let mut client = server.client();
    for size in [1, 100_000, 3 * MIB] {
        let data = pattern(size);
        for (taken, outcome) in [(0, Ok(())), (size / 2, Ok(())), (size / 2, Err("full"))] {
            server.stage.plan(Act::Take(taken, outcome));
            client.send(&[copy_to(size), data.clone()].concat());
            match outcome {
                Ok(()) => client.void(),
                Err(why) => client.exception(why),
            };
            assert!(server.stage.payload() == data[..taken]);
        }
        server.stage.plan(Act::Fail("no such tensor"));
        client.send(&[copy_to(size), data].concat());
        client.exception("no such tensor");
    }
    client.is_served();
}

fn upload(kind: BulkKind, data: &[u8]) -> Vec<u8> {
    let nbytes = data.len() as u64;
    let packet = Packet::Call {
        function: 9,
        args: Values::from_iter(["lib.so".into()]),
        bulk: Some(Bulk { kind, nbytes }),
    };
    [&encoded(&packet)[..], data].concat()
}

#[test]
fn a_large_last_argument_is_read_as_far_as_the_session_likes() {
    let server = Server::start();
    let mut client = server.client();
    let none = encoded_returned(&Returned::Value(Value::None));
    for size in [70_000, 3 * MIB + 5, 64 * MIB] {
        let data = pattern(size);
        // Not all of it is UTF-8.
        for kind in [BulkKind::Bytes, BulkKind::Text] {
            client.send(&upload(kind, &data));
            client.gets(&none);
            assert!(server.stage.payload() == data, "{size} bytes");
            server.stage.plan(Act::Take(size / 3, Ok(())));
            client.send(&upload(kind, &data));
            client.gets(&none);
            assert!(server.stage.payload() == data[..size / 3]);
            server.stage.plan(Act::Take(0, Err("no such file")));
            client.send(&upload(kind, &data));
            client.exception("no such file");
        }
    }
    client.is_served();
}

#[test]
fn large_results_come_whole() {
    let server = Server::start();
    let mut client = server.client();
    for size in [0, 1, 7, 8, 4096, 100_000, 3 * MIB + 5, 64 * MIB] {
        let bytes = pattern(size);
        let text = "x".repeat(size);
        for returned in [Value::from(bytes.clone()), Value::from(text)] {
            let (kind, has) = match &returned {
                Value::Str(text) => (BulkKind::Text, text.as_bytes()),
                _ => (BulkKind::Bytes, &bytes[..]),
            };
            let nbytes = size as u64;
            let has = has.to_vec();
            server.stage.plan(Act::ReturnBulk { kind, nbytes, has });
            client.asks(&call(1, []));
            let answer = encoded_returned(&Returned::Value(returned.clone()));
            client.gets(&answer);
            server.stage.plan(Act::Return(Returned::Value(returned)));
            client.asks(&call(1, [])).gets(&answer);
        }
    }
    client.is_served();
}

#[test]
fn a_copy_that_fails_before_its_first_byte_is_an_exception() {
    let server = Server::start();
    let mut client = server.client();
    for (pieces, outcome, told) in [
        (vec![], Err("no such tensor"), "no such tensor"),
        (vec![vec![]], Err("no such tensor"), "no such tensor"),
        (
            vec![],
            Ok(()),
            "the session has less data than was asked for",
        ),
        (
            vec![vec![]],
            Ok(()),
            "the session has less data than was asked for",
        ),
        (
            vec![pattern(9)],
            Ok(()),
            "9 bytes of data, where 8 were asked for",
        ),
    ] {
        server.stage.plan(Act::Give(pieces, outcome));
        client.asks(&copy_from(8)).exception(told);
    }
    let (kind, has) = (BulkKind::Bytes, Vec::new());
    server.stage.plan(Act::ReturnBulk {
        kind,
        nbytes: 5,
        has,
    });
    client
        .asks(&call(1, []))
        .exception("the session has less data than was asked for");
    client.is_served();
}

/// The session fails in the middle of an answer; gives what the client got of it.
fn interrupted(act: Act, request: &Packet<'_>, message: &str) -> Vec<u8> {
    let server = Server::start();
    let mut client = server.client();
    server.stage.plan(act);
    client.asks(request);
    let got = client.rest();
    let stage = server.stage.clone();
    let ended = server.finish();
    let Err(ServeError::Interrupted {
        peer,
        message: told,
    }) = &ended
    else {
        panic!("{ended:?}");
    };
    assert_eq!(told, message);
    assert!(peer.starts_with("127.0.0.1:"), "{peer}");
    assert_eq!(stage.shutdowns(), 1);
    got
}

#[test]
fn an_answer_that_was_begun_is_completed_or_the_connection_closed() {
    let less = "RuntimeError: the session has less data than was asked for";
    let head = encoded(&Packet::CopyAck { nbytes: 8 });
    for (pieces, outcome, sent, message) in [
        (vec![pattern(3)], Err("torn"), 3, "RuntimeError: torn"),
        (vec![pattern(7)], Ok(()), 7, less),
        (
            vec![pattern(7), vec![1, 2]],
            Ok(()),
            7,
            "RuntimeError: 2 bytes of data, where 1 were asked for",
        ),
    ] {
        let got = interrupted(Act::Give(pieces, outcome), &copy_from(8), message);
        assert_eq!(got, [&head[..], &pattern(sent)].concat());
    }
    let (kind, has) = (BulkKind::Text, vec![b'x'; 300_000]);
    let got = interrupted(
        Act::ReturnBulk {
            kind,
            nbytes: 300_001,
            has,
        },
        &call(1, []),
        less,
    );
    // Only whole pieces are sent.
    assert!(got.len() > 100_000 && got.len() < 300_001 + 40);
}

#[test]
fn a_failure_behind_the_last_byte_comes_too_late() {
    let server = Server::start();
    let mut client = server.client();
    for pieces in [vec![pattern(8)], vec![pattern(8), vec![]]] {
        server.stage.plan(Act::Give(pieces, Err("too late")));
        client.asks(&copy_from(8)).gets(&ack(&pattern(8)));
    }
    // What is one too many was not sent.
    let pieces = vec![pattern(8), vec![1]];
    server.stage.plan(Act::Give(pieces, Ok(())));
    client.asks(&copy_from(8)).gets(&ack(&pattern(8)));
    // Of a copy of no bytes, every byte is one too many.
    for (pieces, outcome) in [(vec![vec![]], Ok(())), (vec![], Ok(()))] {
        server.stage.plan(Act::Give(pieces, outcome));
        client.asks(&copy_from(0)).gets(&ack(&[]));
    }
    server.stage.plan(Act::Give(vec![], Err("no such tensor")));
    client.asks(&copy_from(0)).exception("no such tensor");
    server.stage.plan(Act::Give(vec![vec![1]], Ok(())));
    client
        .asks(&copy_from(0))
        .exception("1 bytes of data, where 0 were asked for");
    client.is_served();
}

#[test]
fn more_than_the_limit_is_asked_for_in_vain() {
    let server = Server::start();
    let mut client = server.client();
    for nbytes in [(64 << 30) + 1, u64::MAX] {
        let packet = Packet::CopyFrom {
            tensor: tensor(),
            nbytes,
        };
        client.asks(&packet).exception(&format!(
            "payload is {nbytes}, more than the limit of 68719476736"
        ));
    }
    assert_eq!(server.stage.calls(), [""; 0]);
    client.is_served();
}

/// While a large answer is on its way, the next request may come already.
#[test]
fn a_client_may_ask_on_while_it_reads_a_large_answer() {
    const SIZE: usize = 16 * MIB;
    let server = Server::start();
    let mut client = server.client();
    let mut writing = client.try_clone();
    let asking = thread::spawn(move || {
        let both = [encoded(&copy_from(SIZE)), copy_to(SIZE), pattern(SIZE)];
        writing.send(&both.concat());
        let bye: &mut Client = &mut writing;
        bye.asks(&Packet::Shutdown);
    });
    client.gets(&ack(&pattern(SIZE))).void();
    assert_eq!(client.rest(), b"");
    asking.join().unwrap();
    server.finish().unwrap();
}

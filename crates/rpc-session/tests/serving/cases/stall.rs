//! Clients that stop in the middle.

use std::thread;
use std::time::Duration;

use rpc_proto::{Bulk, BulkKind, Packet, Returned, Values};
use rpc_session::{ServeError, ServeOptions};
use rpc_transport::{Step, TransportError};

use super::server::{Options, Server};
use crate::support::{Act, call, encoded, look_up, pattern, tensor};

const STALL: Duration = Duration::from_millis(100);
/// More than what sockets hold.
const LARGE: usize = 48 << 20;

fn server() -> Server {
    Server::with(Options {
        serve: ServeOptions::default().with_stall_timeout(STALL),
        ..Options::default()
    })
}

/// The server gives up on a client.
#[track_caller]
fn given_up(server: Server, step: Step) {
    let stage = server.stage.clone();
    let ended = server.finish();
    let Err(ServeError::Transport(TransportError::TimedOut {
        step: during,
        allowed,
        ..
    })) = ended
    else {
        panic!("{ended:?}");
    };
    assert_eq!((during, allowed), (step, STALL));
    assert_eq!(stage.shutdowns(), 1);
}

#[test]
fn in_a_request() {
    let request = encoded(&look_up("f"));
    for cut in [1, 7, 8, 11, 12, request.len() - 1] {
        let server = server();
        let mut client = server.client();
        client.send(&request[..cut]);
        given_up(server, Step::Request);
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn in_a_payload() {
    let copy_to = Packet::CopyTo {
        tensor: tensor(),
        nbytes: 1 << 20,
    };
    let upload = Packet::Call {
        function: 1,
        args: Values::default(),
        bulk: Some(Bulk::bytes(1 << 20)),
    };
    for packet in [copy_to, upload] {
        for sent in [0, 1, 100_000] {
            // Also in what is skipped.
            for act in [None, Some(Act::Take(0, Ok(())))] {
                let server = server();
                let mut client = server.client();
                if let Some(act) = act {
                    server.stage.plan(act);
                }
                client.send(&[encoded(&packet), pattern(sent)].concat());
                given_up(server, Step::Request);
                assert_eq!(client.rest(), b"");
            }
        }
    }
}

#[test]
fn before_an_answer_is_taken() {
    let copy_from = Packet::CopyFrom {
        tensor: tensor(),
        nbytes: LARGE as u64,
    };
    let bulk = Act::ReturnBulk {
        kind: BulkKind::Bytes,
        nbytes: LARGE as u64,
        has: pattern(LARGE),
    };
    let whole = Act::Return(Returned::Value(pattern(LARGE).into()));
    let pieces = Act::Give(vec![pattern(100_000); LARGE / 100_000], Ok(()));
    for (packet, act) in [
        (&copy_from, None),
        (&copy_from, Some(pieces)),
        (&call(1, []), Some(bulk)),
        (&call(1, []), Some(whole)),
    ] {
        let server = server();
        let mut client = server.client();
        if let Some(act) = act {
            server.stage.plan(act);
        }
        client.asks(packet);
        given_up(server, Step::Answer);
        assert!(client.rest().len() < LARGE);
    }
}

#[test]
fn between_two_requests_a_client_may_be_silent() {
    let server = server();
    let mut client = server.client();
    thread::sleep(3 * STALL);
    client.is_served();
    // A packet of no bytes is none.
    client.send(&[0; 8]);
    thread::sleep(3 * STALL);
    client.is_served().goodbye();
    server.finish().unwrap();
}

#[test]
fn a_slow_client_is_served() {
    let server = server();
    let mut client = server.client();
    let request = encoded(&look_up("f"));
    for byte in request.chunks(4) {
        thread::sleep(STALL / 5);
        client.send(byte);
    }
    client.pointer(super::mock::ADDRESS);
    let copy_to = Packet::CopyTo {
        tensor: tensor(),
        nbytes: 10,
    };
    client.asks(&copy_to);
    for byte in 0..10 {
        thread::sleep(STALL / 5);
        client.send(&[byte]);
    }
    client.void().goodbye();
    server.finish().unwrap();
}

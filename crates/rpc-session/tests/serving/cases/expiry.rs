//! Sessions whose time is up.

use std::thread;
use std::time::Duration;

use rpc_proto::{Packet, Value};
use rpc_session::ServeError;

use super::ConnectNext;
use super::server::{Options, Server};
use crate::support::{
    Act, Client, Gate, call, encoded, exception, init, init_with, look_up, pattern, tensor,
};

const LIMIT: Duration = Duration::from_millis(1500);
const TOLD: &str = "RPCSessionTimeoutError: Your 1.5s session has expired, \
                    try to increase the \"session_timeout\" value.";
const LARGE: usize = 48 << 20;

/// The client is told that its time is up, and that is the last it hears.
#[track_caller]
fn told(client: &mut Client) {
    assert_eq!(client.rest(), encoded(&exception(TOLD)));
}

#[track_caller]
fn expired(server: Server, shutdowns: usize) {
    let stage = server.stage.clone();
    let ended = server.finish();
    assert!(
        matches!(ended, Err(ServeError::Expired { limit: LIMIT })),
        "{ended:?}"
    );
    assert_eq!(stage.shutdowns(), shutdowns);
}

#[test]
fn between_two_requests() {
    let server = Server::start();
    let mut client = server.client();
    client.is_served();
    server.expiry.expire(LIMIT);
    told(&mut client);
    expired(server, 1);
}

#[test]
fn before_the_session_is_open() {
    let server = Server::start();
    let mut client = server.stranger();
    client.asks(&call(1, [])).exception_text();
    server.expiry.expire(LIMIT);
    told(&mut client);
    expired(server, 0);
}

#[test]
fn before_it_is_served() {
    for says in [vec![], encoded(&init())] {
        let server = Server::start();
        server.expiry.expire(LIMIT);
        let mut client = server.stranger();
        client.send(&says);
        told(&mut client);
        expired(server, 0);
    }
}

#[test]
fn in_a_request() {
    let server = Server::start();
    let mut client = server.client();
    client.is_served();
    let request = encoded(&look_up("f"));
    client.send(&request[..20]);
    server.expiry.expire(LIMIT);
    told(&mut client);
    expired(server, 1);
}

#[test]
fn while_a_function_runs() {
    let server = Server::start();
    let mut client = server.client();
    let gate = Gate::default();
    server.stage.plan(Act::Wait(gate.clone()));
    // The one behind it is not done any more.
    client.asks(&call(1, [])).asks(&call(2, []));
    server.stage.wait_for_call();
    server.expiry.expire(LIMIT);
    told(&mut client);
    gate.open();
    let stage = server.stage.clone();
    expired(server, 1);
    assert_eq!(stage.calls(), ["call(1, [])"]);
}

#[test]
fn while_data_comes_in() {
    let server = Server::start();
    let mut client = server.client();
    let copy_to = Packet::CopyTo {
        tensor: tensor(),
        nbytes: 1 << 20,
    };
    client.send(&[encoded(&copy_to), pattern(100_000)].concat());
    server.stage.wait_for_call();
    server.expiry.expire(LIMIT);
    told(&mut client);
    expired(server, 1);
}

/// What the client had so far is the beginning of the answer and nothing else; or all of it, and then
/// the client may have been told.
#[track_caller]
fn nothing_is_mixed_in(got: &[u8], answer: &[u8]) {
    match got.strip_prefix(answer) {
        Some(behind) => assert!(behind.is_empty() || behind == encoded(&exception(TOLD))),
        None => assert!(answer.starts_with(got), "{} bytes", got.len()),
    }
}

#[test]
fn while_a_large_answer_goes_out() {
    let nbytes = LARGE as u64;
    let copy_from = Packet::CopyFrom {
        tensor: tensor(),
        nbytes,
    };
    let data = pattern(LARGE);
    let ack = [encoded(&Packet::CopyAck { nbytes }), data.clone()].concat();
    let returned = rpc_proto::Returned::Value(Value::from(data.clone()));
    let result = crate::support::encoded_returned(&returned);
    let bulk = || Act::ReturnBulk {
        kind: rpc_proto::BulkKind::Bytes,
        nbytes,
        has: data.clone(),
    };
    for (packet, act, answer) in [
        (&copy_from, None, &ack),
        (&call(1, []), Some(bulk()), &result),
        (&call(1, []), Some(Act::Return(returned.clone())), &result),
    ] {
        // The client takes no more until it is over, or all at once.
        for stops in [true, false] {
            let act = match &act {
                None => None,
                Some(Act::ReturnBulk { .. }) => Some(bulk()),
                Some(_) => Some(Act::Return(returned.clone())),
            };
            let server = Server::start();
            let mut client = server.client();
            if let Some(act) = act {
                server.stage.plan(act);
            }
            client.asks(packet);
            let mut got = client.read(100_000);
            if stops {
                server.expiry.expire(LIMIT);
                got.extend(client.rest());
                assert!(got.len() < answer.len());
            } else {
                let expiry = server.expiry.clone();
                let expiring = thread::spawn(move || expiry.expire(LIMIT));
                got.extend(client.rest());
                client.leave();
                expiring.join().unwrap();
            }
            nothing_is_mixed_in(&got, answer);
            expired(server, 1);
        }
    }
}

/// Who watches hears of each large answer, in one piece or several, and of no small one.
#[super::only_sync]
#[test]
fn large_answers_are_watched() {
    let (tell, told) = std::sync::mpsc::channel();
    let server = Server::with(Options {
        expiry: super::Expiry::watched(move |begins| tell.send(begins).unwrap()),
        ..Options::default()
    });
    let mut client = server.client();
    let small = Packet::CopyFrom {
        tensor: tensor(),
        nbytes: 1 << 10,
    };
    let large = Packet::CopyFrom {
        tensor: tensor(),
        nbytes: 1 << 20,
    };
    client.asks(&small);
    client.read(8 + 4 + (1 << 10));
    assert!(told.try_recv().is_err());
    client.asks(&large);
    client.read(100_000);
    assert_eq!(told.recv_timeout(crate::support::PATIENCE), Ok(true));
    client.read(8 + 4 + (1 << 20) - 100_000);
    assert_eq!(told.recv_timeout(crate::support::PATIENCE), Ok(false));
    let data = rpc_proto::Value::from(pattern(LARGE));
    server
        .stage
        .plan(Act::Return(rpc_proto::Returned::Value(data)));
    client.asks(&call(1, []));
    client.read(100_000);
    assert_eq!(told.recv_timeout(crate::support::PATIENCE), Ok(true));
    drop(client);
    server.finish().unwrap_err();
    assert!(told.try_recv().is_err(), "it is never complete");
}

#[test]
fn twice() {
    let server = Server::start();
    let mut client = server.client();
    client.is_served();
    server.expiry.expire(LIMIT);
    server.expiry.clone().expire(Duration::from_secs(9));
    told(&mut client);
    let expiry = server.expiry.clone();
    expired(server, 1);
    // It is over long since.
    expiry.expire(Duration::from_secs(9));
}

#[test]
fn after_the_client_said_goodbye() {
    let server = Server::start();
    let mut client = server.client();
    client.goodbye();
    let expiry = server.expiry.clone();
    server.finish().unwrap();
    expiry.expire(LIMIT);
}

/// Many at once, so that each place of a session meets the end of its time.
#[test]
fn at_any_time() {
    for round in 0..200 {
        let server = Server::start();
        let mut client = server.client();
        let expiry = server.expiry.clone();
        let expiring = thread::spawn(move || {
            thread::sleep(Duration::from_micros(round * 7));
            expiry.expire(LIMIT);
        });
        let mut asking = client.try_clone();
        let asked = thread::spawn(move || {
            for _ in 0..100 {
                if !asking.tries_to_send(&encoded(&call(1, []))) {
                    break;
                }
            }
        });
        let got = client.rest();
        let answer = crate::support::encoded_returned(&rpc_proto::Returned::Value(Value::None));
        let text = encoded(&exception(TOLD));
        // Whole answers, and then the exception.
        let (before, last) = got.split_at(got.len().saturating_sub(text.len()));
        assert_eq!(
            String::from_utf8_lossy(last),
            String::from_utf8_lossy(&text)
        );
        assert_eq!(before, answer.repeat(before.len() / answer.len()));
        asked.join().unwrap();
        drop(client);
        expiring.join().unwrap();
        expired(server, 1);
    }
}

#[test]
fn while_the_session_is_made() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let server = Server::with(Options {
        constructors: |constructors| constructors.with(ConnectNext::NAME, ConnectNext::default()),
        ..Options::default()
    });
    let mut client = server.stranger();
    let args = [
        "rpc.Connect".into(),
        "127.0.0.1".into(),
        i64::from(port).into(),
        "x".into(),
    ];
    client.asks(&init_with(args));
    let (next, _) = silent.accept().unwrap();
    server.expiry.expire(LIMIT);
    told(&mut client);
    drop(next);
    expired(server, 0);
}

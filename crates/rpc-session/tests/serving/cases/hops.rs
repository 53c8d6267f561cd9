//! Sessions on the next server, and on the one behind that.

use std::net::TcpListener;
use std::thread;

use rpc_proto::{OwnedValue, Packet, Returned, Value, Values};
use rpc_session::{SessionConstructor, SessionOptions};
use rpc_transport::Address;

use super::server::{Options, Server};
use super::{ConnectNext, Output, RemoteSession, bisync, twin_test};
use crate::support::{
    Act, Client, call, encoded, encoded_returned, init, init_with, look_up, pattern, pointer,
    tensor,
};

const HOP: &str = "RPCError: Error caught from RPC call:\n";

/// A server that connects to others.
fn gateway(handshake: bool) -> Server {
    Server::with(Options {
        constructors: |constructors| constructors.with(ConnectNext::NAME, ConnectNext::default()),
        handshake,
        ..Options::default()
    })
}

/// A server that others connect to.
fn board() -> Server {
    Server::with(Options {
        handshake: true,
        ..Options::default()
    })
}

fn hop(address: &Address) -> Vec<OwnedValue> {
    vec![
        "rpc.Connect".into(),
        address.host().to_owned().into(),
        i64::from(address.port()).into(),
        "key".into(),
        false.into(),
    ]
}

fn open(server: &Server, hops: Vec<OwnedValue>) -> Client {
    let mut client = server.stranger();
    client.asks(&Packet::init(Values::from_iter(hops))).void();
    client
}

/// A client on the board behind one gateway or two.
struct Chain {
    gateways: Vec<Server>,
    board: Server,
    client: Client,
}

impl Chain {
    fn of(gateways: usize) -> Self {
        let board = board();
        let gateways: Vec<_> = (0..gateways).map(|nth| gateway(nth > 0)).collect();
        let next = gateways[1..].iter().chain([&board]);
        let hops = next.flat_map(|server| hop(&server.address())).collect();
        let client = open(&gateways[0], hops);
        Self {
            gateways,
            board,
            client,
        }
    }

    fn finish(mut self) {
        self.client.goodbye();
        for gateway in self.gateways {
            gateway.finish().unwrap();
        }
        let stage = self.board.stage.clone();
        self.board.finish().unwrap();
        assert_eq!(stage.shutdowns(), 1);
    }
}

#[test]
fn requests_and_answers_pass_through_as_they_are() {
    for gateways in [1, 2] {
        let mut chain = Chain::of(gateways);
        for case in super::requests::all() {
            if let Some(act) = case.act {
                // A tensor that nobody owns is then one whose owner is null.
                if matches!(act, Act::Return(Returned::Value(Value::Tensor(_)))) {
                    continue;
                }
                chain.board.stage.plan(act);
            }
            chain.client.send(&case.request);
            chain.client.gets(&case.answer);
            assert_eq!(chain.board.stage.calls(), [case.called]);
        }
        chain.finish();
    }
}

#[test]
fn data_passes_through_whole() {
    let mut chain = Chain::of(2);
    for size in [1, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 64 << 20] {
        let (data, nbytes) = (pattern(size), size as u64);
        let (to, from) = (
            Packet::CopyTo {
                tensor: tensor(),
                nbytes,
            },
            Packet::CopyFrom {
                tensor: tensor(),
                nbytes,
            },
        );
        let ack = [encoded(&Packet::CopyAck { nbytes }), data.clone()].concat();
        chain.client.send(&[encoded(&to), data.clone()].concat());
        chain.client.void();
        assert!(chain.board.stage.payload() == data);
        chain.client.asks(&from).gets(&ack);
        // A board that takes nothing of it.
        chain.board.stage.plan(Act::Take(0, Err("full")));
        chain.client.send(&[encoded(&to), data.clone()].concat());
        chain.client.exception(&format!("{HOP}{HOP}full"));
        // And a result of that length.
        let returned = Returned::Value(Value::from(data));
        chain.board.stage.plan(Act::Return(returned.clone()));
        chain.client.asks(&call(1, []));
        chain.client.gets(&encoded_returned(&returned));
    }
    chain.client.is_served();
    chain.finish();
}

#[test]
fn exceptions_say_how_far_they_came() {
    for gateways in [1, 2] {
        let mut chain = Chain::of(gateways);
        for packet in [
            &call(1, []),
            &look_up("f"),
            &Packet::CopyFrom {
                tensor: tensor(),
                nbytes: 8,
            },
        ] {
            chain.board.stage.plan(Act::Fail("abc"));
            // As recorded from apache-tvm 0.27.0.post1 for one hop.
            let told = format!("{}abc", HOP.repeat(gateways));
            chain.client.asks(packet).exception(&told);
        }
        chain.finish();
    }
}

/// The board is lost, and the gateway goes on without it.
#[test]
fn a_lost_board_costs_its_session_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
    let (lose, lost) = std::sync::mpsc::channel::<()>();
    let board = thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut socket, _) = listener.accept().unwrap();
        // "client:key", and an init packet.
        socket.read_exact(&mut [0; 18]).unwrap();
        socket
            .write_all(b"\x71\xf2\x0f\0\x08\0\0\0server:x")
            .unwrap();
        socket.read_exact(&mut [0; 29]).unwrap();
        socket.write_all(&encoded(&Packet::void())).unwrap();
        lost.recv().unwrap();
    });
    let server = gateway(false);
    let mut client = open(&server, hop(&address));
    lose.send(()).unwrap();
    board.join().unwrap();
    let copy_to = Packet::CopyTo {
        tensor: tensor(),
        nbytes: 1 << 20,
    };
    for round in 0..3 {
        client.asks(&call(1, []));
        let told = client.exception_text();
        assert!(told.contains(&address.to_string()), "{told} in {round}");
        client.asks(&look_up("f")).exception_text();
        client.send(&[encoded(&copy_to), pattern(1 << 20)].concat());
        client.exception_text();
        client
            .asks(&Packet::CopyFrom {
                tensor: tensor(),
                nbytes: 8,
            })
            .exception_text();
    }
    client.goodbye();
    server.finish().unwrap();
}

#[test]
fn a_board_that_cannot_be_reached_is_told_and_another_can_be_asked_for() {
    let server = gateway(false);
    let mut client = server.stranger();
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Address::new("127.0.0.1", listener.local_addr().unwrap().port())
    };
    client.asks(&Packet::init(Values::from_iter(hop(&gone))));
    let told = client.exception_text();
    assert!(
        told.starts_with(&format!("cannot connect to {gone}: ")),
        "{told}"
    );
    let board = board();
    client
        .asks(&Packet::init(Values::from_iter(hop(&board.address()))))
        .void();
    client.is_served();
}

#[test]
fn the_next_server_gets_the_rest_of_the_arguments() {
    let (near, board) = (gateway(false), board());
    let args = [
        "rpc.LocalSession".into(),
        "x".into(),
        Value::Int(2),
        Value::None,
        Value::from(vec![3, 4]),
    ];
    let hops = [hop(&board.address()), args.to_vec()].concat();
    let mut client = open(&near, hops);
    client.is_served();
    assert_eq!(board.stage.constructed(), [args[1..].to_vec()]);
}

#[test]
fn a_refusal_of_the_next_server_is_passed_on() {
    let (near, board) = (gateway(false), board());
    let mut client = near.stranger();
    let mut hops = hop(&board.address());
    hops.push("no.Such".into());
    client.asks(&Packet::init(Values::from_iter(hops)));
    let told = client.exception_text();
    assert!(
        told.contains("unknown session constructor \"no.Such\""),
        "{told}"
    );
}

#[test]
fn wrong_arguments_are_told() {
    let server = gateway(false);
    let mut client = server.stranger();
    let (host, port, key) = (Value::from("127.0.0.1"), Value::Int(9090), Value::from("x"));
    let int = Value::Int(1);
    let cases: [(Vec<OwnedValue>, &str); 9] = [
        (vec![], "a host, a port and a match key, found 0 arguments"),
        (
            vec![host.clone(), port.clone()],
            "a host, a port and a match key, found 2 arguments",
        ),
        (
            vec![int.clone(), port.clone(), key.clone()],
            "a text as the host, found an integer",
        ),
        (
            vec![host.clone(), key.clone(), key.clone()],
            "a port from 1 to 65535, found Str(\"x\")",
        ),
        (
            vec![host.clone(), Value::Int(0), key.clone()],
            "a port from 1 to 65535, found Int(0)",
        ),
        (
            vec![host.clone(), Value::Int(65536), key.clone()],
            "a port from 1 to 65535, found Int(65536)",
        ),
        (
            vec![host.clone(), port.clone(), int.clone()],
            "a text as the match key, found an integer",
        ),
        (
            vec![host.clone(), port.clone(), key.clone(), key.clone()],
            "a truth value for logging, found a text",
        ),
        (
            vec![host, port, key, int.clone(), int],
            "the name of the next session constructor, found an integer",
        ),
    ];
    for (args, told) in cases {
        let all = [vec!["rpc.Connect".into()], args].concat();
        client
            .asks(&Packet::init(Values::from_iter(all)))
            .exception(&format!("rpc.Connect: expected {told}"));
    }
    let key = "x -timeout=soon".into();
    let args = ["rpc.Connect".into(), "127.0.0.1".into(), Value::Int(9), key];
    let told = client.asks(&init_with(args)).exception_text();
    assert!(told.contains("soon"), "{told}");
    client.asks(&init()).void();
}

/// Whoever goes through a gateway learns of the end of its time on the board.
#[bisync]
#[twin_test]
async fn the_time_limit_of_the_board_is_one_of_the_client() {
    let (far, near) = (board(), gateway(false));
    let constructor = SessionConstructor::connect(&far.address(), "key");
    let options = SessionOptions::default().with_constructor(constructor);
    let stream = super::connect(&near.address(), &options.connect)
        .await
        .unwrap();
    let session = RemoteSession::on_stream(stream, &options).await.unwrap();
    let function = session.function("f").await.unwrap();
    assert!(matches!(function.call(&[]).await, Ok(Output::None)));
    let limit = std::time::Duration::from_secs(2);
    far.expiry.expire(limit);
    // Also the next time.
    for _ in 0..2 {
        let error = function.call(&[]).await.unwrap_err();
        assert!(error.is_session_timeout(), "{error:?}");
        assert_eq!(
            error.to_string(),
            "the session's time is up: Your 2.0s session has expired, \
             try to increase the \"session_timeout\" value."
        );
    }
    session.close().await;
    near.finish().unwrap();
    assert!(far.finish().is_err());
}

#[test]
fn the_time_limit_of_the_board_comes_first_in_the_text() {
    let mut chain = Chain::of(2);
    chain.board.expiry.expire(std::time::Duration::from_secs(2));
    chain.client.asks(&call(1, []));
    let told = chain.client.exception_text();
    assert!(
        told.starts_with("RPCSessionTimeoutError: Your 2.0s"),
        "{told}"
    );
}

/// A gateway asks the next server for a session of the length that the client asked for.
#[test]
fn options_behind_the_key_are_for_the_next_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let next = thread::spawn(move || {
        use std::io::Read;
        let (mut socket, _) = listener.accept().unwrap();
        let mut start = [0; 8];
        socket.read_exact(&mut start).unwrap();
        let mut key = vec![0; usize::from(start[4])];
        socket.read_exact(&mut key).unwrap();
        String::from_utf8(key).unwrap()
    });
    let server = gateway(false);
    let mut client = server.stranger();
    let args = [
        "127.0.0.1".into(),
        i64::from(port).into(),
        "a:0.1 -timeout=7".into(),
    ];
    let [host, port, key] = args;
    client.asks(&init_with(["rpc.Connect".into(), host, port, key]));
    assert_eq!(next.join().unwrap(), "client:a:0.1 -timeout=7");
    client.exception_text();
}

/// A client that goes in the middle of a payload ends all sessions behind it.
#[test]
fn a_client_that_vanishes_ends_all_sessions() {
    let copy_to = Packet::CopyTo {
        tensor: tensor(),
        nbytes: 1 << 22,
    };
    let copy_from = Packet::CopyFrom {
        tensor: tensor(),
        nbytes: 64 << 20,
    };
    let half = [encoded(&copy_to), pattern(1 << 21)].concat();
    for request in [
        &half[..],
        &encoded(&copy_from),
        &encoded(&call(1, []))[..9],
        b"",
    ] {
        let Chain {
            gateways,
            board,
            mut client,
        } = Chain::of(2);
        client.send(request);
        drop(client);
        for gateway in gateways {
            let _ = gateway.finish();
        }
        let stage = board.stage.clone();
        let _ = board.finish();
        assert_eq!(stage.shutdowns(), 1);
    }
}

#[test]
fn handles_are_those_of_the_board() {
    let mut chain = Chain::of(1);
    chain
        .board
        .stage
        .plan(Act::Found(Some(0xdead_beef_dead_beef)));
    chain
        .client
        .asks(&look_up("f"))
        .gets(&encoded(&pointer(0xdead_beef_dead_beef)));
    chain.board.stage.plan(Act::Found(None));
    chain.client.asks(&look_up("f")).gets(&encoded(&pointer(0)));
    chain.finish();
}

/// What was not sent is not made up: the board must not take half a library for a whole one.
#[test]
fn half_an_upload_is_no_upload_at_the_next_server() {
    let mut chain = Chain::of(1);
    let upload = Packet::Call {
        function: 1,
        args: Values::from_iter(["lib.so".into()]),
        bulk: Some(rpc_proto::Bulk::bytes(600_000)),
    };
    chain
        .client
        .send(&[encoded(&upload), vec![7; 300_000]].concat());
    chain.client.leave();
    for gateway in chain.gateways {
        gateway.finish().unwrap_err();
    }
    let stage = chain.board.stage.clone();
    chain.board.finish().unwrap_err();
    let payload = stage.payload();
    assert!(payload.len() <= 300_000, "{} bytes came", payload.len());
    assert!(payload.iter().all(|byte| *byte == 7));
}

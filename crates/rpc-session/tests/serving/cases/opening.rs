//! How a session is opened, and what is not done before.

use rpc_proto::{Bulk, Packet, Syscall, Value, Values};
use rpc_session::Exception;

use super::mock::Mocks;
use super::server::{Options, Server};
use crate::support::{call, encoded, init, init_with, look_up, tensor};

#[test]
fn a_session_is_opened_once() {
    let server = Server::start();
    let mut client = server.client();
    for _ in 0..2 {
        client
            .asks(&init())
            .exception("the session is open already, and cannot be opened again");
    }
    client.is_served().goodbye();
    assert_eq!(server.stage.constructed(), [[]]);
}

#[test]
fn nothing_is_done_before_the_session_is_open() {
    let server = Server::start();
    let mut client = server.stranger();
    let upload = Packet::Call {
        function: 1,
        args: Values::default(),
        bulk: Some(Bulk::bytes(100_000)),
    };
    let copy_to = Packet::CopyTo {
        tensor: tensor(),
        nbytes: 1_000_000,
    };
    let copy_from = Packet::CopyFrom {
        tensor: tensor(),
        nbytes: 8,
    };
    let free = Packet::Syscall(Syscall::FreeHandle {
        handle: 1,
        kind: None,
    });
    let all = [upload, copy_to, copy_from, free, call(1, []), look_up("f")];
    for packet in &all {
        let payload = usize::try_from(packet.payload()).unwrap();
        client.send(&[encoded(packet), vec![7; payload]].concat());
        client.exception(&format!(
            "{} packet before the session was opened by an init packet",
            packet.code()
        ));
    }
    client.asks(&init()).void();
    client.is_served();
    assert_eq!(server.stage.calls(), ["call(1, [])"]);
}

#[test]
fn another_version_is_refused_and_may_be_corrected() {
    let server = Server::start();
    let mut client = server.stranger();
    for (version, shown) in [
        ("0.7.0", "0.7.0"),
        ("", ""),
        (&"9".repeat(1000), &"9".repeat(20)),
    ] {
        let packet = Packet::Init {
            version: version.into(),
            constructor: Values::default(),
        };
        client.asks(&packet).exception(&format!(
            "the server speaks version 0.8.0 of the protocol, the client {shown:?}"
        ));
    }
    client.asks(&init()).void();
}

#[test]
fn constructors_are_found_by_name_and_get_their_arguments() {
    let server = Server::with(Options {
        constructors: |constructors| constructors.with("my.Session", Mocks(Default::default())),
        ..Options::default()
    });
    let mut client = server.stranger();
    client.asks(&init_with(["no.Such".into()])).exception(
        "unknown session constructor \"no.Such\"; this server has my.Session, rpc.LocalSession",
    );
    client
        .asks(&init_with([Value::Int(3), "x".into()]))
        .exception("session constructor: expected its name first, found an integer");
    let args = [
        "seven..".into(),
        "more than seven".into(),
        Value::Int(2),
        Value::Bool(false),
        Value::None,
        Value::from(vec![1, 2, 3]),
    ];
    let [a, b, c, d, e, f] = args.clone();
    let local = "rpc.LocalSession".into();
    client.asks(&init_with([local, a, b, c, d, e, f])).void();
    assert_eq!(server.stage.constructed(), [args]);
    client.is_served();
}

#[test]
fn a_session_that_cannot_be_made_may_be_asked_for_again() {
    let server = Server::start();
    let mut client = server.stranger();
    for why in ["no board is free", "still none"] {
        server.stage.refuse(Exception::new("ValueError", why));
        client.asks(&init()).exception(why);
        client
            .asks(&call(1, []))
            .exception("call packet before the session was opened by an init packet");
    }
    client.asks(&init()).void();
    client.is_served().goodbye();
    let stage = server.stage.clone();
    server.finish().unwrap();
    assert_eq!((stage.constructed().len(), stage.shutdowns()), (3, 1));
}

#[test]
fn a_client_without_a_session_says_goodbye() {
    let server = Server::start();
    server.stranger().goodbye();
    let stage = server.stage.clone();
    server.finish().unwrap();
    assert_eq!(stage.shutdowns(), 0);
}

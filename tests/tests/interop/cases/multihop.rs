//! Sessions that a server opens on the next one.

use rpc_proto::DataType;
use rpc_session::{SessionConstructor, SessionError, SessionOptions, args};
use rpc_tests::modules::ANSWER;

use super::bench::{call, describe, open_with, value};
use super::modules::load;
use super::{Function, RemoteSession, Tensor, bisync, case};
use crate::support::{Lease, message, pattern};

/// A session on the last of `servers`, through all that come before it.
#[bisync]
async fn through(servers: &[Lease]) -> RemoteSession {
    let (first, hops) = servers.split_first().unwrap();
    let hops = hops
        .iter()
        .map(|server| SessionConstructor::connect(&server.address(), ""));
    let constructor = hops.reduce(SessionConstructor::then).unwrap();
    let options = SessionOptions::default().with_constructor(constructor);
    RemoteSession::connect(&first.address(), "", &options)
        .await
        .unwrap()
}

/// Why a server cannot make this of a session.
#[bisync]
async fn refused(constructor: SessionConstructor) -> SessionError {
    let server = Lease::take();
    let options = SessionOptions::default().with_constructor(constructor);
    RemoteSession::connect(&server.address(), "", &options)
        .await
        .unwrap_err()
}

#[bisync]
async fn assert_all_works(session: &RemoteSession) {
    let sum: i64 = value(session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
    let described = describe(session, args![(), true, 1.5, "a text", b"some bytes"]).await;
    assert_eq!(
        described,
        r#"none; bool true; float 1.5; str "a text"; bytes "736f6d65206279746573""#
    );

    let bytes = pattern((1 << 20) + 1, 4);
    let shape = [i64::try_from(bytes.len()).unwrap()];
    let tensor = session.cpu(0).tensor(&shape, &bytes).await.unwrap();
    let back: Vec<u8> = tensor.to_vec().await.unwrap();
    assert!(back == bytes, "a tensor came back changed");
    let other = session.cpu(0).empty(&shape, DataType::UINT8).await.unwrap();
    tensor.copy_to(&other).await.unwrap();
    assert!(other.to_vec::<u8>().await.unwrap() == bytes);

    let returned: Tensor = value(session, "rpc.test.ret", args!["tensor"]).await;
    assert_eq!(
        returned.to_vec::<f32>().await.unwrap(),
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    );
    let add_to_10: Function = value(session, "rpc.test.add_to_lhs", args![10]).await;
    let sum: i64 = add_to_10.call(args![5]).await.unwrap().try_into().unwrap();
    assert_eq!(sum, 15);

    let module = load(session, ANSWER).await;
    let answer = module.function(ANSWER.function).await.unwrap();
    let answer: i64 = answer.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(answer, 42);
}

#[bisync]
#[case]
async fn a_session_goes_through_a_server() {
    let servers = [Lease::take(), Lease::take()];
    let session = through(&servers).await;
    assert_all_works(&session).await;
}

#[bisync]
#[case]
async fn a_session_goes_through_two_servers() {
    let servers = [Lease::take(), Lease::take(), Lease::take()];
    let session = through(&servers).await;
    assert_all_works(&session).await;
}

/// Each of the reference's servers puts its own words before the message.
#[bisync]
#[case]
async fn each_hop_adds_to_the_text_of_an_exception() {
    let servers = [Lease::take(), Lease::take(), Lease::take()];
    let session = through(&servers).await;
    let error = call(&session, "rpc.test.except", args!["abc"])
        .await
        .unwrap_err();
    assert_eq!(
        error.remote().unwrap().text(),
        "RPCError: Error caught from RPC call:\nRPCError: Error caught from RPC call:\nabc"
    );
    let sum: i64 = value(&session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
}

#[bisync]
#[case]
async fn a_tensor_is_freed_at_the_last_server() {
    let servers = [Lease::take(), Lease::take()];
    let session = through(&servers).await;
    let before: i64 = value(&session, "rpc.test.use_count", args!["tensor"]).await;
    let tensor: Tensor = value(&session, "rpc.test.shared", args!["tensor"]).await;
    let held: i64 = value(&session, "rpc.test.use_count", args!["tensor"]).await;
    assert_eq!(held, before + 1);
    drop(tensor);
    let after: i64 = value(&session, "rpc.test.use_count", args!["tensor"]).await;
    assert_eq!(after, before);
}

#[bisync]
#[case]
async fn the_local_session_is_a_constructor_too() {
    let options = SessionOptions::default().with_constructor(SessionConstructor::local());
    let session = open_with(&options).await;
    let sum: i64 = value(&session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
}

#[bisync]
#[case]
async fn a_constructor_that_the_server_does_not_know_is_named() {
    let error = refused(SessionConstructor::named("no.such")).await;
    assert!(
        message(&error).contains("Cannot find session constructor no.such"),
        "{error}"
    );
}

#[bisync]
#[case]
async fn a_constructor_that_raises_says_why() {
    let constructor = SessionConstructor::named("rpc.test.except").arg("no session today");
    let error = refused(constructor).await;
    assert_eq!(
        message(&error),
        "Server[SockServerLoop]: Error caught from session constructor rpc.test.except:\n\
         no session today"
    );

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = crate::support::address(nobody.local_addr().unwrap());
    drop(nobody);
    let error = refused(SessionConstructor::connect(&address, "")).await;
    assert!(message(&error).contains("Connect to 127.0.0.1:"), "{error}");
}

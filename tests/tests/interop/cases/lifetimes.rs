//! What the server holds for a session, and how a session ends.

use rpc_session::{SessionError, SessionOptions, args};
use rpc_tests::peers::{Server, Tracker};
use rpc_tracker_client::RequestOptions;

use super::bench::{call, open, until, value};
use super::{Function, Object, RemoteSession, Tensor, TrackerClient, bisync, case};
use crate::support::{SOON, address};

#[bisync]
async fn use_count(session: &RemoteSession, kind: &str) -> i64 {
    value(session, "rpc.test.use_count", args![kind]).await
}

#[bisync]
#[case]
async fn a_returned_tensor_is_freed_once() {
    let session = open().await;
    let before = use_count(&session, "tensor").await;
    let tensor: Tensor = value(&session, "rpc.test.shared", args!["tensor"]).await;
    assert_eq!(use_count(&session, "tensor").await, before + 1);
    let view = tensor.view(&[1], tensor.dtype(), 0).unwrap();
    drop(tensor);
    // The view keeps it.
    assert_eq!(use_count(&session, "tensor").await, before + 1);
    drop(view);
    assert_eq!(use_count(&session, "tensor").await, before);
    // No second release follows.
    assert_eq!(use_count(&session, "tensor").await, before);
}

#[bisync]
#[case]
async fn returned_functions_and_objects_are_freed_once() {
    let session = open().await;
    let before = use_count(&session, "function").await;
    let function: Function = value(&session, "rpc.test.shared", args!["function"]).await;
    let clone = function.clone();
    drop(function);
    assert_eq!(use_count(&session, "function").await, before + 1);
    let sum: i64 = clone.call(args![1]).await.unwrap().try_into().unwrap();
    assert_eq!(sum, 2);
    drop(clone);
    assert_eq!(use_count(&session, "function").await, before);

    let before = use_count(&session, "object").await;
    let object: Object = value(&session, "rpc.test.shared", args!["object"]).await;
    assert_eq!(use_count(&session, "object").await, before + 1);
    drop(object);
    assert_eq!(use_count(&session, "object").await, before);
}

/// More than go ahead of one request.
#[bisync]
#[case]
async fn a_thousand_handles_are_freed() {
    let session = open().await;
    let before = use_count(&session, "tensor").await;
    let shared = session.function("rpc.test.shared").await.unwrap();
    let mut held = Vec::new();
    for _ in 0..1000 {
        held.push(shared.call(args!["tensor"]).await.unwrap());
    }
    assert_eq!(use_count(&session, "tensor").await, before + 1000);
    drop(held);
    until(SOON, "all handles to be freed", async || {
        use_count(&session, "tensor").await == before
    })
    .await;
}

/// As the reference tests itself, but for its counter of references, which needs a test framework.
#[bisync]
#[case]
async fn a_function_gives_its_tensor_again_and_again() {
    let session = open().await;
    let get: Function = value(&session, "rpc.test.remote_return_nd", args!["get_arr"]).await;
    let first: Tensor = get.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(first.to_vec::<f32>().await.unwrap(), [0.0; 10]);
    drop(first);
    let again: Tensor = get.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(again.to_vec::<f32>().await.unwrap(), [0.0; 10]);

    let element: Function =
        value(&session, "rpc.test.remote_return_nd", args!["get_arr_elem"]).await;
    let nine = session.cpu(0).tensor(&[2], &[8.0_f32, 9.0]).await.unwrap();
    let element: f64 = element
        .call(args![&nine, 1])
        .await
        .unwrap()
        .try_into()
        .unwrap();
    assert_eq!(element, 9.0);
}

#[bisync]
#[case]
async fn a_closed_session_says_so() {
    let session = open().await;
    let function = session.function("rpc.test.addone").await.unwrap();
    let tensor = session.cpu(0).tensor(&[1], &[1_i32]).await.unwrap();
    session.close().await;
    session.close().await;

    let errors = [
        function.call(args![1]).await.map(drop).unwrap_err(),
        tensor.to_vec::<i32>().await.map(drop).unwrap_err(),
        tensor.copy_from(&[2_i32]).await.unwrap_err(),
        session.files().upload("x", b"x").await.unwrap_err(),
        call(&session, "rpc.test.addone", args![1])
            .await
            .map(drop)
            .unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, SessionError::Closed), "{error:?}");
        assert!(error.is_fatal());
    }
    drop((function, tensor));

    // The server is free for the next one.
    let session = session.reopen().await;
    let sum: i64 = value(&session, "rpc.test.addone", args![1]).await;
    assert_eq!(sum, 2);
}

#[bisync]
#[case]
async fn a_device_is_free_again_after_its_session() {
    let tracker = Tracker::start();
    let _server = Server::builder()
        .key("one")
        .tracker(tracker.addr())
        .test_functions()
        .start();
    let client = TrackerClient::new(address(tracker.addr()));
    let request = RequestOptions::new("one");
    let options = SessionOptions::default();
    let free = async || client.summary().await.unwrap().queues["one"].free;

    let closed = RemoteSession::request(&client, &request, &options)
        .await
        .unwrap();
    assert_eq!(free().await, 0);
    let tensor = closed.cpu(0).tensor(&[1], &[1_i32]).await.unwrap();
    closed.close().await;
    until(SOON, "the device of a closed session", async || {
        free().await == 1
    })
    .await;
    drop(tensor);

    let dropped = RemoteSession::request(&client, &request, &options)
        .await
        .unwrap();
    let tensor = dropped.cpu(0).tensor(&[1], &[1_i32]).await.unwrap();
    drop(dropped);
    // What came out of a session keeps it.
    assert_eq!(tensor.to_vec::<i32>().await.unwrap(), [1]);
    assert_eq!(free().await, 0);
    drop(tensor);
    until(SOON, "the device of a dropped session", async || {
        free().await == 1
    })
    .await;
}

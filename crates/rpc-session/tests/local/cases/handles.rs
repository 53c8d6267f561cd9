//! Handles that are not what they should be, and how many there may be.

use rpc_proto::{DataType, Returned, Value};
use rpc_session::{LocalOptions, LocalTensor};

use super::client::{Client, refused, tensor, value};
use super::{Session as _, bisync, twin_test};

#[bisync]
#[twin_test]
async fn handles_that_are_not_alive_are_named() {
    let mut client = Client::test();
    let addone = client.function("rpc.test.addone").await;
    client.session.free(0).await.unwrap();
    client.session.free(addone).await.unwrap();
    let not_alive = |handle: u64| format!("handle {handle} is not alive in this session");
    for handle in [addone, 0, 77, u64::MAX] {
        let message = not_alive(handle);
        let message = message.as_str();
        refused(
            client.call(handle, &[Value::Int(1)]).await,
            &["expected a function", message],
        );
        for (argument, expected) in [
            (Value::Function(handle), "a function"),
            (Value::Module(handle), "a module"),
            (Value::Object(handle), "an object"),
        ] {
            let call = client.call_named("testing.echo", &[argument]).await;
            refused(call, &["ValueError", expected, message]);
        }
    }
    for handle in [addone, 77, u64::MAX] {
        refused(
            client.session.free(handle).await,
            &[not_alive(handle).as_str()],
        );
    }
    // The session goes on, and a number is not given twice.
    assert!(client.function("rpc.test.addone").await > addone);
}

#[bisync]
#[twin_test]
async fn handles_of_another_kind_are_named() {
    let mut client = Client::test();
    let library = client.call_named("ffi.SystemLib", &[]).await.unwrap();
    let Value::Module(library) = value(library) else {
        panic!("expected a module");
    };
    let echo = client.function("testing.echo").await;
    let zeros = client
        .call_named("rpc.test.remote_return_nd", &["get_arr".into()])
        .await;
    let Value::Function(get) = value(zeros.unwrap()) else {
        panic!("expected a function");
    };
    let (_, zeros) = tensor(client.call(get, &[]).await.unwrap());
    refused(
        client.call(library, &[]).await,
        &["TypeError: expected a function, but handle", "is a module"],
    );
    refused(client.call(zeros, &[]).await, &["is a tensor"]);
    let calls = [
        (
            Value::Function(library),
            "expected a function",
            "is a module",
        ),
        (Value::Module(echo), "expected a module", "is a function"),
        (Value::Module(zeros), "expected a module", "is a tensor"),
    ];
    for (argument, expected, found) in calls {
        refused(client.call(echo, &[argument]).await, &[expected, found]);
    }
    // Whatever has a handle is an object.
    for handle in [library, echo, zeros] {
        client.call(echo, &[Value::Object(handle)]).await.unwrap();
    }
}

#[bisync]
#[twin_test]
async fn ten_thousand_objects_are_freed_to_the_last() {
    let mut client = Client::test();
    let make = client.function("ffi.Shape").await;
    let zeros = client
        .call_named("rpc.test.remote_return_nd", &["get_arr".into()])
        .await;
    let Value::Function(get) = value(zeros.unwrap()) else {
        panic!("expected a function");
    };
    let count = client
        .call_named("rpc.test.remote_return_nd", &["ref_count".into()])
        .await;
    let Value::Function(count) = value(count.unwrap()) else {
        panic!("expected a function");
    };
    let baseline = (client.session.handles(), client.session.memory());
    let owners = client.call(count, &[]).await.unwrap();
    let mut handles = Vec::new();
    for number in 0..10_000 {
        let made = client.call(make, &[Value::Int(number)]).await.unwrap();
        handles.push(made.handle().unwrap());
        let (view, handle) = tensor(client.call(get, &[]).await.unwrap());
        assert_eq!(view.dtype, DataType::FLOAT32);
        handles.push(handle);
    }
    assert_eq!(client.session.handles(), baseline.0 + 20_000);
    assert_eq!(client.session.memory(), baseline.1 + 40);
    assert_eq!(
        value(client.call(count, &[]).await.unwrap()),
        Value::Int(10_001)
    );
    for handle in handles {
        client.session.free(handle).await.unwrap();
    }
    assert_eq!(
        (client.session.handles(), client.session.memory()),
        baseline
    );
    assert_eq!(client.call(count, &[]).await.unwrap(), owners);
}

#[bisync]
#[twin_test]
async fn more_handles_than_allowed_are_refused() {
    let options = LocalOptions::default().with_handles(4);
    let mut functions = rpc_session::test_functions();
    functions.add("fresh", || LocalTensor::zeros(&[100], DataType::INT8));
    let mut client = Client::with(&functions, None, options);
    let fresh = client.function("fresh").await;
    let echo = client.function("testing.echo").await;
    let made = client.call_named("ffi.Shape", &[]).await.unwrap();
    let there = client.tensor(&[4], DataType::FLOAT64).await;
    let (_, last) = tensor(
        client
            .call(echo, &[Value::Tensor(there.clone())])
            .await
            .unwrap(),
    );

    let limit = &["4 handles", "limit"];
    refused(client.session.get_function("testing.echo").await, limit);
    refused(
        client.call(echo, &[Value::Tensor(there.clone())]).await,
        limit,
    );
    refused(client.call(echo, &[Value::Object(last)]).await, limit);
    refused(client.call(fresh, &[]).await, limit);
    // What needs no handle goes on.
    assert_eq!(
        value(client.call(echo, &[Value::Int(1)]).await.unwrap()),
        Value::Int(1)
    );
    client.session.free(made.handle().unwrap()).await.unwrap();
    let again = client
        .call(echo, &[Value::Tensor(there.clone())])
        .await
        .unwrap();
    assert!(matches!(again, Returned::Tensor { .. }));

    // There may be as many allocations.
    for _ in 0..3 {
        client.tensor(&[0], DataType::FLOAT64).await;
    }
    let over = client.session.allocate_tensor(&there, None).await;
    refused(over, &["4 allocations", "limit"]);
    client
        .session
        .free_data(there.device, there.data)
        .await
        .unwrap();
    client.tensor(&[4], DataType::FLOAT64).await;
    // What was refused holds nothing.
    for handle in [last, again.handle().unwrap()] {
        client.session.free(handle).await.unwrap();
    }
    assert_eq!(client.session.memory(), 32);
}

#[bisync]
#[twin_test]
async fn nothing_is_left_when_the_client_goes() {
    let mut client = Client::test();
    let echo = client.function("testing.echo").await;
    let there = client.tensor(&[1000], DataType::FLOAT64).await;
    client
        .call(echo, &[Value::Tensor(there.clone())])
        .await
        .unwrap();
    client.session.shutdown().await;
    assert_eq!((client.session.handles(), client.session.memory()), (0, 0));
    refused(client.call(echo, &[Value::Int(1)]).await, &["not alive"]);
    refused(client.read(&there, 8).await, &["no memory"]);
}

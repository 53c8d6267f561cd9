//! The functions that every server has, those of the reference's tests, and functions that fail.

use rpc_proto::{DataType, Value};
use rpc_session::{Exception, Functions, LocalModule, LocalOptions, LocalTensor};

use super::client::{Client, floats, refused, tensor, value, view};
use super::{Construct as _, LocalSessions, Session as _, bisync, twin_test};

#[bisync]
#[twin_test]
async fn the_functions_of_the_tests_do_what_those_of_the_reference_do() {
    let mut client = Client::test();
    let int = Value::Int;
    for (name, args, expected) in [
        ("rpc.test.addone", vec![int(10)], int(11)),
        (
            "rpc.test.strcat",
            vec!["abc".into(), int(11)],
            Value::from("abc:11"),
        ),
        (
            "rpc.test.strcat",
            vec!["abc".into(), Value::Float(1.0)],
            Value::from("abc:1.0"),
        ),
        (
            "rpc.test.strcat",
            vec!["abc".into(), Value::Bool(true)],
            Value::from("abc:True"),
        ),
        (
            "rpc.test.runtime_str_concat",
            vec!["abc".into(), "def".into()],
            Value::from("abcdef"),
        ),
        ("testing.echo", vec![int(100), int(2), int(3)], int(100)),
    ] {
        let result = client.call_named(name, &args).await;
        assert_eq!(value(result.unwrap()), expected, "{name}");
    }
    for (name, args, exception) in [
        (
            "rpc.test.except",
            vec!["abc".into()],
            Exception::new("ValueError", "abc"),
        ),
        (
            "testing.test_raise_error",
            vec!["KeyError".into(), "msg".into()],
            Exception::new("KeyError", "msg"),
        ),
        (
            "rpc.test.remote_return_nd",
            vec!["what".into()],
            Exception::runtime("unknown name"),
        ),
    ] {
        assert_eq!(client.call_named(name, &args).await, Err(exception));
    }
    refused(
        client.call_named("rpc.test.addone", &[int(i64::MAX)]).await,
        &["OverflowError"],
    );
    refused(client.call_named("testing.echo", &[]).await, &["TypeError"]);
    assert_eq!(client.session.get_function("no.such").await.unwrap(), None);
    assert_eq!(client.session.get_function("").await.unwrap(), None);
}

#[bisync]
#[twin_test]
async fn three_by_four_ones_of_any_type() {
    let mut client = Client::test();
    for (dtype, one) in [
        (DataType::FLOAT64, &1.0_f64.to_le_bytes()[..]),
        (DataType::FLOAT32, &1.0_f32.to_le_bytes()),
        (DataType::INT64, &1_i64.to_le_bytes()),
        (DataType::UINT8, &[1]),
    ] {
        let ones = client.tensor(&[3, 4], dtype).await;
        let args = [Value::Tensor(ones.clone())];
        refused(
            client
                .call_named("rpc.test.remote_tensor_func", &args)
                .await,
            &["AssertionError"],
        );
        client.write(&ones, &one.repeat(12)).await.unwrap();
        client
            .call_named("rpc.test.remote_tensor_func", &args)
            .await
            .unwrap();
        let other = view(ones.data, &[12], dtype);
        let args = [Value::Tensor(other)];
        refused(
            client
                .call_named("rpc.test.remote_tensor_func", &args)
                .await,
            &["AssertionError"],
        );
    }
}

#[bisync]
async fn on_zeros(client: &mut Client, what: &'static str) -> u64 {
    let args = [Value::from(what)];
    let made = client
        .call_named("rpc.test.remote_return_nd", &args)
        .await
        .unwrap();
    match value(made) {
        Value::Function(handle) => handle,
        other => panic!("expected a function, found {other:?}"),
    }
}

#[bisync]
#[twin_test]
async fn a_tensor_is_shared_by_the_functions_on_it() {
    let mut client = Client::test();
    let count = on_zeros(&mut client, "ref_count").await;
    let get = on_zeros(&mut client, "get_arr").await;
    let element = on_zeros(&mut client, "get_elem").await;
    let element_of = on_zeros(&mut client, "get_arr_elem").await;
    let int = Value::Int;
    assert_eq!(value(client.call(count, &[]).await.unwrap()), int(1));
    let (zeros, first) = tensor(client.call(get, &[]).await.unwrap());
    assert_eq!(value(client.call(count, &[]).await.unwrap()), int(2));
    let (again, second) = tensor(client.call(get, &[]).await.unwrap());
    assert_eq!(value(client.call(count, &[]).await.unwrap()), int(3));
    assert_eq!(zeros, again);
    assert_eq!(client.read_all(&zeros).await, floats(&[0.0; 10]));

    client
        .write(
            &view(zeros.data + 8, &[1], DataType::FLOAT32),
            &floats(&[7.5]),
        )
        .await
        .unwrap();
    assert_eq!(
        value(client.call(element, &[int(2)]).await.unwrap()),
        Value::Float(7.5)
    );
    assert_eq!(
        value(client.call(element, &[int(-8)]).await.unwrap()),
        Value::Float(7.5)
    );
    let args = [Value::Tensor(again), int(2)];
    assert_eq!(
        value(client.call(element_of, &args).await.unwrap()),
        Value::Float(7.5)
    );
    for index in [10, -11, i64::MAX, i64::MIN] {
        refused(client.call(element, &[int(index)]).await, &["IndexError"]);
    }
    for handle in [first, second] {
        client.session.free(handle).await.unwrap();
    }
    assert_eq!(value(client.call(count, &[]).await.unwrap()), int(1));
    for handle in [count, get, element, element_of] {
        client.session.free(handle).await.unwrap();
    }
    // The next one to ask gets fresh zeros.
    let element = on_zeros(&mut client, "get_elem").await;
    assert_eq!(
        value(client.call(element, &[int(2)]).await.unwrap()),
        Value::Float(0.0)
    );
}

#[bisync]
#[twin_test]
async fn shapes_are_objects_of_the_server() {
    let mut client = Client::test();
    let made = client
        .call_named("ffi.Shape", &[Value::Int(2), Value::Int(3)])
        .await
        .unwrap();
    let shape = Value::Object(made.handle().unwrap());
    let size = client
        .call_named("rpc.testing.GetShapeSize", std::slice::from_ref(&shape))
        .await
        .unwrap();
    assert_eq!(value(size), Value::Int(2));
    let args = [shape.clone(), Value::Int(1)];
    let size = client
        .call_named("rpc.testing.GetShapeElem", &args)
        .await
        .unwrap();
    assert_eq!(value(size), Value::Int(3));
    for index in [2, -1] {
        let args = [shape.clone(), Value::Int(index)];
        client
            .call_named("rpc.testing.GetShapeElem", &args)
            .await
            .unwrap_err();
    }
    let args = [Value::Int(1)];
    refused(
        client.call_named("rpc.testing.GetShapeSize", &args).await,
        &["#0", "an object"],
    );
}

#[bisync]
#[twin_test]
async fn a_function_that_panics_costs_its_own_call() {
    let held = LocalTensor::zeros(&[4], DataType::INT8).unwrap();
    let mut functions = Functions::new();
    functions
        .add("text", |x: i64| -> i64 { panic!("there is no {x}") })
        .add("literal", || -> i64 { panic!("no") })
        .add("other", || -> i64 { std::panic::panic_any(3_i32) })
        .add("index", |x: usize| [1, 2, 3][x])
        .add("held", move || {
            held.to_vec::<i8>().map(|elements| elements.len())
        });
    let mut client = Client::new(&functions);
    for (name, args, message) in [
        (
            "text",
            vec![Value::Int(5)],
            "the function text panicked: there is no 5",
        ),
        ("literal", vec![], "the function literal panicked: no"),
        (
            "other",
            vec![],
            "the function other panicked: without a message",
        ),
        ("index", vec![Value::Int(9)], "index out of bounds"),
    ] {
        refused(
            client.call_named(name, &args).await,
            &["RuntimeError", message],
        );
    }
    let result = client.call_named("index", &[Value::Int(1)]).await;
    assert_eq!(value(result.unwrap()), Value::Int(2));
    assert_eq!(
        value(client.call_named("held", &[]).await.unwrap()),
        Value::Int(4)
    );
    assert_eq!(client.session.handles(), 0);
}

#[bisync]
#[twin_test]
async fn the_system_library_and_its_imports() {
    let mut functions = Functions::new();
    functions
        .add_to_system_lib("one", || 1)
        .add("module", || LocalModule::new().with("two", || 2));
    let mut client = Client::new(&functions);
    const GET: &str = "tvm.rpc.server.ModuleGetFunction";
    const IMPORT: &str = "tvm.rpc.server.ImportModule";
    let library = value(client.call_named("ffi.SystemLib", &[]).await.unwrap());
    let args = [library.clone(), "one".into(), Value::Bool(true)];
    let Value::Function(one) = value(client.call_named(GET, &args).await.unwrap()) else {
        panic!("expected a function");
    };
    assert_eq!(value(client.call(one, &[]).await.unwrap()), Value::Int(1));

    let module = value(client.call_named("module", &[]).await.unwrap());
    client
        .call_named(IMPORT, &[library.clone(), module.clone()])
        .await
        .unwrap();
    // It is one library in a session, however often it is asked for; a truth value may be an integer.
    let library = value(client.call_named("ffi.SystemLib", &[]).await.unwrap());
    let args = [library.clone(), "two".into(), Value::Int(1)];
    assert!(matches!(
        value(client.call_named(GET, &args).await.unwrap()),
        Value::Function(_)
    ));
    for (name, imports) in [("two", false), ("three", true), ("", true)] {
        let args = [library.clone(), name.into(), Value::Bool(imports)];
        assert_eq!(
            value(client.call_named(GET, &args).await.unwrap()),
            Value::None
        );
    }
    for args in [
        [module.clone(), library.clone()],
        [library.clone(), library.clone()],
    ] {
        refused(client.call_named(IMPORT, &args).await, &["import"]);
    }
    refused(
        client.call_named(GET, &[library]).await,
        &["expected 3 arguments"],
    );

    let mut other = Client::new(&functions);
    let library = value(other.call_named("ffi.SystemLib", &[]).await.unwrap());
    let args = [library, "two".into(), Value::Bool(true)];
    let two = value(other.call_named(GET, &args).await.unwrap());
    assert_eq!(
        two,
        Value::None,
        "what a client imports is not seen by another"
    );
}

#[bisync]
#[twin_test]
async fn tensors_are_filled_where_they_are() {
    let mut client = Client::test();
    for name in [
        "tvm.contrib.random.random_fill",
        "tvm.contrib.random.random_fill_for_measure",
    ] {
        let there = client.tensor(&[100], DataType::FLOAT32).await;
        client
            .call_named(name, &[Value::Tensor(there.clone())])
            .await
            .unwrap();
        let bytes = client.read_all(&there).await;
        let filled = bytes
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes));
        assert!(filled.into_iter().all(|x| (1.0..=10.0).contains(&x)));
    }
}

#[bisync]
#[twin_test]
async fn what_the_user_adds_comes_before_what_a_server_has() {
    let mut functions = Functions::new();
    functions.add("ffi.SystemLib", || "mine");
    let mut client = Client::new(&functions);
    let library = client.call_named("ffi.SystemLib", &[]).await.unwrap();
    assert_eq!(value(library), Value::from("mine"));
}

#[bisync]
#[twin_test]
async fn a_limit_on_packets_is_told_if_there_is_one() {
    const NAME: &str = "tvm.rpc.server.GetCRTMaxPacketSize";
    let mut client = Client::test();
    assert_eq!(client.session.get_function(NAME).await.unwrap(), None);
    let options = LocalOptions::default().with_max_packet(2048);
    let mut client = Client::with(&Functions::new(), None, options);
    assert_eq!(
        value(client.call_named(NAME, &[]).await.unwrap()),
        Value::Int(2048)
    );
}

#[bisync]
#[twin_test]
async fn each_client_gets_a_session_of_its_own() {
    let sessions = LocalSessions::new(rpc_session::test_functions(), None, LocalOptions::default());
    let mut one = sessions.construct(&[]).await.unwrap();
    let mut two = sessions.construct(&[]).await.unwrap();
    let handle = one.get_function("testing.echo").await.unwrap().unwrap();
    assert!(two.call(handle, &[Value::None], None).await.is_err());
    let with_argument = sessions.construct(&[Value::Int(1)]).await.map(drop);
    refused(with_argument, &["no arguments"]);
}

//! Every kind of value goes in, and comes out the same.

use rpc_proto::{BulkKind, DataType, Device, DeviceType, Returned, Value};
use rpc_session::{
    Exception, Functions, LocalFunction, LocalModule, LocalObject, LocalOptions, LocalTensor,
    LocalValue,
};

use super::client::{Client, refused, tensor, value, view};
use super::{Session as _, bisync, twin_test};

#[bisync]
#[twin_test]
async fn plain_values_are_echoed() {
    let mut client = Client::test();
    for plain in [
        Value::None,
        Value::Int(i64::MIN),
        Value::Bool(true),
        Value::Float(-0.5),
        Value::Pointer(u64::MAX),
        Value::DataType("float32x4".parse().unwrap()),
        Value::Device(Device::new(DeviceType::OPENCL, 3)),
        Value::from(""),
        Value::from("text with a \0 and é"),
        Value::from(&b""[..]),
        Value::from(&b"\0\xff"[..]),
    ] {
        let args = [plain, Value::Int(2)];
        let echoed = client.call_named("testing.echo", &args).await.unwrap();
        assert_eq!(value(echoed), args[0]);
    }
}

#[bisync]
#[twin_test]
async fn handles_are_echoed_as_handles_of_their_kind() {
    struct Thing;
    let mut functions = rpc_session::test_functions();
    functions
        .add("module", || LocalModule::new().with("one", || 1))
        .add("object", || LocalObject::new(Thing).with_type_index(200))
        .add("is_thing", |object: LocalObject| {
            object.downcast_ref::<Thing>().is_some()
        })
        .add("call", |function: LocalFunction, x: i64| {
            function.call(&[x.into()])
        })
        .add("from", |module: LocalModule, name: &str| {
            module
                .get_function(name, false)
                .unwrap()
                .map(|function| function.call(&[]))
                .transpose()
        });
    let mut client = Client::new(&functions);

    let add = client
        .call_named("rpc.test.add_to_lhs", &[Value::Int(10)])
        .await
        .unwrap();
    let echoed = client
        .call_named("testing.echo", &[value(add)])
        .await
        .unwrap();
    let Value::Function(_) = value(echoed.clone()) else {
        panic!("expected a function, found {echoed:?}");
    };
    let sum = client
        .call_named("call", &[value(echoed), Value::Int(12)])
        .await;
    assert_eq!(value(sum.unwrap()), Value::Int(22));

    let module = client.call_named("module", &[]).await.unwrap();
    let echoed = client
        .call_named("testing.echo", &[value(module)])
        .await
        .unwrap();
    let args = [value(echoed), Value::from("one")];
    let one = client.call_named("from", &args).await.unwrap();
    assert_eq!(value(one), Value::Int(1));
    let args = [args[0].clone(), Value::from("two")];
    assert_eq!(
        value(client.call_named("from", &args).await.unwrap()),
        Value::None
    );

    let object = client.call_named("object", &[]).await.unwrap();
    let Returned::Object {
        type_index: 200,
        handle,
    } = object
    else {
        panic!("expected an object, found {object:?}");
    };
    let known = client
        .call_named("is_thing", &[Value::Object(handle)])
        .await;
    assert_eq!(value(known.unwrap()), Value::Bool(true));
}

#[bisync]
#[twin_test]
async fn a_tensor_comes_back_under_another_handle_for_the_same_memory() {
    let mut client = Client::test();
    let mut there = client.tensor(&[2, 2], DataType::INT16).await;
    there.device = Device::cpu(5);
    client
        .write(&there, &[1, 0, 2, 0, 3, 0, 4, 0])
        .await
        .unwrap();
    let args = [Value::Tensor(there.clone())];
    let first = client.call_named("testing.echo", &args).await.unwrap();
    let second = client.call_named("testing.echo", &args).await.unwrap();
    let ((first, one), (second, two)) = (tensor(first), tensor(second));
    assert_eq!((&first, &second), (&there, &there));
    assert_ne!(one, two);

    // Its last part, by an offset; what comes back says it by the address.
    let mut part = view(there.data, &[1, 2], DataType::INT16);
    part.byte_offset = 4;
    let echoed = client
        .call_named("testing.echo", &[Value::Tensor(part)])
        .await
        .unwrap();
    let (part, _) = tensor(echoed);
    assert_eq!((part.data, part.byte_offset), (there.data + 4, 0));
    assert_eq!(client.read_all(&part).await, [3, 0, 4, 0]);
}

#[bisync]
#[twin_test]
async fn every_type_of_argument_and_result_of_a_function() {
    let mut functions = Functions::new();
    functions
        .add("integers", |a: i8, b: i16, c: i32, d: i64| {
            i64::from(a) + i64::from(b) + i64::from(c) + d
        })
        .add("unsigned", |a: u8, b: u16, c: u32, d: u64, e: usize| {
            u64::from(a) + u64::from(b) + u64::from(c) + d + e as u64
        })
        .add("floats", |a: f32, b: f64| f64::from(a) + b)
        .add("bools", |a: bool, b: bool| a && b)
        .add("texts", |a: &str, b: String| a.len() + b.len())
        .add("bytes", |a: &[u8], b: Vec<u8>| [a, &b].concat())
        .add("kinds", |dtype: DataType, device: Device| {
            format!("{dtype} {device}")
        })
        .add("optional", |a: Option<i64>, b: Option<&str>| match (a, b) {
            (Some(a), Some(b)) => Some(format!("{a}{b}")),
            _ => None,
        })
        .add("any", |value: LocalValue| value)
        .add("nothing", || ())
        .add("too_much", || u64::MAX)
        .add("parsed", |text: &str| text.parse::<i64>())
        .add("raised", |_: Option<i64>| {
            Err::<i64, _>(Exception::new("KeyError", "k"))
        });
    let mut client = Client::new(&functions);
    let int = Value::Int;
    for (name, args, expected) in [
        (
            "integers",
            vec![int(-128), int(1), int(2), int(3)],
            int(-122),
        ),
        (
            "unsigned",
            vec![int(255), int(1), int(2), int(3), int(4)],
            int(265),
        ),
        ("floats", vec![int(1), Value::Float(0.5)], Value::Float(1.5)),
        ("bools", vec![int(1), Value::Bool(true)], Value::Bool(true)),
        ("texts", vec!["ab".into(), "c".into()], int(3)),
        (
            "bytes",
            vec![Value::from(&b"a"[..]), Value::from(&b"b"[..])],
            Value::from(&b"ab"[..]),
        ),
        (
            "kinds",
            vec![DataType::INT8.into(), Device::cpu(1).into()],
            "int8 cpu:1".into(),
        ),
        // A peer of the legacy dialect may send a data type as text.
        (
            "kinds",
            vec!["int8".into(), Device::cpu(0).into()],
            "int8 cpu:0".into(),
        ),
        ("optional", vec![int(1), "x".into()], "1x".into()),
        ("optional", vec![Value::None, "x".into()], Value::None),
        ("any", vec![Value::Pointer(3)], Value::Pointer(3)),
        ("nothing", vec![], Value::None),
        ("parsed", vec!["17".into()], int(17)),
        (
            "integers",
            vec![Value::Bool(true), int(0), int(0), int(0)],
            int(1),
        ),
    ] {
        let result = client.call_named(name, &args).await;
        assert_eq!(value(result.unwrap()), expected, "{name}");
    }
    for (name, args, parts) in [
        (
            "integers",
            vec![int(128), int(0), int(0), int(0)],
            &[
                "TypeError: argument #0 of integers: expected an integer from -128 to 127, found the integer 128",
            ][..],
        ),
        (
            "unsigned",
            vec![int(0), int(0), int(0), int(-1), int(0)],
            &["#3 of unsigned", "-1"],
        ),
        (
            "texts",
            vec!["a".into()],
            &["TypeError: texts: expected 2 arguments, found 1"],
        ),
        (
            "nothing",
            vec![int(1)],
            &["TypeError: nothing: expected 0 arguments, found 1"],
        ),
        (
            "texts",
            vec!["a".into(), Value::None],
            &["argument #1 of texts: expected a text, found none"],
        ),
        (
            "bytes",
            vec!["a".into(), "b".into()],
            &["expected bytes, found a text"],
        ),
        (
            "optional",
            vec!["a".into(), Value::None],
            &["expected an integer or none, found a text"],
        ),
        (
            "too_much",
            vec![],
            &["OverflowError", "18446744073709551615"],
        ),
        ("parsed", vec!["x".into()], &["RuntimeError: invalid digit"]),
        ("raised", vec![Value::None], &["KeyError: k"]),
    ] {
        refused(client.call_named(name, &args).await, parts);
    }
    assert_eq!(client.session.handles(), 0);
}

#[bisync]
#[twin_test]
async fn large_arguments_are_collected_within_the_limit() {
    let mut functions = Functions::new();
    functions
        .add("length", |_: i64, bytes: &[u8]| bytes.len())
        .add("ends", |text: &str| {
            format!("{}{}", &text[..1], &text[text.len() - 1..])
        });
    let options = LocalOptions::default().with_memory(1 << 20);
    let mut client = Client::with(&functions, None, options);
    let data = vec![b'x'; 1 << 20];
    let args = [Value::Int(0)];
    for nbytes in [0, 1, 262_143, 262_144, 262_145, 1 << 20] {
        let length = client
            .call_bulk(
                "length",
                &args,
                BulkKind::Bytes,
                nbytes as u64,
                &mut &data[..nbytes],
            )
            .await;
        assert_eq!(value(length.unwrap()), Value::Int(nbytes as i64));
    }
    assert_eq!(client.session.memory(), 0);
    let ends = client
        .call_bulk("ends", &[], BulkKind::Text, 1000, &mut &data[..1000])
        .await;
    assert_eq!(value(ends.unwrap()), Value::from("xx"));

    let mut nothing = &b""[..];
    for nbytes in [(1 << 20) + 1, 1 << 40, u64::MAX] {
        let over = client
            .call_bulk("length", &args, BulkKind::Bytes, nbytes, &mut nothing)
            .await;
        refused(over, &["MemoryError", "limit of this session"]);
    }
    let short = client
        .call_bulk("length", &args, BulkKind::Bytes, 1000, &mut &data[..999])
        .await;
    refused(short, &["1000 bytes"]);
    let broken = client
        .call_bulk("ends", &[], BulkKind::Text, 2, &mut &b"\xff\xff"[..])
        .await;
    refused(broken, &["UTF-8"]);
    assert_eq!(client.session.memory(), 0);
}

#[bisync]
#[twin_test]
async fn a_tensor_of_the_server_is_read_and_written_by_the_client() {
    let there = LocalTensor::from_slice(&[3], &[1_u16, 2, 3]).unwrap();
    let mut functions = Functions::new();
    let given = there.clone();
    functions.add("get", move || given.clone());
    let mut client = Client::new(&functions);
    let (view, handle) = tensor(client.call_named("get", &[]).await.unwrap());
    assert_eq!(client.read_all(&view).await, [1, 0, 2, 0, 3, 0]);
    client.write(&view, &[4, 0, 5, 0, 6, 0]).await.unwrap();
    assert_eq!(there.to_vec::<u16>().unwrap(), [4, 5, 6]);
    assert_eq!(client.session.memory(), 6);
    client.session.free(handle).await.unwrap();
    assert_eq!(client.session.memory(), 0);
    // The server still has it, but the client does not.
    refused(client.read(&view, 6).await, &["no memory of this session"]);
}

//! Recorded values, there and back.

use rpc_proto::{DataType, Device, TypeCode, Value};
use rpc_session::args;

use super::session::{Played, described};
use super::{Argument, Function, Module, Object, Output, Tensor, bisync, twin_test};

const TWENTY: [u8; 20] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
];

/// The arguments of a recorded call of `golden.describe`, or nothing for what our types cannot say.
fn arguments(step: &str) -> Option<Vec<Argument<'static>>> {
    let value = |value: Value<'static>| vec![Argument::Value(value)];
    let dtype = |text: &str| value(Value::DataType(text.parse().unwrap()));
    Some(match step {
        "no args" => vec![],
        "None" => value(Value::None),
        "1" => value(Value::Int(1)),
        "-1" => value(Value::Int(-1)),
        "2**62" => value(Value::Int(1 << 62)),
        "-2**63" => value(Value::Int(i64::MIN)),
        "2.5" => value(Value::Float(2.5)),
        "True" => value(Value::Bool(true)),
        "False" => value(Value::Bool(false)),
        "''" => vec!["".into()],
        "'abc'" => vec!["abc".into()],
        "'abcdefg' (7)" => vec!["abcdefg".into()],
        "'abcdefgh' (8)" => vec!["abcdefgh".into()],
        "long str" => vec!["The quick brown fox jumps over the lazy dog".into()],
        "utf8" => vec!["héllo 世界".into()],
        // The reference cuts the text there before it is sent.
        "str with NUL" => vec!["ab".into()],
        "bytearray(b'')" | "bytes b''" => vec![Vec::new().into()],
        "bytearray(b'123')" | "bytes b'123'" => vec![b"123".to_vec().into()],
        "bytearray 20" | "bytes 20" => vec![TWENTY.to_vec().into()],
        "mixed" => vec![
            1.into(),
            "two".into(),
            3.0.into(),
            ().into(),
            true.into(),
            vec![4].into(),
            "seven777".into(),
        ],
        "remote cpu(0)" => vec![Device::cpu(0).into()],
        "remote cuda(2)" => vec!["cuda:2".parse::<Device>().unwrap().into()],
        "c_void_p(0x1234)" => value(Value::Pointer(0x1234)),
        "c_void_p(0)" => value(Value::Pointer(0)),
        "dtype float32" => dtype("float32"),
        "dtype int8x4" => dtype("int8x4"),
        "dtype bool" => dtype("bool"),
        "dtype bfloat16" => dtype("bfloat16"),
        "dtype float8_e4m3fn" => value(Value::DataType(DataType {
            code: TypeCode(10),
            bits: 8,
            lanes: 1,
        })),
        "tvm_ffi String" => vec!["ffi string object".into()],
        _ => return None,
    })
}

/// The text in Python's quotes.
fn unquoted(ok: &str) -> &str {
    let start = ok.find(['\'', '"']).unwrap();
    &ok[start + 1..ok.len() - 1]
}

#[bisync]
#[twin_test]
async fn call_args() {
    let played = Played::open("session_call_args").await;
    let describe = played.function("golden.describe").await;
    let mut compared = 0;
    for outcome in played.recording.outcomes() {
        let step = outcome.step.strip_prefix("describe(");
        let step = step.and_then(|step| step.strip_suffix(')'));
        let Some(args) = step.and_then(arguments) else {
            continue;
        };
        let text: String = describe.call(&args).await.unwrap().try_into().unwrap();
        assert_eq!(
            text,
            unquoted(outcome.ok.as_ref().unwrap()),
            "{}",
            outcome.step
        );
        compared += 1;
    }
    assert_eq!(compared, 33);

    let elements = [0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0];
    let tensor = played
        .session
        .cpu(0)
        .tensor(&[2, 3], &elements)
        .await
        .unwrap();
    let text: String = describe
        .call(args![&tensor])
        .await
        .unwrap()
        .try_into()
        .unwrap();
    assert_eq!(
        text,
        "1:Tensor(float32,[2, 3],[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])"
    );

    let add_to = played.function("rpc.test.add_to_lhs").await;
    let _add_ten: Function = add_to.call(args![10]).await.unwrap().try_into().unwrap();
    let ret = played.function("golden.ret").await;
    let module: Module = ret.call(args!["module"]).await.unwrap().try_into().unwrap();
    let kind = played.function("golden.module_kind").await;
    let kind: String = kind.call(args![&module]).await.unwrap().try_into().unwrap();
    assert_eq!(kind, "library");
    played.close().await;
}

#[bisync]
#[twin_test]
async fn call_returns() {
    let played = Played::open("session_call_returns").await;
    let ret = played.function("golden.ret").await;
    let mut compared = 0;
    for outcome in played.recording.outcomes() {
        let name = outcome.step.strip_prefix("ret(");
        let Some(name) = name.and_then(|name| name.strip_suffix(')')) else {
            continue;
        };
        let output = ret.call(args![name]).await.unwrap();
        assert_eq!(Some(described(&output)), outcome.ok, "{name}");
        if let Output::Module(module) = &output {
            // So the recorder found out that it is no tensor.
            assert!(module.get_function("numpy").await.unwrap().is_none());
        }
        compared += 1;
    }
    assert_eq!(compared, 51);
    played.close().await;
}

#[bisync]
#[twin_test]
async fn get_global_func() {
    let played = Played::open("session_get_global_func").await;
    let session = &played.session;
    drop(played.function("rpc.test.addone").await);
    for name in ["no.such.function", "tvm.rpc.server.GetCRTMaxPacketSize", ""] {
        assert!(session.get_function(name).await.unwrap().is_none());
    }
    let first = played.function("rpc.test.addone").await;
    let second = played.function("rpc.test.addone").await;
    drop(first);
    let two = second.call(args![1]).await.unwrap();
    assert!(matches!(two, Output::Int(2)), "{two:?}");
    played.close().await;
}

#[bisync]
#[twin_test]
async fn objects() {
    let played = Played::open("session_objects").await;
    let make = played.function("ffi.Shape").await;
    let shape: Object = make.call(args![2, 3]).await.unwrap().try_into().unwrap();
    for (index, size) in [(0, 2), (1, 3)] {
        let element = played.function("rpc.testing.GetShapeElem").await;
        let found = element.call(args![&shape, index]).await.unwrap();
        assert_eq!(i64::try_from(found).unwrap(), size);
    }
    let size = played.function("rpc.testing.GetShapeSize").await;
    let found = size.call(args![&shape]).await.unwrap();
    assert_eq!(i64::try_from(found).unwrap(), 2);

    let make = played.function("ffi.Array").await;
    let array: Object = make
        .call(args![1, 2, "x"])
        .await
        .unwrap()
        .try_into()
        .unwrap();
    let size = played.function("ffi.ArraySize").await;
    let found = size.call(args![&array]).await.unwrap();
    assert_eq!(i64::try_from(found).unwrap(), 3);
    let item = played.function("ffi.ArrayGetItem").await;
    let found = item.call(args![&array, 2]).await.unwrap();
    assert_eq!(String::try_from(found).unwrap(), "x");

    let describe = played.function("golden.describe").await;
    let text = describe.call(args![&shape, &array]).await.unwrap();
    assert_eq!(
        String::try_from(text).unwrap(),
        r#"2:Shape((2, 3))|Array((1, 2, "x"))"#
    );
    played.close().await;
}

#[bisync]
#[twin_test]
async fn return_tensor() {
    let played = Played::open("session_return_tensor").await;
    let make = played.function("rpc.test.remote_return_nd").await;
    let mut functions = Vec::new();
    for name in ["get_arr", "ref_count", "get_elem", "get_arr_elem"] {
        let made = make.call(args![name]).await.unwrap();
        functions.push(Function::try_from(made).unwrap());
    }
    let [get_arr, _, get_elem, get_arr_elem] = &functions[..] else {
        unreachable!("four functions were made");
    };
    let tensor: Tensor = get_arr.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(
        (tensor.shape(), tensor.dtype()),
        (&[10][..], DataType::FLOAT32)
    );
    let element = get_elem.call(args![0]).await.unwrap();
    assert!(matches!(element, Output::Float(0.0)), "{element:?}");
    let element = get_arr_elem.call(args![&tensor, 0]).await.unwrap();
    assert!(matches!(element, Output::Float(0.0)), "{element:?}");
    assert_eq!(tensor.to_vec::<f32>().await.unwrap(), [0.0; 10]);
    let numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0_f32];
    tensor.copy_from(&numbers).await.unwrap();
    assert_eq!(tensor.to_vec::<f32>().await.unwrap(), numbers);
    played.close().await;
}

#[bisync]
#[twin_test]
async fn exceptions() {
    let played = Played::open("session_exceptions").await;
    let raised = |kind: &'static str| {
        let step = format!("raise {kind}");
        (
            step,
            "golden.raise",
            vec![kind.into(), format!("message of {kind}").into()],
        )
    };
    let mut steps: Vec<(String, &str, Vec<Argument<'_>>)> = vec![(
        "rpc.test.except('abc')".into(),
        "rpc.test.except",
        vec!["abc".into()],
    )];
    steps.extend(
        [
            "ValueError",
            "RuntimeError",
            "TypeError",
            "KeyError",
            "IndexError",
            "AttributeError",
            "NotImplementedError",
        ]
        .map(raised),
    );
    steps.extend([
        (
            "raise with unicode + newline".into(),
            "golden.raise",
            vec!["ValueError".into(), "l1\nl2 é".into()],
        ),
        (
            "raise RPCSessionTimeoutError-like text".into(),
            "golden.raise",
            vec!["ValueError".into(), "RPCSessionTimeoutError: fake".into()],
        ),
        (
            "testing.test_raise_error (C++)".into(),
            "testing.test_raise_error",
            vec!["RuntimeError".into(), "msg".into()],
        ),
        (
            "C++ arity error: GetShapeSize()".into(),
            "rpc.testing.GetShapeSize",
            vec![],
        ),
        (
            "C++ type error: GetShapeSize(1)".into(),
            "rpc.testing.GetShapeSize",
            vec![1.into()],
        ),
        (
            "python type error: addone('x')".into(),
            "rpc.test.addone",
            vec!["x".into()],
        ),
    ]);
    for (step, name, args) in steps {
        let function = played.function(name).await;
        let error = function.call(&args).await.unwrap_err();
        let recorded = played.recording.error(&step);
        if error.is_session_timeout() {
            assert_eq!(recorded, "RPCSessionTimeoutError: fake");
        } else {
            assert_eq!(error.remote().unwrap().text(), recorded, "{step}");
        }
    }
    let addone = played.function("rpc.test.addone").await;
    let two = addone.call(args![1]).await.unwrap();
    assert!(matches!(two, Output::Int(2)), "{two:?}");
    played.close().await;
}

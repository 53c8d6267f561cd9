//! Every type of value, as an argument and as a result.

use rpc_proto::{DataType, Device};
use rpc_session::{SessionError, args};

use super::bench::{call, describe, open, value};
use super::{Argument, Function, Module, Object, Output, Tensor, bisync, case};
use crate::support::{CPU, pattern};

#[bisync]
#[case]
async fn plain_values_are_returned_exactly() {
    let session = open().await;
    let ret = session.function("rpc.test.ret").await.unwrap();

    assert!(matches!(
        ret.call(args!["none"]).await.unwrap(),
        Output::None
    ));
    for (kind, expected) in [("bool", true), ("bool_false", false)] {
        let returned: bool = ret.call(args![kind]).await.unwrap().try_into().unwrap();
        assert_eq!(returned, expected, "{kind}");
    }
    for (kind, expected) in [("int", 42), ("int_min", i64::MIN), ("int_max", i64::MAX)] {
        let returned: i64 = ret.call(args![kind]).await.unwrap().try_into().unwrap();
        assert_eq!(returned, expected, "{kind}");
    }
    let float: f64 = ret.call(args!["float"]).await.unwrap().try_into().unwrap();
    assert_eq!(float, 1.5);
    let device: Device = ret.call(args!["device"]).await.unwrap().try_into().unwrap();
    assert_eq!(device, CPU);
    let dtype: DataType = ret.call(args!["dtype"]).await.unwrap().try_into().unwrap();
    assert_eq!(dtype, DataType::FLOAT32);
}

#[bisync]
#[case]
async fn text_and_bytes_are_returned_exactly() {
    let session = open().await;
    let ret = session.function("rpc.test.ret").await.unwrap();

    for (kind, expected) in [
        ("str_empty", ""),
        ("str_short", "abcdefg"),
        ("str_long", "abcdefgh"),
        ("str_unicode", "grüße, 世界"),
    ] {
        let returned: String = ret.call(args![kind]).await.unwrap().try_into().unwrap();
        assert_eq!(returned, expected, "{kind}");
    }
    for (kind, expected) in [
        ("bytes_empty", vec![]),
        ("bytes_short", vec![0x00, 0x01, 0xfe, 0xff]),
        ("bytes_long", (0..=u8::MAX).collect()),
    ] {
        let returned: Vec<u8> = ret.call(args![kind]).await.unwrap().try_into().unwrap();
        assert_eq!(returned, expected, "{kind}");
    }
}

#[bisync]
#[case]
async fn objects_of_the_server_are_returned_as_handles() {
    let session = open().await;

    let tensor: Tensor = value(&session, "rpc.test.ret", args!["tensor"]).await;
    assert_eq!(
        (tensor.shape(), tensor.dtype(), tensor.device()),
        (&[2, 3][..], DataType::FLOAT32, CPU)
    );
    let elements: Vec<f32> = tensor.to_vec().await.unwrap();
    assert_eq!(elements, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);

    let function: Function = value(&session, "rpc.test.ret", args!["function"]).await;
    let sum: i64 = function.call(args![41]).await.unwrap().try_into().unwrap();
    assert_eq!(sum, 42);

    let module: Module = value(&session, "rpc.test.ret", args!["module"]).await;
    assert!(module.get_function("nothing").await.unwrap().is_none());

    let shape: Object = value(&session, "rpc.test.ret", args!["object"]).await;
    const SHAPE: i64 = 69;
    assert_eq!(shape.type_index(), SHAPE);
}

#[bisync]
#[case]
async fn plain_arguments_arrive_as_what_they_are() {
    let session = open().await;
    let cases: &[(&[Argument<'_>], &str)] = &[
        (args![()], "none"),
        (args![true, false], "bool true; bool false"),
        (args![-1, 0_u32, u32::MAX], "int -1; int 0; int 4294967295"),
        (
            args![i64::MIN, i64::MAX],
            "int -9223372036854775808; int 9223372036854775807",
        ),
        (
            args![0.1, -0.0, 1e300, 5e-324, 1.5_f32],
            "float 0.1; float -0.0; float 1e+300; float 5e-324; float 1.5",
        ),
        (
            args![f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
            "float nan; float inf; float -inf",
        ),
        (
            args!["", "abcdefg", "abcdefgh", "grüße, 世界"],
            r#"str ""; str "abcdefg"; str "abcdefgh"; str "grüße, 世界""#,
        ),
        (
            args![b"", b"\x00\x01\xfe\xff", b"\x00........"],
            r#"bytes ""; bytes "0001feff"; bytes "002e2e2e2e2e2e2e2e""#,
        ),
        (
            args![CPU, Device::cpu(3), "opencl:1".parse::<Device>().unwrap()],
            "device 1:0; device 1:3; device 4:1",
        ),
        (
            args![
                DataType::INT8,
                DataType::BOOL,
                "float32x4".parse::<DataType>().unwrap(),
                DataType::BFLOAT16
            ],
            "dtype int8; dtype bool; dtype float32x4; dtype bfloat16",
        ),
    ];
    for &(args, expected) in cases {
        assert_eq!(describe(&session, args).await, expected);
    }
    assert_eq!(describe(&session, &[]).await, "");
}

/// The reference's own client cuts such a text at the NUL.
#[bisync]
#[case]
async fn a_text_with_a_nul_arrives_whole() {
    let session = open().await;
    let described = describe(&session, args!["a\0b", "\0", "a longer one\0"]).await;
    assert_eq!(
        described,
        r#"str "a\u0000b"; str "\u0000"; str "a longer one\u0000""#
    );
}

#[bisync]
#[case]
async fn plain_values_come_back_as_they_went() {
    let session = open().await;
    let echo = session.function("testing.echo").await.unwrap();

    assert!(matches!(echo.call(args![()]).await.unwrap(), Output::None));
    for sent in [true, false] {
        let back: bool = echo.call(args![sent]).await.unwrap().try_into().unwrap();
        assert_eq!(back, sent);
    }
    for sent in [0, -1, i64::MIN, i64::MAX] {
        let back: i64 = echo.call(args![sent]).await.unwrap().try_into().unwrap();
        assert_eq!(back, sent);
    }
    for sent in [0.0, -0.0, 0.1, f64::MAX, f64::INFINITY, f64::NAN] {
        let back: f64 = echo.call(args![sent]).await.unwrap().try_into().unwrap();
        assert_eq!(back.to_bits(), sent.to_bits(), "{sent}");
    }
    for sent in [CPU, Device::cpu(7)] {
        let back: Device = echo.call(args![sent]).await.unwrap().try_into().unwrap();
        assert_eq!(back, sent);
    }
    for sent in ["bool", "int8x4", "float8_e4m3fn", "handle"] {
        let sent: DataType = sent.parse().unwrap();
        let back: DataType = echo.call(args![sent]).await.unwrap().try_into().unwrap();
        assert_eq!(back, sent);
    }
}

#[bisync]
#[case]
async fn text_and_bytes_of_every_size_come_back_as_they_went() {
    let session = open().await;
    let echo = session.function("testing.echo").await.unwrap();

    // Around the limits of what a value holds in itself, and far above those of a buffer.
    for nbytes in [0, 1, 7, 8, 4095, 4096, 100 << 10, 8 << 20] {
        let bytes = pattern(nbytes, 1);
        let back: Vec<u8> = echo.call(args![&bytes]).await.unwrap().try_into().unwrap();
        assert!(back == bytes, "{nbytes} bytes came back changed");

        let text: String = bytes
            .iter()
            .map(|byte| char::from(b'a' + byte % 26))
            .collect();
        let back: String = echo.call(args![&text]).await.unwrap().try_into().unwrap();
        assert!(back == text, "a text of {nbytes} bytes came back changed");
    }
    let text = "世".repeat(100_000);
    let back: String = echo.call(args![&text]).await.unwrap().try_into().unwrap();
    assert!(back == text, "a text of 300000 bytes came back changed");
}

/// A server lends a tensor to the function that gets it as an argument. What that function returns of
/// it is not an answer that the protocol knows, and the reference's own client loses its session there.
#[bisync]
#[case]
async fn an_echoed_tensor_is_refused_and_the_session_goes_on() {
    let session = open().await;
    let tensor = session.cpu(0).tensor(&[2], &[1_i32, 2]).await.unwrap();

    let error = call(&session, "testing.echo", args![&tensor])
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::Answer(_)), "{error:?}");
    assert_eq!(
        describe(&session, args![&tensor]).await,
        "tensor int32 [2] [1, 2]"
    );
}

#[bisync]
#[case]
async fn a_result_of_another_type_is_told() {
    let session = open().await;
    let output = call(&session, "rpc.test.ret", args!["int"]).await.unwrap();
    let error = String::try_from(output).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a text, the function returned an integer"
    );
}

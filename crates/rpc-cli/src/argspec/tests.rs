use proptest::prelude::*;
use rpc_proto::Value;

use super::*;

fn tensor(dtype: &str, shape: &[i64], source: Source) -> ArgSpec {
    ArgSpec::Tensor {
        dtype: dtype.parse().unwrap(),
        shape: shape.to_vec(),
        source,
    }
}

#[test]
fn tensors_have_a_type_a_shape_and_a_source() {
    let constant = |number| Source::Constant(Number::Float(number));
    for (text, expected) in [
        (
            "float32[1024]=random",
            tensor("float32", &[1024], Source::Random),
        ),
        ("int8[2,3]=zeros", tensor("int8", &[2, 3], Source::Zeros)),
        (
            "float16[ 2, 3 ]=arange",
            tensor("float16", &[2, 3], Source::Arange),
        ),
        ("float64[]=3.5", tensor("float64", &[], constant(3.5))),
        ("float32[0]=-1e-3", tensor("float32", &[0], constant(-1e-3))),
        (
            "int64[4]=ones",
            tensor("int64", &[4], Source::Constant(Number::Int(1))),
        ),
        (
            "bool[4]=true",
            tensor("bool", &[4], Source::Constant(Number::Int(1))),
        ),
        (
            "float32x4[8]=zeros",
            tensor("float32x4", &[8], Source::Zeros),
        ),
        (
            "bfloat16[4]=@a=b.npy",
            tensor("bfloat16", &[4], Source::File("a=b.npy".into())),
        ),
    ] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
}

#[test]
fn everything_else_is_a_file_or_a_value() {
    for (text, expected) in [
        ("@x.npy", ArgSpec::File("x.npy".into())),
        (
            "@float32[2]=random",
            ArgSpec::File("float32[2]=random".into()),
        ),
        ("5", ArgSpec::Scalar(Value::Int(5))),
        ("1.5", ArgSpec::Scalar(Value::Float(1.5))),
        ("true", ArgSpec::Scalar(Value::Bool(true))),
        ("none", ArgSpec::Scalar(Value::None)),
        (
            r#""a[1]=zeros""#,
            ArgSpec::Scalar(Value::from("a[1]=zeros")),
        ),
    ] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
}

#[test]
fn mistakes_are_named() {
    for (text, hint) in [
        ("", "expected a value"),
        ("word", "expected a value"),
        ("float32[2", "expected a value"),
        ("float32=zeros", "expected a value"),
        ("float32[2]x=zeros", "expected a value"),
        ("@", "no file"),
        ("float32[2]=@", "no file"),
        ("flat32[2]=zeros", "\"flat32\" is not a data type"),
        ("[2]=zeros", "\"\" is not a data type"),
        ("float32[2,]=zeros", "\"\" is no size"),
        ("float32[-1]=zeros", "\"-1\" is no size"),
        ("float32[2x3]=zeros", "\"2x3\" is no size"),
        (
            "float32[4294967296,4294967296]=zeros",
            "no tensor of float32 has the shape [4294967296, 4294967296]",
        ),
        ("float32[2]=noise", "\"noise\" is no source"),
        ("float32[2]=true", "\"true\" is no source"),
        ("float32[2]=", "\"\" is no source"),
        ("int8[2]=300", "300 is no number of int8"),
        ("int8[2]=1.5", "1.5 is no number of int8"),
        ("float8_e4m3fn[2]=random", "no numbers for float8_e4m3fn"),
        ("device:gpus", "is not a device"),
    ] {
        let error = text.parse::<ArgSpec>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}

#[test]
fn outputs_are_arguments_or_the_result() {
    let out = |target, file: &str| OutSpec {
        target,
        file: file.into(),
    };
    for (text, expected) in [
        ("2=y.npy", out(Target::Argument(2), "y.npy")),
        ("0=a=b", out(Target::Argument(0), "a=b")),
        ("ret=y.npy", out(Target::Returned, "y.npy")),
    ] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
    for text in ["", "y.npy", "2=", "-1=y.npy", "x=y.npy"] {
        assert!(text.parse::<OutSpec>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_tensor_survives_its_text(
        dtype in prop::sample::select(vec!["int8", "uint64", "float16", "bfloat16", "float32", "bool"]),
        shape in prop::collection::vec(0_i64..1000, 0..5),
        arange: bool,
    ) {
        let (word, source) = match arange {
            true => ("arange", Source::Arange),
            false => ("random", Source::Random),
        };
        let text = format!("{dtype}{shape:?}={word}");
        prop_assert_eq!(text.parse(), Ok(tensor(dtype, &shape, source)));
    }

    #[test]
    fn constants_survive(number: i32) {
        let source = Source::Constant(Number::Int(number.into()));
        prop_assert_eq!(format!("int32[1]={number}").parse(), Ok(tensor("int32", &[1], source)));
    }

    #[test]
    fn no_text_panics(text in r#"[a-z0-9\[\],=@."-]{0,24}"#) {
        let _ = text.parse::<ArgSpec>();
        let _ = text.parse::<OutSpec>();
    }

    #[test]
    fn sizes_never_overflow(shape in prop::collection::vec(any::<i64>(), 0..6)) {
        let product = shape.iter().try_fold(4_i128, |bytes, size| {
            (*size >= 0).then(|| bytes.checked_mul((*size).into())).flatten()
        });
        let fits = product.is_some_and(|bytes| bytes <= u64::MAX.into());
        // A later 0 does not undo an overflow.
        prop_assert!(fits || nbytes(DataType::FLOAT32, &shape).is_none());
    }
}

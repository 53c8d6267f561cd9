//! Against the real libraries, where `TVM_RPC_RUNTIME` names them.
#![cfg(feature = "interop")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rpc_runtime::{Arg, Error, Place, Runtime, Value};

fn runtime() -> Runtime {
    Runtime::load(&Place::Auto).unwrap()
}

fn call(name: &str, args: &[Arg<'_>]) -> Value {
    runtime().function(name).unwrap().call(args).unwrap()
}

#[test]
fn what_goes_in_comes_out() {
    let echo = runtime().new_function(|args| Ok(args[0].clone())).unwrap();
    let same = |arg: Arg<'_>| format!("{:?}", echo.call(&[arg]).unwrap());
    assert_eq!(same(Arg::None), "None");
    assert_eq!(same(Arg::Int(i64::MIN)), format!("Int({})", i64::MIN));
    assert_eq!(same(Arg::Bool(true)), "Bool(true)");
    assert_eq!(same(Arg::Float(-0.5)), "Float(-0.5)");
    assert_eq!(same(Arg::Pointer(7)), "Pointer(7)");
    for text in ["", "short", "a text of more than seven bytes", "größe\0x"] {
        assert_eq!(same(Arg::Str(text)), format!("Str({text:?})"));
        let bytes = text.as_bytes();
        assert_eq!(same(Arg::Bytes(bytes)), format!("Bytes({bytes:?})"));
    }
    let device = rpc_proto::Device::cpu(3);
    assert_eq!(same(Arg::Device(device)), format!("Device({device:?})"));
    let dtype = rpc_proto::DataType::FLOAT32;
    assert_eq!(same(Arg::DataType(dtype)), format!("DataType({dtype:?})"));
}

#[test]
fn functions_that_are_not_there_are_none() {
    assert!(runtime().function("no.such.function").is_none());
    let shape = call("ffi.Shape", &[2.into(), 3.into()]);
    let Value::Object(shape) = shape else {
        panic!("{shape:?}")
    };
    let size = call("rpc.testing.GetShapeSize", &[Arg::Object(&shape)]);
    assert!(matches!(size, Value::Int(2)), "{size:?}");
}

#[test]
fn errors_keep_kind_and_message() {
    let load = runtime().function("ffi.ModuleLoadFromFile").unwrap();
    let error = load.call(&["/no/such/file.so".into()]).unwrap_err();
    assert!(error.message.contains("/no/such/file.so"), "{error}");
    assert!(!error.backtrace.is_empty());
    let fails = runtime()
        .new_function(|_| Err(Error::new("ValueError", "no good")))
        .unwrap();
    let error = fails.call(&[]).unwrap_err();
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("ValueError", "no good")
    );
    let panics = runtime()
        .new_function(|_| panic!("at number {}", 7))
        .unwrap();
    assert_eq!(panics.call(&[]).unwrap_err().message, "at number 7");
}

#[test]
fn functions_are_dropped_with_their_last_reference() {
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let counts = Counts(Arc::clone(&dropped));
    let function = runtime().new_function(move |_| {
        let _here = &counts;
        Ok(Value::None)
    });
    let function = function.unwrap();
    runtime()
        .register("rpc_runtime.counts", &function, false)
        .unwrap();
    assert!(
        runtime()
            .register("rpc_runtime.counts", &function, false)
            .is_err()
    );
    function.call(&[]).unwrap();
    drop(function);
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    call("rpc_runtime.counts", &[]);
    call("ffi.FunctionRemoveGlobal", &["rpc_runtime.counts".into()]);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

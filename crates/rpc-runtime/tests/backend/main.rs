//! The backend of sessions, against the real libraries, where `TVM_RPC_RUNTIME` names them.
#![cfg(feature = "interop")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rpc_proto::{DataType, Device, Shape, TensorView};
use rpc_runtime::{Place, Runtime, TvmBackend};
use rpc_session::{
    Backend as _, Exception, Functions, LocalFunction, LocalModule, LocalObject, LocalTensor,
    LocalValue,
};

mod devices;
mod tensors;

const CPU: Device = Device::cpu(0);

fn runtime() -> Runtime {
    Runtime::load(&Place::Auto).unwrap()
}

fn backend() -> TvmBackend {
    TvmBackend::new(runtime()).unwrap()
}

/// A global function of the runtime, as a session has it.
fn global(name: &str) -> LocalFunction {
    backend().function(name, None).unwrap()
}

/// Registers a function in Rust, and gives what the runtime has under its name.
fn registered(function: LocalFunction) -> LocalFunction {
    let name = function.name().to_owned();
    let mut functions = Functions::new();
    functions.insert(function);
    backend().register(&functions).unwrap();
    global(&name)
}

fn remove(name: &str) {
    let remove = runtime().function("ffi.FunctionRemoveGlobal").unwrap();
    remove.call(&[name.into()]).unwrap();
}

/// A tensor in memory of the runtime.
fn tensor(numbers: &[f32]) -> LocalTensor {
    let shape = [i64::try_from(numbers.len()).unwrap()];
    let view = view(&shape, DataType::FLOAT32);
    let memory = backend().allocate_tensor(&view, None).unwrap();
    let tensor = LocalTensor::in_memory(memory, 0, &shape, DataType::FLOAT32).unwrap();
    tensor.write(numbers).unwrap();
    tensor
}

fn view(shape: &[i64], dtype: DataType) -> TensorView {
    TensorView {
        data: 0,
        device: CPU,
        dtype,
        shape: Shape::from(shape),
        byte_offset: 0,
    }
}

fn echo(name: &str) -> LocalFunction {
    registered(LocalFunction::packed(name, |args| {
        Ok(args[0].clone().into())
    }))
}

fn numbers(value: &LocalValue) -> Vec<f32> {
    value.get::<LocalTensor>().unwrap().to_vec().unwrap()
}

/// Counts in its captured value how often that is dropped.
struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn counting(name: &str) -> (LocalFunction, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counts = Counts(Arc::clone(&dropped));
    let function = LocalFunction::packed(name, move |_| {
        let _here = &counts;
        Ok(LocalValue::None)
    });
    (function, dropped)
}

#[test]
fn what_a_function_in_rust_is_given_comes_back() {
    let echo = echo("rpc_runtime.backend.echo");
    let same = |value: LocalValue| {
        let back = echo.call(std::slice::from_ref(&value)).unwrap();
        assert_eq!(format!("{back:?}"), format!("{value:?}"));
    };
    same(LocalValue::None);
    same(i64::MIN.into());
    same(true.into());
    same((-0.5).into());
    same(LocalValue::Pointer(u64::MAX));
    same(DataType::FLOAT32.into());
    same(Device::cpu(3).into());
    for text in ["", "1234567", "12345678", "größe\0 with a NUL"] {
        same(text.into());
        same(text.as_bytes().into());
    }
    same(vec![0xff, 0, 0xfe].into());
    same(vec![0xc3_u8; 100_000].into());
    remove("rpc_runtime.backend.echo");
}

#[test]
fn errors_keep_kind_and_message_in_both_directions() {
    let error = global("ffi.ModuleLoadFromFile")
        .call(&["/no/such.so".into()])
        .unwrap_err();
    assert!(error.message().contains("/no/such.so"), "{error:?}");
    let fails = registered(LocalFunction::packed("rpc_runtime.backend.fails", |args| {
        let rpc_session::Arg::Str(message) = args[0] else {
            panic!("at {} arguments", args.len())
        };
        Err(Exception::new("OddError", message))
    }));
    for message in ["no good", "", "größe\0 with a NUL"] {
        let error = fails.call(&[message.into()]).unwrap_err();
        assert_eq!((error.kind(), error.message()), ("OddError", message));
    }
    let error = fails.call(&[LocalValue::None]).unwrap_err();
    assert_eq!(error, Exception::runtime("at 1 arguments"));
    remove("rpc_runtime.backend.fails");
}

#[test]
fn functions_call_each_other_through_the_runtime() {
    let apply = registered(LocalFunction::packed("rpc_runtime.backend.apply", |args| {
        let [rpc_session::Arg::Function(function), rest @ ..] = args else {
            return Err(Exception::new("TypeError", "expected a function"));
        };
        function.call_with(rest)
    }));
    let triple = LocalFunction::new("triple", |x: i64| x * 3);
    let is_14 = apply.call(&[apply.clone().into(), triple.into(), 14.into()]);
    assert_eq!(is_14.unwrap().get::<i64>().unwrap(), 42);
    let sum = LocalFunction::new("sum", |t: LocalTensor| -> Result<f64, Exception> {
        Ok(t.to_vec::<f32>()?.iter().sum::<f32>().into())
    });
    let nested = apply.call(&[apply.clone().into(), sum.into(), tensor(&[1.0, 2.0]).into()]);
    assert_eq!(nested.unwrap().get::<f64>().unwrap(), 3.0);
    remove("rpc_runtime.backend.apply");
}

#[test]
fn functions_are_dropped_with_their_last_reference() {
    let count = |dropped: &AtomicUsize| dropped.load(Ordering::SeqCst);
    let (function, dropped) = counting("rpc_runtime.backend.counts");
    let own = registered(function);
    own.call(&[]).unwrap();
    drop(own);
    assert_eq!(count(&dropped), 0);
    remove("rpc_runtime.backend.counts");
    assert_eq!(count(&dropped), 1);

    // As an argument, and as what is given back.
    let echo = echo("rpc_runtime.backend.keeps");
    let (function, dropped) = counting("argument");
    let back = echo.call(&[function.into()]).unwrap();
    assert_eq!(count(&dropped), 0);
    back.get::<LocalFunction>().unwrap().call(&[]).unwrap();
    drop(back);
    assert_eq!(count(&dropped), 1);
    remove("rpc_runtime.backend.keeps");

    // One that was not taken, since there is one of that name.
    let [(first, first_dropped), (second, second_dropped)] =
        [(); 2].map(|()| counting("rpc_runtime.backend.twice"));
    registered(first);
    registered(second);
    assert_eq!((count(&first_dropped), count(&second_dropped)), (0, 1));
    remove("rpc_runtime.backend.twice");
    assert_eq!(count(&first_dropped), 1);
}

#[test]
fn a_panic_when_a_function_is_dropped_ends_there() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("while it is dropped")
        }
    }
    let panics = Panics;
    let function = runtime().new_function(move |_| {
        let _here = &panics;
        Ok(rpc_runtime::Value::None)
    });
    drop(function.unwrap());
}

#[test]
fn what_is_not_the_runtimes_is_refused() {
    let echo = echo("rpc_runtime.backend.refuses");
    let module: LocalModule = Functions::new().system_lib();
    let object = LocalObject::new("one in Rust");
    for value in [LocalValue::from(module), object.into()] {
        let error = echo.call(&[value]).unwrap_err();
        assert_eq!(error.kind(), "TypeError");
        assert!(error.message().contains("in Rust"), "{error:?}");
    }
    remove("rpc_runtime.backend.refuses");
}

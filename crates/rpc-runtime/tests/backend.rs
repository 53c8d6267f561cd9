//! The backend of sessions, against the real libraries, where `TVM_RPC_RUNTIME` names them.
#![cfg(feature = "interop")]
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rpc_proto::{DataType, Device, DeviceAttr, DeviceType, OwnedValue, Shape, TensorView, Value};
use rpc_runtime::{Arg, Place, Runtime, TvmBackend};
use rpc_session::{
    Backend, Exception, Functions, LocalFunction, LocalModule, LocalObject, LocalTensor, LocalValue,
};

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
fn a_tensor_is_lent_to_a_function_in_rust() {
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let double = registered(LocalFunction::packed(
        "rpc_runtime.backend.double",
        move |args| {
            let [rpc_session::Arg::Tensor(tensor)] = args else {
                return Err(Exception::new("TypeError", "expected one tensor"));
            };
            let doubled: Vec<_> = tensor.to_vec::<f32>()?.iter().map(|x| x * 2.0).collect();
            tensor.write(&doubled)?;
            *keeps.lock().unwrap() = Some(tensor.clone());
            Ok(LocalValue::None)
        },
    ));
    let in_rust = LocalTensor::from_slice(&[2], &[1.5_f32, -1.0]).unwrap();
    for given in [tensor(&[1.5, -1.0]), in_rust] {
        double.call(&[given.clone().into()]).unwrap();
        assert_eq!(given.to_vec::<f32>().unwrap(), [3.0, -2.0]);
        let kept = kept.lock().unwrap().take().unwrap();
        let errors = [
            kept.to_vec::<f32>().unwrap_err(),
            kept.write(&[0.0_f32; 2]).unwrap_err(),
            double.call(&[kept.into()]).unwrap_err(),
        ];
        for error in errors {
            assert!(error.message().contains("has returned"), "{error:?}");
        }
        assert_eq!(given.to_vec::<f32>().unwrap(), [3.0, -2.0]);
    }
    remove("rpc_runtime.backend.double");
}

#[test]
fn a_part_of_a_tensor_is_lent_alone() {
    let echo = echo("rpc_runtime.backend.part");
    let whole = backend().allocate(CPU, 16, 0, DataType::UINT8).unwrap();
    let part = LocalTensor::in_memory(whole, 8, &[2], DataType::FLOAT32).unwrap();
    part.write(&[7.0_f32, 8.0]).unwrap();
    assert_eq!(numbers(&echo.call(&[part.into()]).unwrap()), [7.0, 8.0]);
    remove("rpc_runtime.backend.part");
}

#[test]
fn a_tensor_that_a_function_in_rust_makes_stays() {
    let make = registered(LocalFunction::packed("rpc_runtime.backend.make", |_| {
        Ok(LocalTensor::from_slice(&[2], &[1.0_f32, 2.0])?.into())
    }));
    let made = make.call(&[]).unwrap();
    assert_eq!(numbers(&made), [1.0, 2.0]);
    let given = tensor(&[3.0]);
    let give = registered(LocalFunction::packed("rpc_runtime.backend.give", {
        let given = given.clone();
        move |_| Ok(given.clone().into())
    }));
    let copy = give.call(&[]).unwrap();
    given.write(&[4.0_f32]).unwrap();
    assert_eq!(numbers(&copy), [3.0]);
    for name in ["make", "give"] {
        remove(&format!("rpc_runtime.backend.{name}"));
    }
}

#[test]
fn a_tensor_may_be_given_twice_in_one_call() {
    let add = registered(LocalFunction::packed("rpc_runtime.backend.add", |args| {
        let [rpc_session::Arg::Tensor(a), rpc_session::Arg::Tensor(b)] = args else {
            return Err(Exception::new("TypeError", "expected two tensors"));
        };
        let [x, y] = [a.to_vec::<f32>()?, b.to_vec::<f32>()?];
        let sum: Vec<_> = x.iter().zip(y).map(|(x, y)| x + y).collect();
        b.write(&sum)?;
        Ok(a.to_vec::<f32>()?[0].into())
    }));
    let in_rust = LocalTensor::from_slice(&[1], &[2.0_f32]).unwrap();
    for given in [tensor(&[2.0]), in_rust] {
        let args = [given.clone().into(), given.clone().into()];
        assert_eq!(add.call(&args).unwrap().get::<f64>().unwrap(), 4.0);
        assert_eq!(given.to_vec::<f32>().unwrap(), [4.0]);
    }
    remove("rpc_runtime.backend.add");
}

#[test]
fn memory_is_not_read_and_written_at_once() {
    let copy = registered(LocalFunction::packed("rpc_runtime.backend.copy", |args| {
        let [rpc_session::Arg::Tensor(a), rpc_session::Arg::Tensor(b)] = args else {
            return Err(Exception::new("TypeError", "expected two tensors"));
        };
        a.copy_to(b)?;
        Ok(LocalValue::None)
    }));
    let [one, other] = [tensor(&[1.0]), tensor(&[2.0])];
    let error = copy
        .call(&[one.clone().into(), one.clone().into()])
        .unwrap_err();
    assert!(error.message().contains("meanwhile"), "{error:?}");
    copy.call(&[one.clone().into(), other.clone().into()])
        .unwrap();
    assert_eq!(other.to_vec::<f32>().unwrap(), [1.0]);
    let mut called = None;
    let mut call = |_: &[u8]| called = Some(copy.call(&[one.clone().into(), one.clone().into()]));
    one.memory().read(0..4, &mut call).unwrap();
    assert!(called.unwrap().is_err());
    remove("rpc_runtime.backend.copy");
}

#[test]
fn one_memory_that_was_given_out_twice_is_copied() {
    let runtime = runtime();
    let identity = runtime.new_function(|args| Ok(args[0].clone())).unwrap();
    let shape = runtime.function("ffi.Shape").unwrap();
    let rpc_runtime::Value::Object(shape) = shape.call(&[2.into()]).unwrap() else {
        panic!("no shape")
    };
    let allocate = runtime.function("runtime.TVMTensorAllocWithScope").unwrap();
    let made = allocate.call(&[
        Arg::Object(&shape),
        Arg::DataType(DataType::FLOAT32),
        Arg::Device(CPU),
        Arg::None,
    ]);
    let rpc_runtime::Value::Tensor(first) = made.unwrap() else {
        panic!("no tensor")
    };
    let object = first.clone().into_object().unwrap();
    let rpc_runtime::Value::Tensor(second) = identity.call(&[Arg::Object(&object)]).unwrap() else {
        panic!("no tensor")
    };
    let write = |bytes: &mut [u8]| bytes.fill(7);
    first.memory().write(0..8, &mut { write }).unwrap();
    second
        .memory()
        .read(0..8, &mut |bytes| {
            assert_eq!(bytes, [7; 8]);
            let both = first
                .memory()
                .read(0..8, &mut |same| assert_eq!(bytes, same));
            both.unwrap();
            assert!(first.memory().write(4..5, &mut { write }).is_err());
            assert!(second.memory().write(4..5, &mut { write }).is_err());
            assert!(identity.call(&[Arg::Object(&object)]).is_err());
        })
        .unwrap();
    let mut other_half = Err(rpc_runtime::Error::new("", ""));
    let mut half = |_: &mut [u8]| other_half = second.memory().write(4..8, &mut { write });
    first.memory().write(0..4, &mut half).unwrap();
    other_half.unwrap();
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

#[test]
fn memory_is_as_large_and_aligned_as_asked_for() {
    let backend = backend();
    let address = registered(LocalFunction::packed("rpc_runtime.backend.at", |args| {
        let mut at = 0;
        if let rpc_session::Arg::Tensor(tensor) = &args[0] {
            let mut see = |bytes: &[u8]| at = bytes.as_ptr() as u64;
            tensor.memory().read(0..tensor.nbytes(), &mut see)?;
        }
        Ok(LocalValue::Pointer(at))
    }));
    for alignment in [0, 1, 64, 128, 4096] {
        for nbytes in [1, 100, 4096] {
            let memory = backend.allocate(CPU, nbytes, alignment, DataType::UINT8);
            let memory = memory.unwrap();
            assert_eq!((memory.nbytes() as u64, memory.device()), (nbytes, CPU));
            let shape = [i64::try_from(nbytes).unwrap()];
            let tensor = LocalTensor::in_memory(memory, 0, &shape, DataType::UINT8).unwrap();
            tensor.write(&vec![7_u8; tensor.nbytes()]).unwrap();
            assert_eq!(tensor.to_vec::<u8>().unwrap(), vec![7_u8; tensor.nbytes()]);
            let at = address.call(&[tensor.into()]).unwrap();
            let LocalValue::Pointer(at) = at else {
                panic!("{at:?}")
            };
            assert_eq!(at % alignment.max(64), 0);
        }
    }
    remove("rpc_runtime.backend.at");
}

#[test]
fn no_bytes_are_memory_too() {
    let echo = echo("rpc_runtime.backend.nothing");
    for alignment in [0, 4096] {
        let memory = backend().allocate(CPU, 0, alignment, DataType::UINT8);
        let tensor = LocalTensor::in_memory(memory.unwrap(), 0, &[0], DataType::FLOAT32).unwrap();
        assert!(tensor.to_vec::<f32>().unwrap().is_empty());
        tensor.write::<f32>(&[]).unwrap();
        assert!(numbers(&echo.call(&[tensor.into()]).unwrap()).is_empty());
    }
    remove("rpc_runtime.backend.nothing");
}

#[test]
fn more_memory_than_there_can_be_is_an_exception() {
    let backend = backend();
    // Of the larger ones, the number of bits is beyond 64 bits, in which the runtime counts them.
    let sizes = [1 << 59, 1 << 60, (1 << 61) - 1, 1 << 61, (1 << 61) + 8];
    for nbytes in sizes.into_iter().chain([i64::MAX as u64, u64::MAX]) {
        for alignment in [0, 4096] {
            let memory = backend.allocate(CPU, nbytes, alignment, DataType::UINT8);
            assert!(memory.is_err(), "{nbytes}");
        }
    }
    for shape in [&[1 << 30, 1 << 31][..], &[1 << 58], &[-1]] {
        let memory = backend.allocate_tensor(&view(shape, DataType::INT64), None);
        assert!(memory.is_err(), "{shape:?}");
    }
}

#[test]
fn devices_that_there_are_not_are_exceptions() {
    let backend = backend();
    let kinds = [0, 2, 3, 5, 18, 19, 60, 100, 127, 128, 129, 5000];
    let kinds = kinds.into_iter().chain([-1, -5, i32::MIN, i32::MAX]);
    let odd = kinds.map(|kind| Device::new(DeviceType(kind), 0));
    let negative = [Device::cpu(-1), Device::cpu(i32::MIN)];
    for device in odd.chain(negative) {
        assert!(backend.check_device(device).is_err(), "{device}");
        let exists = backend.attr(device, DeviceAttr::EXIST);
        let is_there: OwnedValue = Value::Int(1);
        assert_eq!(exists.unwrap() == is_there, device == Device::cpu(0));
        assert!(backend.attr(device, DeviceAttr::WARP_SIZE).is_err());
        assert!(backend.allocate(device, 8, 0, DataType::UINT8).is_err());
        let view = TensorView {
            device,
            ..view(&[2], DataType::UINT8)
        };
        assert!(backend.allocate_tensor(&view, None).is_err());
        assert!(backend.set_device(device).is_err());
        assert!(backend.create_stream(device).is_err());
        assert!(backend.set_stream(device, 0).is_err());
        assert!(backend.current_stream(device).is_err());
        assert!(backend.sync_stream(device, 0).is_err());
        assert!(backend.free_stream(device, 0).is_err());
    }
    let tensor = view(&[2], DataType::UINT8);
    assert!(backend.allocate_tensor(&tensor, Some("no.such")).is_err());
}

#[test]
fn streams_that_were_not_created_are_exceptions() {
    let backend = backend();
    let last = Device::cpu(i32::MAX);
    for device in [CPU, last] {
        let stream = backend.create_stream(device).unwrap();
        assert_eq!(stream, 0);
        backend.set_stream(device, stream).unwrap();
        assert_eq!(backend.current_stream(device).unwrap(), 0);
        backend.sync_stream(device, stream).unwrap();
        backend.free_stream(device, stream).unwrap();
        for wrong in [1, 0xdead_beef, u64::MAX] {
            assert!(backend.set_stream(device, wrong).is_err());
            assert!(backend.sync_stream(device, wrong).is_err());
            assert!(backend.free_stream(device, wrong).is_err());
        }
    }
    let [from, to] = [tensor(&[1.0]), tensor(&[2.0])];
    assert!(backend.copy(&from, &to, 7).is_err());
    backend.copy(&from, &to, 0).unwrap();
    assert_eq!(to.to_vec::<f32>().unwrap(), [1.0]);
    backend.copy(&to, &to, 0).unwrap();
    assert!(backend.copy(&from, &tensor(&[1.0, 2.0]), 0).is_err());
}

//! Tensors of calls, and their memory.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use rpc_proto::{DataType, Device, DeviceType};
use rpc_runtime::Arg;
use rpc_session::{Backend as _, DeviceMemory, Exception, LocalFunction, LocalTensor, LocalValue};

use super::{CPU, backend, echo, numbers, registered, remove, runtime, tensor};

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

/// Memory that is of whatever device it says.
struct Odd(Device);

impl DeviceMemory for Odd {
    fn nbytes(&self) -> usize {
        4
    }

    fn device(&self) -> Device {
        self.0
    }

    fn read(&self, range: Range<usize>, reader: &mut dyn FnMut(&[u8])) -> Result<(), Exception> {
        reader(&[0; 4][range]);
        Ok(())
    }

    fn write(
        &self,
        range: Range<usize>,
        writer: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Exception> {
        writer(&mut [0; 4][range]);
        Ok(())
    }
}

#[test]
fn a_tensor_of_no_device_that_there_can_be_is_refused() {
    let make = registered(LocalFunction::packed("rpc_runtime.backend.odd", |args| {
        let rpc_session::Arg::Device(device) = args[0] else {
            return Err(Exception::new("TypeError", "expected a device"));
        };
        let tensor = LocalTensor::in_memory(Box::new(Odd(device)), 0, &[1], DataType::FLOAT32)?;
        Ok(tensor.into())
    }));
    for kind in [-1, 0, 3, 5, 19, 60, 5000, i32::MAX] {
        let device = Device::new(DeviceType(kind), 0);
        assert!(make.call(&[device.into()]).is_err(), "{device}");
    }
    assert!(make.call(&[Device::cpu(-1).into()]).is_err());
    assert_eq!(numbers(&make.call(&[CPU.into()]).unwrap()), [0.0]);
    remove("rpc_runtime.backend.odd");
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
fn a_call_has_a_limit_of_tensors() {
    let count = registered(LocalFunction::packed("rpc_runtime.backend.count", |args| {
        Ok(i64::try_from(args.len())?.into())
    }));
    let tensor = |_| LocalTensor::from_slice(&[1], &[1.0_f32]).unwrap().into();
    let mut args: Vec<LocalValue> = (0..1024).map(tensor).collect();
    assert_eq!(count.call(&args).unwrap().get::<i64>().unwrap(), 1024);
    // The same one again needs no other lock.
    args.push(args[0].clone());
    assert_eq!(count.call(&args).unwrap().get::<i64>().unwrap(), 1025);
    args.push(tensor(1024));
    let error = count.call(&args).unwrap_err();
    assert!(error.message().contains("limit of 1024"), "{error:?}");
    remove("rpc_runtime.backend.count");
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

//! Devices, their memory and their streams.

use std::sync::Arc;

use rpc_proto::{DataType, Device, DeviceAttr, DeviceType, OwnedValue, TensorView, Value};
use rpc_session::blocking::{LocalSession, Session as _};
use rpc_session::{Backend as _, Functions, LocalFunction, LocalOptions, LocalTensor, LocalValue};

use super::{CPU, backend, echo, numbers, registered, remove, tensor, view};

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
fn parts_of_one_memory_are_copied_where_they_overlap_too() {
    let options = LocalOptions::default();
    let session = LocalSession::new(&Functions::new(), None, options);
    let mut session = session.with_backend(Arc::new(backend()));
    let data = session.allocate(CPU, 10, 0, DataType::UINT8).unwrap();
    let part = |byte_offset, nbytes| TensorView {
        data,
        byte_offset,
        ..view(&[nbytes], DataType::UINT8)
    };
    let whole = part(0, 10);
    for (from, to, nbytes, expected) in [
        (0, 2, 6, b"0101234589"),
        (2, 1, 6, b"0234567789"),
        (0, 7, 3, b"0123456012"),
        (4, 4, 6, b"0123456789"),
    ] {
        session
            .copy_to(&whole, 10, &mut &b"0123456789"[..])
            .unwrap();
        let (from, to) = (part(from, nbytes), part(to, nbytes));
        session.copy_among(&from, &to, 0).unwrap();
        let mut bytes = Vec::new();
        session.copy_from(&whole, 10, &mut bytes).unwrap();
        assert_eq!(bytes, expected);
    }
    let (longer, shorter) = (part(0, 3), part(2, 2));
    assert!(session.copy_among(&longer, &shorter, 0).is_err());
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

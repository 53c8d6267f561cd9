//! What is over a limit is not written.

use super::*;
use crate::{DataType, Device, Shape};

#[test]
fn what_is_over_a_limit_is_not_written() {
    let limits = LIMITS().with_arguments(2).with_packet(100).with_payload(10);
    let field = |packet: Packet<'_>| {
        let [ffi, legacy] = DIALECTS.map(|dialect| {
            let mut out = vec![9];
            let result = packet.encode(dialect, limits, &mut out);
            assert_eq!(result.is_err(), out == [9]);
            result.err().map(|over| over.field)
        });
        assert_eq!(ffi, legacy);
        ffi
    };
    let ints = |n| Values::from_iter((0..n).map(Value::Int));
    let call = |args, nbytes: Option<u64>| Packet::Call {
        function: 1,
        args,
        bulk: nbytes.map(Bulk::bytes),
    };
    assert_eq!(field(call(ints(2), None)), None);
    assert_eq!(field(call(ints(1), Some(10))), None);
    assert_eq!(field(call(ints(2), Some(0))), Some("number of values"));
    assert_eq!(field(call(ints(0), Some(11))), Some("payload"));
    assert_eq!(field(Packet::init(ints(3))), Some("number of values"));
    assert_eq!(field(Packet::Return(ints(3))), Some("number of values"));
    assert_eq!(field(Packet::CopyAck { nbytes: 10 }), None);
    assert_eq!(field(Packet::CopyAck { nbytes: 11 }), Some("payload"));
    // Length, code, count, type index and length of the text are 28 bytes.
    let exception = |n| Packet::Exception {
        text: "x".repeat(n).into(),
    };
    assert_eq!(field(exception(72)), None);
    assert_eq!(field(exception(73)), Some("packet"));
}

#[test]
fn a_tensor_that_no_peer_takes_is_not_written() {
    let limits = LIMITS().with_dimensions(2);
    let over = |result: Result<(), OverLimit>| result.err().map(|over| (over.field, over.found));
    let tensor_of = |dimensions| TensorView {
        data: 0,
        device: Device::cpu(0),
        dtype: DataType::FLOAT32,
        shape: Shape::from_iter(vec![1; dimensions]),
        byte_offset: 0,
    };
    for (dimensions, expected) in [(2, None), (3, Some(("number of dimensions", 3)))] {
        let tensor = || tensor_of(dimensions);
        let argument = || Values::from_iter([1.into(), Value::Tensor(tensor())]);
        let syscalls = [
            Syscall::AllocDataWithScope {
                tensor: tensor(),
                scope: None,
            },
            Syscall::CopyAmong {
                from: tensor(),
                to: tensor_of(1),
                stream: 0,
            },
            Syscall::CopyAmong {
                from: tensor_of(1),
                to: tensor(),
                stream: 0,
            },
        ];
        let packets = [
            Packet::init(argument()),
            Packet::Return(argument()),
            Packet::Call {
                function: 1,
                args: argument(),
                bulk: None,
            },
            Packet::CopyFrom {
                tensor: tensor(),
                nbytes: 4,
            },
            Packet::CopyTo {
                tensor: tensor(),
                nbytes: 4,
            },
        ];
        let mut out = Vec::new();
        for packet in packets.into_iter().chain(syscalls.map(Packet::Syscall)) {
            for dialect in DIALECTS {
                let result = packet.encode(dialect, limits, &mut out);
                assert_eq!(over(result), expected, "{packet:?}");
            }
        }
        let results = [
            Returned::Value(Value::Tensor(tensor())),
            Returned::Tensor {
                tensor: tensor(),
                handle: 1,
            },
        ];
        for returned in results {
            for dialect in DIALECTS {
                let result = encode_returned(dialect, &returned, limits, &mut out);
                assert_eq!(over(result), expected, "{returned:?}");
            }
        }
        assert_eq!(out.is_empty(), expected.is_some());
    }
}

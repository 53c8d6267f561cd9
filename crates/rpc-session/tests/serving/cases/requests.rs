//! Every request leads to its method, and every result to its answer.

use rpc_proto::{
    BulkKind, DataType, Device, DeviceAttr, Packet, Returned, Shape, Syscall, TensorView, Value,
    Values,
};

use super::mock::ADDRESS;
use super::server::{Server, serve_memory};
use crate::support::memory::Memory;
use crate::support::{
    Act, Stage, call, encoded, encoded_returned, exception, init, look_up, pattern, pointer, tensor,
};

/// A request, what the session is asked, and the answer.
pub(super) struct Case {
    pub(super) request: Vec<u8>,
    pub(super) act: Option<Act>,
    pub(super) called: String,
    pub(super) answer: Vec<u8>,
}

impl Case {
    fn new(packet: &Packet<'_>, called: impl Into<String>, answer: &Packet<'_>) -> Self {
        Self {
            request: encoded(packet),
            act: None,
            called: called.into(),
            answer: encoded(answer),
        }
    }

    fn syscall(syscall: Syscall<'_>, called: impl Into<String>, answer: &Packet<'_>) -> Self {
        Self::new(&Packet::Syscall(syscall), called, answer)
    }

    fn with(mut self, act: Act) -> Self {
        self.act = Some(act);
        self
    }

    fn then(mut self, payload: &[u8]) -> Self {
        self.request.extend(payload);
        self
    }

    fn answered_with(mut self, payload: &[u8]) -> Self {
        self.answer.extend(payload);
        self
    }
}

fn attr(value: Value<'_>) -> Packet<'_> {
    Packet::Return(Values::from_iter([value]))
}

fn syscalls() -> Vec<Case> {
    let (void, device) = (Packet::void(), Device::cpu(3));
    let address = pointer(ADDRESS);
    let other = TensorView {
        data: 1 << 40,
        ..tensor()
    };
    vec![
        Case::new(
            &look_up("my.function"),
            r#"get_function("my.function")"#,
            &address,
        ),
        Case::new(&look_up("none"), r#"get_function("none")"#, &pointer(0)).with(Act::Found(None)),
        Case::syscall(
            Syscall::FreeHandle {
                handle: u64::MAX,
                kind: None,
            },
            "free(18446744073709551615)",
            &void,
        ),
        Case::syscall(Syscall::SetDevice { device }, "set_device(cpu:3)", &void),
        Case::syscall(
            Syscall::GetAttr {
                device,
                attr: DeviceAttr(14),
            },
            "attr(cpu:3, 14)",
            &void,
        ),
        Case::syscall(
            Syscall::GetAttr {
                device,
                attr: DeviceAttr(-1),
            },
            "attr(cpu:3, -1)",
            &attr(Value::Int(-5)),
        )
        .with(Act::Attr(Value::Int(-5))),
        Case::syscall(
            Syscall::GetAttr {
                device,
                attr: DeviceAttr(5),
            },
            "attr(cpu:3, 5)",
            &attr("a name".into()),
        )
        .with(Act::Attr("a name".into())),
        Case::syscall(
            Syscall::AllocData {
                device,
                nbytes: 24,
                alignment: 64,
                dtype: DataType::FLOAT32,
            },
            "allocate(cpu:3, 24, 64, float32)",
            &pointer(0x5000),
        )
        .with(Act::Pointer(0x5000)),
        Case::syscall(
            Syscall::AllocDataWithScope {
                tensor: tensor(),
                scope: Some("global".into()),
            },
            format!("allocate_tensor({:?}, Some(\"global\"))", tensor()),
            &address,
        ),
        Case::syscall(
            Syscall::AllocDataWithScope {
                tensor: tensor(),
                scope: None,
            },
            format!("allocate_tensor({:?}, None)", tensor()),
            &address,
        ),
        Case::syscall(
            Syscall::FreeData { device, data: 9 },
            "free_data(cpu:3, 9)",
            &void,
        ),
        Case::syscall(
            Syscall::CopyAmong {
                from: tensor(),
                to: other.clone(),
                stream: 4,
            },
            format!("copy_among({:?}, {other:?}, 4)", tensor()),
            &void,
        ),
        Case::syscall(
            Syscall::CreateStream { device },
            "create_stream(cpu:3)",
            &pointer(0),
        )
        .with(Act::Pointer(0)),
        Case::syscall(
            Syscall::FreeStream { device, stream: 5 },
            "free_stream(cpu:3, 5)",
            &void,
        ),
        Case::syscall(
            Syscall::SetStream { device, stream: 6 },
            "set_stream(cpu:3, 6)",
            &void,
        ),
        Case::syscall(
            Syscall::GetCurrentStream { device },
            "current_stream(cpu:3)",
            &pointer(7),
        )
        .with(Act::Pointer(7)),
        Case::syscall(
            Syscall::StreamSync { device, stream: 0 },
            "sync_stream(cpu:3, 0)",
            &void,
        ),
    ]
}

fn copies() -> Vec<Case> {
    let copy_to = |nbytes| Packet::CopyTo {
        tensor: tensor(),
        nbytes,
    };
    let copy_from = |nbytes| Packet::CopyFrom {
        tensor: tensor(),
        nbytes,
    };
    let ack = |nbytes| Packet::CopyAck { nbytes };
    let void = Packet::void();
    vec![
        Case::new(&copy_to(8), format!("copy_to({:?}, 8)", tensor()), &void).then(b"8 bytes!"),
        Case::new(&copy_to(0), format!("copy_to({:?}, 0)", tensor()), &void),
        Case::new(
            &copy_from(0),
            format!("copy_from({:?}, 0)", tensor()),
            &ack(0),
        ),
        Case::new(
            &copy_from(8),
            format!("copy_from({:?}, 8)", tensor()),
            &ack(8),
        )
        .answered_with(&pattern(8)),
    ]
}

/// Results as the wire has them.
fn results() -> Vec<Returned<'static>> {
    let values = [
        Value::None,
        Value::Int(i64::MIN),
        Value::Bool(true),
        Value::Float(-0.5),
        Value::Pointer(3),
        Value::Pointer(0),
        Value::DataType(DataType::FLOAT32),
        Value::Device(Device::cpu(7)),
        Value::Tensor(tensor()),
        Value::Function(0xf),
        Value::Module(0xe),
        Value::Object(0xd),
        "".into(),
        "seven..".into(),
        "eight...".into(),
        "häßlich \u{1f600}".into(),
        Value::from(pattern(0)),
        Value::from(pattern(7)),
        Value::from(pattern(8)),
        Value::from("x".repeat(4095)),
        Value::from("x".repeat(4096)),
        Value::from(pattern(100_000)),
    ];
    let mut results: Vec<_> = values.into_iter().map(Returned::Value).collect();
    results.push(Returned::Object {
        type_index: 71,
        handle: 12,
    });
    for handle in [0, 13] {
        results.push(Returned::Tensor {
            tensor: tensor(),
            handle,
        });
    }
    results
}

fn calls() -> Vec<Case> {
    let none = Packet::Return(Values::from_iter([Value::Int(0), Value::None]));
    let all = call(
        1 << 63,
        [
            Value::None,
            Value::Int(-1),
            Value::Bool(true),
            Value::Float(0.5),
            Value::Pointer(2),
            Value::DataType(DataType::FLOAT32),
            Value::Device(Device::cpu(1)),
            Value::Tensor(TensorView {
                shape: Shape::default(),
                ..tensor()
            }),
            "text".into(),
            "NUL \0 inside".into(),
            Value::from(pattern(9)),
            Value::Function(5),
            Value::Module(6),
            Value::Object(7),
        ],
    );
    let Packet::Call { function, args, .. } = &all else {
        unreachable!()
    };
    let mut cases = vec![
        Case::new(&call(1, []), "call(1, [])", &none),
        Case::new(&all, format!("call({function}, {args:?})"), &none),
    ];
    for (kind, words) in [(BulkKind::Text, "Text"), (BulkKind::Bytes, "Bytes")] {
        let bulk = Some(rpc_proto::Bulk {
            kind,
            nbytes: 70_000,
        });
        let args = Values::from_iter(["lib.so".into(), Value::Int(2)]);
        let called = format!("call(3, {args:?}, 70000 {words})");
        let packet = Packet::Call {
            function: 3,
            args,
            bulk,
        };
        cases.push(Case::new(&packet, called, &none).then(&[b'x'; 70_000]));
    }
    for returned in results() {
        cases.push(Case {
            request: encoded(&call(2, [])),
            called: "call(2, [])".to_owned(),
            answer: encoded_returned(&returned),
            act: Some(Act::Return(returned)),
        });
    }
    cases
}

pub(super) fn all() -> Vec<Case> {
    [syscalls(), copies(), calls()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_request_leads_to_its_method_and_answer() {
    let server = Server::start();
    let mut client = server.client();
    for case in all() {
        if let Some(act) = case.act {
            server.stage.plan(act);
        }
        client.send(&case.request);
        client.gets(&case.answer);
        assert_eq!(server.stage.calls(), [case.called]);
    }
    client.goodbye();
    let stage = server.stage.clone();
    server.finish().unwrap();
    assert_eq!(stage.shutdowns(), 1);
}

#[test]
fn answers_are_those_of_the_reference() {
    let server = Server::start();
    let mut client = server.stranger();
    let hex = |digits: &str| -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    };
    // Recorded from apache-tvm 0.27.0.post1.
    client.asks(&init());
    client.gets(&hex("0c00000000000000040000000100000000000000"));
    client.asks(&call(1, []));
    client.gets(&hex(
        "18000000000000000400000002000000010000000000000000000000 00000000"
            .replace(' ', "")
            .as_str(),
    ));
    let text = Returned::Value("abcdefg".into());
    server.stage.plan(Act::Return(text));
    client.asks(&call(1, []));
    client.gets(&hex(
        "27000000000000000400000002000000010000000b00000000000000080000000700000000000000\
         61626364656667",
    ));
    server.stage.plan(Act::Fail("abc"));
    client.asks(&call(1, []));
    client.gets(&hex(
        "17000000000000000500000001000000080000000300000000000000616263",
    ));
}

#[test]
fn every_method_may_fail() {
    let server = Server::start();
    let mut client = server.client();
    for case in all() {
        // The kind is not told; what text there is, is.
        for why in ["no \"such\" thing\n  at all", ""] {
            server.stage.plan(Act::Fail(why));
            client.send(&case.request);
            client.exception(why);
        }
    }
    client.is_served();
}

#[test]
fn a_long_exception_is_cut() {
    let server = Server::start();
    let mut client = server.client();
    let whole: &'static str = "€".repeat(400_000).leak();
    server.stage.plan(Act::Fail(whole));
    client.asks(&call(1, []));
    client.exception(&whole[..(1 << 20) / 3 * 3]);
    client.is_served();
}

/// All requests, one behind the other, and the answers.
fn conversation() -> (Vec<Vec<u8>>, Vec<u8>, Vec<String>) {
    let mut requests = vec![encoded(&init())];
    let mut answers = encoded(&Packet::void());
    let mut called = Vec::new();
    for case in all() {
        // Those that need no act of the session's own.
        if case.act.is_none() {
            requests.push(case.request);
            answers.extend(case.answer);
            called.push(case.called);
        }
    }
    requests.push(encoded(&look_up("f")));
    answers.extend(encoded(&pointer(ADDRESS)));
    called.push("get_function(\"f\")".to_owned());
    requests.push(encoded(&init()));
    let twice = "the session is open already, and cannot be opened again";
    answers.extend(encoded(&exception(twice)));
    (requests, answers, called)
}

#[test]
fn requests_that_come_at_once_are_answered_in_their_order() {
    let server = Server::start();
    let (requests, answers, called) = conversation();
    let mut client = server.stranger();
    client.send(&requests.concat());
    assert!(client.read(answers.len()) == answers);
    client.goodbye();
    assert_eq!(server.stage.calls(), called);
}

#[test]
fn requests_may_come_in_any_pieces() {
    let stage = Stage::default();
    let (requests, answers, called) = conversation();
    let goodbye = encoded(&Packet::Shutdown);
    let input = [requests.concat(), goodbye].concat();
    for piece in [1, 2, 3, 7, 64, 4096, usize::MAX] {
        let memory = Memory::new(&input).in_pieces(piece);
        let (ended, received) = serve_memory(&stage, memory);
        ended.unwrap();
        assert!(received == answers, "in pieces of {piece}");
        assert_eq!(stage.calls(), called);
    }
    // Every place of every request, but for the inside of large payloads.
    let mut start = 0;
    for request in &requests {
        for cut in (0..request.len().min(600)).chain([request.len() - 1]) {
            let memory = Memory::new(&input).cut_at(start + cut);
            let (ended, received) = serve_memory(&stage, memory);
            ended.unwrap();
            assert!(received == answers, "in two pieces, cut at {start} + {cut}");
        }
        start += request.len();
    }
}

#[test]
fn packets_of_no_bytes_mean_nothing() {
    let stage = Stage::default();
    let (requests, answers, _) = conversation();
    for piece in [1, 5, usize::MAX] {
        let mut input = vec![0; 8 * 3000];
        for request in &requests {
            input.extend(request);
            input.extend([0; 16]);
        }
        let memory = Memory::new(&input).in_pieces(piece);
        let (ended, received) = serve_memory(&stage, memory);
        ended.unwrap();
        assert!(received == answers);
    }
}

//! Clients that are gone, at any point.

use rpc_proto::{Bulk, BulkKind, DataType, Device, DeviceAttr, Packet, Syscall, Values};
use rpc_session::ServeError;
use rpc_transport::TransportError;

use super::server::{Server, serve_memory};
use crate::support::memory::Memory;
use crate::support::{Act, Stage, call, chain, encoded, init, look_up, pattern, tensor};

/// A request of every kind, with its payload.
fn requests() -> Vec<Vec<u8>> {
    let device = Device::cpu(0);
    let syscall = |syscall| encoded(&Packet::Syscall(syscall));
    let copy_to = Packet::CopyTo {
        tensor: tensor(),
        nbytes: 8,
    };
    let upload = Packet::Call {
        function: 1,
        args: Values::from_iter(["lib.so".into()]),
        bulk: Some(Bulk {
            kind: BulkKind::Bytes,
            nbytes: 70_000,
        }),
    };
    vec![
        vec![0; 8],
        encoded(&look_up("f")),
        encoded(&call(1, [1_i64.into(), "text".into()])),
        [encoded(&copy_to), pattern(8)].concat(),
        encoded(&Packet::CopyFrom {
            tensor: tensor(),
            nbytes: 8,
        }),
        syscall(Syscall::FreeHandle {
            handle: 1,
            kind: None,
        }),
        syscall(Syscall::SetDevice { device }),
        syscall(Syscall::GetAttr {
            device,
            attr: DeviceAttr(0),
        }),
        syscall(Syscall::AllocData {
            device,
            nbytes: 8,
            alignment: 8,
            dtype: DataType::FLOAT32,
        }),
        syscall(Syscall::AllocDataWithScope {
            tensor: tensor(),
            scope: Some("global".into()),
        }),
        syscall(Syscall::CopyAmong {
            from: tensor(),
            to: tensor(),
            stream: 0,
        }),
        syscall(Syscall::FreeData { device, data: 1 }),
        syscall(Syscall::CreateStream { device }),
        syscall(Syscall::FreeStream { device, stream: 1 }),
        syscall(Syscall::SetStream { device, stream: 1 }),
        syscall(Syscall::GetCurrentStream { device }),
        syscall(Syscall::StreamSync { device, stream: 1 }),
        encoded(&Packet::Shutdown),
        [encoded(&upload), pattern(70_000)].concat(),
    ]
}

#[test]
fn a_client_that_vanishes_ends_its_session_once() {
    let opening = encoded(&init());
    for request in requests() {
        let cuts = (0..request.len().min(600)).chain([70_000, request.len()]);
        for cut in cuts.filter(|&cut| cut <= request.len()) {
            let stage = Stage::default();
            let input = [&opening, &request[..cut]].concat();
            let (ended, _) = serve_memory(&stage, Memory::new(&input));
            assert_eq!(stage.shutdowns(), 1, "{cut} of {request:?}");
            if cut == 0 || cut == request.len() {
                ended.unwrap();
            } else {
                let ended = ended.unwrap_err();
                assert!(
                    matches!(ended, ServeError::Transport(TransportError::Closed { .. })),
                    "{ended:?} after {cut} of {request:?}"
                );
            }
        }
    }
}

#[test]
fn a_client_that_vanishes_before_it_has_a_session() {
    let opening = encoded(&init());
    for cut in 0..opening.len() {
        let stage = Stage::default();
        let (ended, received) = serve_memory(&stage, Memory::new(&opening[..cut]));
        assert_eq!(ended.is_ok(), cut == 0);
        assert_eq!((stage.shutdowns(), received), (0, Vec::new()));
    }
}

#[test]
fn the_end_of_the_connection_is_told() {
    let stage = Stage::default();
    let input = [&encoded(&init())[..], b"\x15\0\0"].concat();
    let (ended, _) = serve_memory(&stage, Memory::new(&input));
    assert_eq!(
        chain(&ended.unwrap_err()),
        "memory closed the connection while we were waiting for a request"
    );
}

#[test]
fn a_client_may_vanish_while_its_request_is_done() {
    let gate = crate::support::Gate::default();
    let server = Server::start();
    let mut client = server.client();
    server.stage.plan(Act::Wait(gate.clone()));
    client.asks(&call(1, []));
    server.stage.wait_for_call();
    drop(client);
    gate.open();
    let stage = server.stage.clone();
    // Whether the answer can be written is up to the system.
    let _ = server.finish();
    assert_eq!(stage.shutdowns(), 1);
}

#[test]
fn a_client_may_vanish_in_the_middle_of_an_answer() {
    const LARGE: usize = 48 << 20;
    for act in [
        Act::Give(vec![pattern(1 << 20); LARGE >> 20], Ok(())),
        Act::ReturnBulk {
            kind: BulkKind::Bytes,
            nbytes: LARGE as u64,
            has: pattern(LARGE),
        },
        Act::Return(rpc_proto::Returned::Value(pattern(LARGE).into())),
    ] {
        let copies = matches!(act, Act::Give(..));
        let server = Server::start();
        let mut client = server.client();
        server.stage.plan(act);
        if copies {
            client.asks(&Packet::CopyFrom {
                tensor: tensor(),
                nbytes: LARGE as u64,
            });
        } else {
            client.asks(&call(1, []));
        }
        client.read(100_000);
        drop(client);
        let stage = server.stage.clone();
        let ended = server.finish();
        assert!(matches!(ended, Err(ServeError::Transport(_))), "{ended:?}");
        assert_eq!(stage.shutdowns(), 1);
    }
}

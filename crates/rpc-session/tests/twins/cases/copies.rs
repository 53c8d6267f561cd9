//! Copies to and from tensors, whole and in pieces.

use std::collections::HashMap;

use rpc_proto::{DataType, Device, DeviceType, Packet, Syscall, TensorView, Value};
use rpc_session::SessionError;

use super::session::{finish, open};
use super::{Tensor, bisync, twin_test};
use crate::support::{Server, Talk};

const MAX_PACKET_SIZE: &str = "tvm.rpc.server.GetCRTMaxPacketSize";
const GET_LIMIT: u64 = 5;

/// A server with memory, which checks that no packet is longer than `limit`.
struct Memory {
    limit: usize,
    blocks: HashMap<u64, Vec<u8>>,
    lookups: usize,
    copies: usize,
    copied: Vec<TensorView>,
}

impl Memory {
    fn serve(talk: &mut Talk, limit: Option<i64>) -> Self {
        let mut memory = Self {
            limit: limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap()),
            blocks: HashMap::new(),
            lookups: 0,
            copies: 0,
            copied: Vec::new(),
        };
        loop {
            let request = talk.request();
            match request.packet() {
                Packet::Syscall(Syscall::GetGlobalFunc { name }) => {
                    assert_eq!(name, MAX_PACKET_SIZE);
                    memory.lookups += 1;
                    talk.pointer(if limit.is_some() { GET_LIMIT } else { 0 });
                }
                Packet::Call { function, .. } => {
                    assert_eq!(function, GET_LIMIT);
                    talk.value(limit.unwrap());
                }
                Packet::Syscall(Syscall::AllocDataWithScope { tensor, .. }) => {
                    let address = 0x1000 * (memory.blocks.len() as u64 + 1);
                    let nbytes = usize::try_from(tensor.nbytes().unwrap()).unwrap();
                    memory.blocks.insert(address, vec![0xee; nbytes]);
                    talk.pointer(address);
                }
                Packet::CopyTo { tensor, .. } => {
                    // The length field does not count itself.
                    assert!(request.0.len() - 8 <= memory.limit);
                    memory
                        .part(&tensor, request.payload().len())
                        .copy_from_slice(request.payload());
                    talk.done();
                }
                Packet::CopyFrom { tensor, nbytes } => {
                    let nbytes = usize::try_from(nbytes).unwrap();
                    assert!(4 + nbytes <= memory.limit);
                    let data = memory.part(&tensor, nbytes).to_vec();
                    talk.copy_ack(&data);
                }
                Packet::Shutdown => return memory,
                other => panic!("no request of a copy: {other:?}"),
            }
        }
    }

    fn part(&mut self, tensor: &TensorView, nbytes: usize) -> &mut [u8] {
        self.copies += 1;
        self.copied.push(tensor.clone());
        let start = usize::try_from(tensor.byte_offset).unwrap();
        let block = self.blocks.get_mut(&tensor.data).unwrap();
        &mut block[start..start + nbytes]
    }
}

fn pattern(count: usize) -> Vec<u8> {
    (0..=250).cycle().skip(7).take(count).collect()
}

#[bisync]
async fn there_and_back(tensor: &Tensor) {
    let data = pattern(usize::try_from(tensor.nbytes()).unwrap());
    tensor.copy_from(&data).await.unwrap();
    assert_eq!(tensor.to_vec::<u8>().await.unwrap(), data);
}

#[bisync]
#[twin_test]
async fn pieces_are_within_the_limit_and_exact() {
    /// What is left of 2048 bytes for one dimension: 44 + 8 are the head's.
    const BLOCK: usize = 1996;
    let mut sizes = vec![0, 1];
    for blocks in 1..=3 {
        sizes.extend([blocks * BLOCK - 1, blocks * BLOCK, blocks * BLOCK + 1]);
    }
    for offset in [0, 100] {
        let server = Server::start(|talk| Memory::serve(talk, Some(2048)));
        let session = open(&server).await;
        let mut expected = 0;
        for &size in &sizes {
            let len = i64::try_from(size + 2 * offset).unwrap();
            let tensor = session.cpu(0).empty(&[len], DataType::UINT8).await.unwrap();
            let size_in_wire = i64::try_from(size).unwrap();
            let part = tensor
                .view(&[size_in_wire], DataType::UINT8, offset as u64)
                .unwrap();
            there_and_back(&part).await;
            expected += 2 * size.div_ceil(BLOCK);
        }
        session.close().await;
        let memory = finish(server).await;
        assert_eq!(memory.copies, expected);
        assert_eq!(memory.lookups, 1);
        for block in memory.blocks.values() {
            let (before, rest) = block.split_at(offset);
            let (data, behind) = rest.split_at(rest.len() - offset);
            // Nothing beside the view was touched.
            assert!(before.iter().chain(behind).all(|&byte| byte == 0xee));
            assert_eq!(data, pattern(data.len()));
        }
    }
}

#[bisync]
#[twin_test]
async fn a_piece_for_another_device_is_described_as_what_it_is() {
    let server = Server::start(|talk| Memory::serve(talk, Some(2048)));
    let session = open(&server).await;
    let cuda = Device {
        device_type: DeviceType::CUDA,
        id: 1,
    };
    let tensor = session.device(cuda).empty(&[3000], DataType::UINT8).await;
    there_and_back(&tensor.unwrap()).await;
    session.close().await;
    let memory = finish(server).await;
    // The reference's servers copy all of what is described, wherever it is not in a processor's memory.
    let shapes: Vec<_> = memory.copied.iter().map(|part| part.shape[0]).collect();
    assert_eq!(shapes, [1996, 1004, 1996, 1004]);
    assert!(memory.copied.iter().all(|part| part.device == cuda));
}

#[bisync]
#[twin_test]
async fn a_limit_that_leaves_no_room_is_told() {
    for limit in [0, 51, 52] {
        let server = Server::start(move |talk| Memory::serve(talk, Some(limit)));
        let session = open(&server).await;
        let tensor = session.cpu(0).empty(&[4], DataType::UINT8).await.unwrap();
        let error = tensor.copy_from(&[1_u8; 4]).await.unwrap_err();
        assert!(matches!(error, SessionError::BadTensor(_)), "{error:?}");
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
        session.close().await;
        assert_eq!(finish(server).await.copies, 0);
    }
}

#[bisync]
#[twin_test]
async fn a_server_without_a_limit_is_asked_once() {
    let server = Server::start(|talk| Memory::serve(talk, None));
    let session = open(&server).await;
    for size in [1, 4095, 4096, 4097, 65_536, 14_500_000, 10, 1_000_000] {
        let tensor = session
            .cpu(0)
            .empty(&[size], DataType::UINT8)
            .await
            .unwrap();
        there_and_back(&tensor).await;
    }
    // Nothing has to be copied, and nothing to be asked.
    let nothing = session
        .cpu(0)
        .empty(&[0, 3], DataType::UINT8)
        .await
        .unwrap();
    there_and_back(&nothing).await;
    session.close().await;
    let memory = finish(server).await;
    assert_eq!((memory.lookups, memory.copies), (1, 16));
}

#[bisync]
#[twin_test]
async fn a_nonsensical_limit_is_none() {
    let server = Server::start(|talk| {
        talk.request();
        talk.pointer(0x1000);
        talk.function(MAX_PACKET_SIZE, GET_LIMIT);
        talk.called(GET_LIMIT, []);
        talk.value(-1_i64);
        let request = talk.request();
        assert_eq!(request.payload(), [1; 4]);
        talk.done();
        talk.goodbye();
    });
    let session = open(&server).await;
    let tensor = session.cpu(0).empty(&[4], DataType::UINT8).await.unwrap();
    tensor.copy_from(&[1_u8; 4]).await.unwrap();
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_copy_that_the_server_fails_costs_itself_only() {
    let server = Server::start(|talk| {
        talk.request();
        talk.pointer(0x1000);
        talk.function(MAX_PACKET_SIZE, 0);
        for _ in 0..2 {
            talk.request();
            talk.exception("out of order");
        }
        talk.request();
        talk.copy_ack(&[1, 2, 3, 4]);
        talk.goodbye();
    });
    let session = open(&server).await;
    let tensor = session.cpu(0).empty(&[4], DataType::UINT8).await.unwrap();
    let error = tensor.copy_from(&[1_u8; 4]).await.unwrap_err();
    assert_eq!(error.remote().unwrap().message(), "out of order");
    let error = tensor.to_vec::<u8>().await.unwrap_err();
    assert_eq!(error.remote().unwrap().message(), "out of order");
    assert_eq!(tensor.to_vec::<u8>().await.unwrap(), [1, 2, 3, 4]);
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn a_tensor_that_the_server_claims_to_be_huge_takes_no_memory() {
    let huge = TensorView {
        data: 0x1000,
        device: Device::cpu(0),
        dtype: DataType::UINT8,
        shape: [1_i64 << 50].into_iter().collect(),
        byte_offset: 0,
    };
    let server = Server::start(|talk| {
        talk.function("f", 10);
        talk.called(10, []);
        talk.returned(&rpc_proto::Returned::Tensor {
            tensor: huge,
            handle: 21,
        });
        talk.called(10, [Value::Int(1)]);
        talk.value(1);
        talk.goodbye()
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let tensor: Tensor = function.call(&[]).await.unwrap().try_into().unwrap();
    let read = tensor.to_vec::<u8>().await;
    assert!(matches!(read, Err(SessionError::BadTensor(_))), "{read:?}");
    drop(tensor);
    function.call(rpc_session::args![1]).await.unwrap();
    session.close().await;
    assert_eq!(finish(server).await, [21]);
}

#[bisync]
#[twin_test]
async fn an_offset_that_the_server_made_up_goes_back_to_it() {
    const LIMIT: i64 = 44 + 8 + 16;
    let wild = TensorView {
        data: 1,
        device: Device::cpu(0),
        dtype: DataType::UINT8,
        shape: [64].into_iter().collect(),
        byte_offset: u64::MAX - 3,
    };
    let server = Server::start(|talk| {
        talk.function("f", 5);
        talk.called(5, []);
        talk.returned(&rpc_proto::Returned::Tensor {
            tensor: wild,
            handle: 77,
        });
        talk.function("tvm.rpc.server.GetCRTMaxPacketSize", 6);
        talk.called(6, []);
        talk.value(LIMIT);
        let request = talk.request();
        let Packet::CopyFrom { tensor, .. } = request.packet() else {
            panic!("{request:?}");
        };
        assert_eq!(tensor.byte_offset, u64::MAX - 3);
        talk.copy_ack(&[0; 16]);
        let request = talk.request();
        let Packet::CopyFrom { tensor, .. } = request.packet() else {
            panic!("{request:?}");
        };
        assert_eq!(tensor.byte_offset, u64::MAX);
        talk.exception("there is no such address");
        talk.goodbye()
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let tensor: Tensor = function.call(&[]).await.unwrap().try_into().unwrap();
    let error = tensor.to_vec::<u8>().await.unwrap_err();
    assert!(error.remote().is_some(), "{error:?}");
    drop((tensor, function));
    session.close().await;
    finish(server).await;
}

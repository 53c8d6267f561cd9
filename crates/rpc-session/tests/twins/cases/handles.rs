//! What the server holds for the client is freed: once, by the right number, without waiting.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rpc_proto::{DataType, Device, Packet, Returned, Shape, Syscall, TensorView, Value};

use super::session::{finish, open};
use super::{Function, Object, Output, Tensor, bisync, twin_test};
use crate::support::{PATIENCE, Server, Talk};

const FUNCTION: u64 = 10;
const STREAM_SYNC: Packet<'static> = Packet::Syscall(Syscall::StreamSync {
    device: Device::cpu(0),
    stream: 0,
});

fn view(data: u64) -> TensorView {
    TensorView {
        data,
        device: Device::cpu(0),
        dtype: DataType::FLOAT32,
        shape: Shape::from_iter([2, 3]),
        byte_offset: 0,
    }
}

/// Answers calls of [`FUNCTION`] with objects 1000, 1001, …
fn give_objects(talk: &mut Talk, count: u64) {
    for handle in (1000..).take(usize::try_from(count).unwrap()) {
        talk.called(FUNCTION, []);
        let type_index = 69;
        talk.returned(&Returned::Object { type_index, handle });
    }
}

#[bisync]
async fn take_objects(function: &Function, count: u64) -> Vec<Object> {
    let mut objects = Vec::new();
    for _ in 0..count {
        let object = function.call(&[]).await.unwrap();
        objects.push(object.try_into().unwrap());
    }
    objects
}

fn sorted(mut handles: Vec<u64>) -> Vec<u64> {
    handles.sort_unstable();
    handles
}

#[bisync]
#[twin_test]
async fn everything_is_freed_once_by_its_own_number() {
    let (owned, lent) = (view(0x1000), view(0x3000));
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        for returned in [
            Returned::Tensor {
                tensor: owned,
                handle: 21,
            },
            Returned::Tensor {
                tensor: lent,
                handle: 0,
            },
            Returned::Object {
                type_index: 69,
                handle: 22,
            },
            Returned::Value(Value::Function(23)),
            Returned::Value(Value::Module(24)),
            // A pointer is nobody's to free.
            Returned::Value(Value::Pointer(25)),
        ] {
            talk.called(FUNCTION, []);
            talk.returned(&returned);
        }
        talk.expect(&Packet::Syscall(Syscall::AllocDataWithScope {
            tensor: view(0),
            scope: None,
        }));
        talk.pointer(0x2000);
        for stream in [31, 0] {
            talk.request();
            talk.pointer(stream);
        }
        talk.expect(&STREAM_SYNC);
        let before_clones_went = talk.freed.clone();
        talk.done();
        // What was dropped goes ahead of the next request.
        talk.expect(&STREAM_SYNC);
        talk.done();
        (before_clones_went, talk.goodbye())
    });

    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let mut outputs = Vec::new();
    for _ in 0..6 {
        outputs.push(function.call(&[]).await.unwrap());
    }
    let Output::Tensor(tensor) = &outputs[0] else {
        panic!("{outputs:?}");
    };
    let part = tensor.view(&[3], DataType::FLOAT32, 12).unwrap();
    let device = session.cpu(0);
    let empty = device.empty(&[2, 3], DataType::FLOAT32).await.unwrap();
    let streams = [
        device.create_stream().await.unwrap(),
        device.create_stream().await.unwrap(),
        device.default_stream(),
    ];
    drop((
        outputs.clone(),
        function.clone(),
        empty.clone(),
        streams.clone(),
    ));
    device.sync().await.unwrap();
    drop((outputs, function, empty, streams));
    drop(part);
    device.sync().await.unwrap();
    drop((device, session));

    let (before, freed) = finish(server).await;
    assert!(before.is_empty(), "{before:?}");
    assert_eq!(sorted(freed), [FUNCTION, 21, 22, 23, 24, 31, 0x2000]);
}

#[bisync]
#[twin_test]
async fn ten_thousand_objects_leave_nothing_behind() {
    const COUNT: u64 = 10_000;
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        give_objects(talk, COUNT);
        talk.expect(&STREAM_SYNC);
        talk.done();
        talk.goodbye()
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    for _ in 0..COUNT {
        let object: Object = function.call(&[]).await.unwrap().try_into().unwrap();
        assert_eq!(object.type_index(), 69);
    }
    session.cpu(0).sync().await.unwrap();
    drop(session);
    drop(function);
    let mut freed = sorted(finish(server).await);
    freed.retain(|&handle| handle != FUNCTION);
    assert!(freed.into_iter().eq(1000..1000 + COUNT));
}

#[bisync]
#[twin_test]
async fn more_than_a_batch_goes_ahead_of_the_next_request() {
    for count in [255, 256, 257, 300, 1000] {
        let server = Server::start(move |talk| {
            talk.function("f", FUNCTION);
            give_objects(talk, count);
            talk.expect(&STREAM_SYNC);
            talk.done();
            talk.expect(&STREAM_SYNC);
            talk.done();
            talk.goodbye()
        });
        let session = open(&server).await;
        let function = session.function("f").await.unwrap();
        let objects = take_objects(&function, count).await;
        drop(objects);
        // In the async twin, a request passes by all but one batch.
        session.cpu(0).sync().await.unwrap();
        session.cpu(0).sync().await.unwrap();
        session.close().await;
        let freed = finish(server).await;
        assert!(freed.into_iter().eq(1000..1000 + count), "{count}");
    }
}

#[bisync]
#[twin_test]
async fn that_something_could_not_be_freed_is_no_failure_of_the_next_request() {
    const COUNT: u64 = 600;
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        give_objects(talk, COUNT);
        talk.refuses_to_free = true;
        for _ in 0..4 {
            talk.expect(&STREAM_SYNC);
            talk.done();
        }
        talk.goodbye()
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    drop(take_objects(&function, COUNT).await);
    for _ in 0..4 {
        session.cpu(0).sync().await.unwrap();
    }
    session.close().await;
    assert_eq!(finish(server).await.len(), 600);
}

/// A thousand drops, and how long they took.
#[bisync]
async fn drop_a_thousand(
    prepare: impl FnOnce(&mut Talk, mpsc::Receiver<()>) + Send + 'static,
) -> Duration {
    let (go_on, wait) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        give_objects(talk, 1000);
        prepare(talk, wait);
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let objects = take_objects(&function, 1000).await;
    let start = Instant::now();
    drop(objects);
    drop(function);
    drop(session);
    let took = start.elapsed();
    let _ = go_on.send(());
    finish(server).await;
    took
}

#[bisync]
#[twin_test]
async fn a_drop_does_not_wait_for_a_server_that_is_gone_or_stalls() {
    let gone = drop_a_thousand(|_, _| {}).await;
    assert!(gone < Duration::from_secs(1), "{gone:?}");
    let stalled = drop_a_thousand(|_, wait| wait.recv_timeout(PATIENCE).unwrap()).await;
    assert!(stalled < Duration::from_secs(1), "{stalled:?}");
}

#[bisync]
#[twin_test]
async fn a_session_stays_open_for_what_came_out_of_it() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        talk.returned(&Returned::Tensor {
            tensor: view(0x1000),
            handle: 21,
        });
        talk.function("tvm.rpc.server.GetCRTMaxPacketSize", 0);
        let request = talk.request();
        assert!(matches!(
            request.packet(),
            Packet::CopyFrom { nbytes: 24, .. }
        ));
        talk.copy_ack(&[0; 24]);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let tensor: Tensor = function.call(&[]).await.unwrap().try_into().unwrap();
    drop((session, function));
    let clone = tensor.clone();
    drop(tensor);
    assert_eq!(clone.to_vec::<f32>().await.unwrap(), [0.0; 6]);
    drop(clone);
    finish(server).await;
}

#[super::only_async]
#[twin_test]
async fn what_is_dropped_is_freed_at_once() {
    let (freed, tell) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        let request = talk.next().unwrap();
        talk.note_freed(&request);
        talk.done();
        freed.send(talk.freed.clone()).unwrap();
        talk.goodbye();
    });
    let session = open(&server).await;
    drop(session.function("f").await.unwrap());
    // With no further request.
    let freed = tokio::task::spawn_blocking(move || tell.recv_timeout(PATIENCE));
    assert_eq!(freed.await.unwrap().unwrap(), [FUNCTION]);
    drop(session);
    finish(server).await;
}

//! Many calls at once on one async session.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rpc_proto::{DataType, Packet, Value};
use rpc_session::{SessionError, args};
use tokio::task::JoinSet;

use super::Function;
use super::session::{finish, open};
use crate::support::{PATIENCE, Server};

const FUNCTION: u64 = 10;
const CALLS: i64 = 256;

fn start_calls(function: &Function) -> JoinSet<Result<(i64, i64), SessionError>> {
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let function = function.clone();
        calls.spawn(async move {
            let answer = function.call(args![number]).await?;
            Ok((number, answer.try_into()?))
        });
    }
    calls
}

async fn calls_in_flight() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        let mut numbers = Vec::new();
        // No answer before all of them have come.
        for _ in 0..CALLS {
            let request = talk.request();
            let Packet::Call { args, .. } = request.packet() else {
                panic!("{request:?}");
            };
            let [Value::Int(number)] = args[..] else {
                panic!("{args:?}");
            };
            numbers.push(number);
        }
        for number in numbers {
            talk.value(number * number);
        }
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let mut calls = start_calls(&function);
    let mut answered = 0;
    while let Some(call) = calls.join_next().await {
        let (number, square) = call.unwrap().unwrap();
        assert_eq!(square, number * number);
        answered += 1;
    }
    assert_eq!(answered, CALLS);
    drop((function, session));
    finish(server).await;
}

#[tokio::test]
async fn calls_wait_for_no_answers() {
    calls_in_flight().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_many_threads_wait_for_no_answers() {
    for _ in 0..10 {
        calls_in_flight().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn when_the_session_ends_every_waiting_call_is_told() {
    for round in 0..30 {
        let server = Server::start(move |talk| {
            talk.function("f", FUNCTION);
            for number in 0..round {
                talk.request();
                talk.value(number);
            }
            // What comes now may be read or not, but has no answer.
        });
        let session = open(&server).await;
        let function = session.function("f").await.unwrap();
        let mut calls = start_calls(&function);
        let start = Instant::now();
        let mut answered = 0;
        while let Some(call) = calls.join_next().await {
            match call.unwrap() {
                Ok(_) => answered += 1,
                Err(error) => assert!(matches!(error, SessionError::Transport(_)), "{error:?}"),
            }
        }
        assert!(answered <= round);
        assert!(start.elapsed() < PATIENCE);
        finish(server).await;
    }
}

#[tokio::test]
async fn close_ends_what_is_waiting() {
    let (tell, hear) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        for _ in 0..CALLS {
            talk.request();
        }
        tell.send(()).unwrap();
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let mut calls = start_calls(&function);
    let all_here = tokio::task::spawn_blocking(move || hear.recv_timeout(PATIENCE));
    all_here.await.unwrap().unwrap();
    session.close().await;
    while let Some(call) = calls.join_next().await {
        assert!(matches!(call.unwrap(), Err(SessionError::Closed)));
    }
    finish(server).await;
}

#[tokio::test]
async fn close_ends_a_call_that_the_server_does_not_take() {
    let (tell, hear) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        hear.recv_timeout(PATIENCE).unwrap();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let stuck = tokio::spawn(async move {
        let bytes = vec![0; 64 << 20];
        function.call(args![&bytes]).await.map(|_| ())
    });
    tokio::task::yield_now().await;
    let start = Instant::now();
    session.close().await;
    let ended = stuck.await.unwrap();
    assert!(matches!(ended, Err(SessionError::Closed)), "{ended:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
    tell.send(()).unwrap();
    finish(server).await;
}

#[tokio::test]
async fn a_close_that_is_dropped_still_closes() {
    let server = Server::start(|talk| talk.goodbye());
    let session = open(&server).await;
    {
        let mut close = std::pin::pin!(session.close());
        std::future::poll_fn(|context| {
            let _ = close.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    finish(server).await;
    let error = session.get_function("f").await.unwrap_err();
    assert!(matches!(error, SessionError::Closed), "{error:?}");
}

#[tokio::test]
async fn writing_does_not_wait_for_reading() {
    const LARGE: usize = 48 << 20;
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, [Value::Int(0)]);
        // Reads nothing while it writes more than the system's buffers hold.
        talk.value(vec![1; LARGE]);
        let request = talk.request();
        let Packet::Call { args, .. } = request.packet() else {
            panic!("no call");
        };
        assert!(matches!(&args[..], [Value::Bytes(bytes)] if bytes.len() == LARGE));
        talk.value(7);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let bytes = vec![2; LARGE];
    let (zero, upload) = (args![0], args![&bytes]);
    let (down, up) = tokio::join!(function.call(zero), function.call(upload));
    let down: Vec<u8> = down.unwrap().try_into().unwrap();
    assert!(down == vec![1; LARGE]);
    assert_eq!(i64::try_from(up.unwrap()).unwrap(), 7);
    session.close().await;
    finish(server).await;
}

#[tokio::test]
async fn copies_and_calls_mix() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        talk.request();
        talk.pointer(0x1000);
        talk.function("tvm.rpc.server.GetCRTMaxPacketSize", 0);
        let mut memory = Vec::new();
        loop {
            let request = talk.request();
            match request.packet() {
                Packet::CopyTo { .. } => {
                    memory = request.payload().to_vec();
                    talk.done();
                }
                Packet::CopyFrom { .. } => talk.copy_ack(&memory.clone()),
                Packet::Call { .. } => talk.value(1),
                Packet::Shutdown => return,
                other => panic!("{other:?}"),
            }
        }
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let cpu = session.cpu(0);
    let tensor = cpu.empty(&[1 << 20], DataType::FLOAT32).await.unwrap();
    let data: Vec<f32> = (0..1 << 20).map(|i| i as f32).collect();
    tensor.copy_from(&data).await.unwrap();
    let mut work = JoinSet::new();
    for number in 0..40 {
        let (tensor, function, data) = (tensor.clone(), function.clone(), data.clone());
        work.spawn(async move {
            match number % 3 {
                0 => assert!(tensor.to_vec::<f32>().await.unwrap() == data),
                1 => tensor.copy_from(&data).await.unwrap(),
                _ => drop(function.call(args![number]).await.unwrap()),
            }
        });
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    session.close().await;
    finish(server).await;
}

#[test]
fn a_runtime_ends_while_a_session_is_open() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        while talk.next().is_some() {}
    });
    let (session, function) = runtime.block_on(async {
        let session = open(&server).await;
        let function = session.function("f").await.unwrap();
        (session, function)
    });
    let start = Instant::now();
    drop(runtime);
    // Outside of any runtime.
    drop(function);
    drop(session);
    assert!(start.elapsed() < PATIENCE);
    server.finish();
}

//! Many calls in flight, and futures that are dropped on the way: the async client alone.
//!
//! The cases close their sessions, since what is freed in the end may still be on its way when the
//! runtime ends, and the reference's Python server never serves again after a session that cannot send
//! its replies.

use std::future::Future;
use std::io::Cursor;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use rpc_proto::DataType;
use rpc_session::args;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::bench::{describe, open, until, value};
use super::{RemoteSession, Tensor};
use crate::support::{SOON, pattern};

#[tokio::test]
async fn calls_in_flight_get_their_own_answers() {
    let session = open().await;
    let echo = session.function("testing.echo").await.unwrap();
    let mut calls = JoinSet::new();
    for number in 0_i64..256 {
        let echo = echo.clone();
        calls.spawn(async move {
            let output = echo.call(args![number]).await.unwrap();
            (number, i64::try_from(output).unwrap())
        });
    }
    let mut answered = 0;
    while let Some(call) = calls.join_next().await {
        let (sent, back) = call.unwrap();
        assert_eq!(back, sent);
        answered += 1;
    }
    assert_eq!(answered, 256);
    session.close().await;
}

#[tokio::test]
async fn calls_copies_and_files_in_flight_get_their_own_answers() {
    let session = open().await;
    let echo = session.function("testing.echo").await.unwrap();
    let mut work = JoinSet::new();
    for number in 0_u32..256 {
        let session = RemoteSession::clone(&session);
        let echo = echo.clone();
        work.spawn(async move {
            let bytes = pattern(1 + (number as usize * 997) % 20_000, number.into());
            match number % 3 {
                0 => {
                    let back: Vec<u8> = echo.call(args![&bytes]).await.unwrap().try_into().unwrap();
                    assert!(back == bytes);
                }
                1 => {
                    let shape = [i64::try_from(bytes.len()).unwrap()];
                    let tensor = session.cpu(0).tensor(&shape, &bytes).await.unwrap();
                    assert!(tensor.to_vec::<u8>().await.unwrap() == bytes);
                }
                _ => {
                    let name = format!("file{number}");
                    session.files().upload(&name, &bytes).await.unwrap();
                    assert!(session.files().download(&name).await.unwrap() == bytes);
                }
            }
        });
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    session.close().await;
}

/// Polls `future` `polls` times, with a turn for the session's tasks between two polls, and drops it.
async fn abandon<F: Future>(future: F, polls: usize) {
    let mut future = pin!(future);
    for _ in 0..polls {
        let mut context = Context::from_waker(Waker::noop());
        if future.as_mut().poll(&mut context).is_ready() {
            return;
        }
        yield_now().await;
    }
}

#[tokio::test]
async fn a_dropped_call_leaks_nothing() {
    let session = open().await;
    let shared = session.function("rpc.test.shared").await.unwrap();
    let use_count =
        async |kind: &str| -> i64 { value(&session, "rpc.test.use_count", args![kind]).await };
    for kind in ["tensor", "function", "object"] {
        let before = use_count(kind).await;
        for round in 0..300 {
            abandon(shared.call(args![kind]), round % 20).await;
            // Sometimes with an answer that is on its way.
            if round % 7 == 0 {
                let microseconds = u64::try_from(round).unwrap() * 3;
                let limit = Duration::from_micros(microseconds);
                let _ = timeout(limit, shared.call(args![kind])).await;
            }
        }
        until(SOON, "all that was returned to be freed", async || {
            use_count(kind).await == before
        })
        .await;
    }
    session.close().await;
}

#[tokio::test]
async fn a_dropped_copy_leaves_the_session_in_step() {
    const NBYTES: usize = 4 << 20;
    let session = open().await;
    let bytes = pattern(NBYTES, 5);
    let shape = [i64::try_from(NBYTES).unwrap()];
    let cpu = session.cpu(0);
    let tensor = cpu.tensor(&shape, &bytes).await.unwrap();
    let other = cpu.empty(&shape, DataType::UINT8).await.unwrap();
    let mut target = vec![0; NBYTES];
    for round in 0..40 {
        abandon(tensor.copy_into_bytes(&mut target), round).await;
        abandon(other.copy_from_bytes(&bytes), round).await;
        let microseconds = u64::try_from(round).unwrap() * 100;
        let copy = tensor.to_vec::<u8>();
        let _ = timeout(Duration::from_micros(microseconds), copy).await;
        assert_eq!(describe(&session, args![1]).await, "int 1");
    }
    assert!(tensor.to_vec::<u8>().await.unwrap() == bytes);
    session.close().await;
}

#[tokio::test]
async fn a_dropped_upload_leaves_the_session_in_step() {
    const NBYTES: usize = 8 << 20;
    let session = open().await;
    let files = session.files();
    let bytes = pattern(NBYTES, 6);
    for polls in 1..20 {
        let mut reader = Cursor::new(bytes.clone());
        let mut sent = 0;
        let mut progress = |done, _| sent = done;
        let upload = files.upload_from("file", NBYTES as u64, &mut reader, &mut progress);
        abandon(upload, polls).await;
        assert_eq!(describe(&session, args![1]).await, "int 1");
    }
    files.upload("file", &bytes).await.unwrap();
    assert!(files.download("file").await.unwrap() == bytes);
    session.close().await;
}

#[tokio::test]
async fn a_dropped_download_leaves_the_session_in_step() {
    const NBYTES: usize = 4 << 20;
    let session = open().await;
    let files = session.files();
    let bytes = pattern(NBYTES, 7);
    files.upload("file", &bytes).await.unwrap();
    for round in 0..40 {
        let microseconds = u64::try_from(round).unwrap() * 200;
        let download = files.download("file");
        let _ = timeout(Duration::from_micros(microseconds), download).await;
        assert_eq!(describe(&session, args![1]).await, "int 1");
    }
    assert!(files.download("file").await.unwrap() == bytes);
    session.close().await;
}

/// Replies that are still due are taken: a server that cannot send them fails, and the reference's Python
/// server then never serves again.
#[tokio::test]
async fn a_session_that_is_closed_with_calls_in_flight_leaves_a_server_that_serves() {
    let mut session = open().await;
    for round in 0..20 {
        {
            let echo = session.function("testing.echo").await.unwrap();
            let bytes = pattern(100_000, round);
            for polls in 0..10 {
                abandon(echo.call(args![&bytes]), polls).await;
            }
        }
        if round % 2 == 0 {
            session.close().await;
        }
        session = session.reopen().await;
    }
    assert_eq!(describe(&session, args![1]).await, "int 1");
}

#[tokio::test]
async fn a_dropped_allocation_and_look_up_leave_the_session_in_step() {
    let session = open().await;
    for round in 0..100 {
        abandon(session.cpu(0).empty(&[8], DataType::INT8), round % 10).await;
        abandon(session.function("rpc.test.addone"), round % 10).await;
    }
    let tensor: Tensor = value(&session, "rpc.test.ret", args!["tensor"]).await;
    assert_eq!(
        describe(&session, args![&tensor]).await,
        "tensor float32 [2, 3] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]"
    );
    session.close().await;
}

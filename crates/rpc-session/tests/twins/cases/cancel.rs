//! Futures that are dropped, at every point where they wait.
//!
//! Each case drops the future of one operation after its first poll, its second, and so on until it comes
//! to its end by itself; after each of them the session has to be in step with the server.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll};

use rpc_proto::{
    DataType, Device, DeviceType, Packet, Returned, Shape, Syscall, TensorView, Value,
};
use rpc_session::args;

use super::session::{finish, open};
use super::{Function, Tensor};
use crate::support::talk::{Request, encoded_returned};
use crate::support::{PATIENCE, Server, Talk};

/// Gives up its future after so many polls.
struct GiveUp<F> {
    work: Pin<Box<F>>,
    polls: usize,
}

impl<F: Future> Future for GiveUp<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        match self.work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

async fn give_up_after<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let work = Box::pin(work);
    GiveUp { work, polls }.await
}

const ECHO: u64 = 1;
const GIVE: u64 = 2;
const TAKE: u64 = 3;
/// More than the system's buffers hold.
const LARGE: usize = 32 << 20;
/// Enough for many reads, since it comes in small pieces.
const MANY: usize = 1 << 20;
const CUDA: Device = Device {
    device_type: DeviceType::CUDA,
    id: 0,
};

/// What the server gave out, and what came back.
#[derive(Default)]
struct Ledger {
    next: u64,
    given: BTreeSet<u64>,
    freed: Vec<u64>,
    uploads: Vec<Vec<u8>>,
}

impl Ledger {
    fn give(&mut self) -> u64 {
        self.next += 1;
        let handle = 1000 + self.next;
        self.given.insert(handle);
        handle
    }

    /// Answers whatever comes, until the client leaves.
    fn keep(talk: &mut Talk) -> Self {
        let mut ledger = Self::default();
        loop {
            let request = talk.request();
            match request.packet() {
                Packet::Syscall(Syscall::GetGlobalFunc { name }) => {
                    let handle = match &*name {
                        "echo" => ECHO,
                        "give" => GIVE,
                        "take" => TAKE,
                        "tvm.rpc.server.GetCRTMaxPacketSize" => 0,
                        _ => ledger.give(),
                    };
                    talk.pointer(handle);
                }
                Packet::Syscall(
                    Syscall::AllocDataWithScope { .. } | Syscall::CreateStream { .. },
                ) => {
                    let handle = ledger.give();
                    talk.pointer(handle);
                }
                Packet::Syscall(_) => talk.done(),
                Packet::Call { function, args, .. } => match (function, &args[..]) {
                    (ECHO, [Value::Int(number)]) => talk.value(*number),
                    (GIVE, [Value::Str(kind)]) => ledger.give_back(talk, kind),
                    (TAKE, [Value::Bytes(bytes)]) => {
                        ledger.uploads.push(bytes.to_vec());
                        talk.value(());
                    }
                    other => panic!("{other:?}"),
                },
                Packet::CopyFrom { nbytes, .. } => {
                    talk.copy_ack(&vec![3; usize::try_from(nbytes).unwrap()]);
                }
                Packet::CopyTo { .. } => {
                    ledger.uploads.push(request.payload().to_vec());
                    talk.done();
                }
                Packet::Shutdown => {
                    ledger.freed = std::mem::take(&mut talk.freed);
                    return ledger;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn give_back(&mut self, talk: &mut Talk, kind: &str) {
        match kind {
            "large" => return talk.value(vec![3; MANY]),
            "text" => return talk.value("x".repeat(MANY)),
            _ => {}
        }
        let handle = self.give();
        let tensor = TensorView {
            data: 7,
            device: Device::cpu(0),
            dtype: DataType::UINT8,
            shape: Shape::from_iter([4]),
            byte_offset: 0,
        };
        talk.returned(&match kind {
            "tensor" => Returned::Tensor { tensor, handle },
            "function" => Returned::Value(Value::Function(handle)),
            "module" => Returned::Value(Value::Module(handle)),
            _ => Returned::Object {
                type_index: 69,
                handle,
            },
        });
    }

    /// Everything that was given came back, once.
    fn assert_balanced(&self) {
        let own = |handle: &&u64| ![ECHO, GIVE, TAKE].contains(handle);
        let mut freed: Vec<_> = self.freed.iter().filter(own).copied().collect();
        freed.sort_unstable();
        assert!(freed.iter().eq(&self.given), "{freed:?} {:?}", self.given);
    }
}

/// Is the session in step? Answers come in order, so each has to be the right one.
async fn probe(echo: &Function, number: usize) {
    let number = i64::try_from(number).unwrap();
    let answer = echo.call(args![number]).await.unwrap();
    assert_eq!(i64::try_from(answer).unwrap(), number);
}

/// Runs `operation` again and again, each time for one poll more, and says how many it takes.
macro_rules! dropped_everywhere {
    ($echo:expr, $operation:expr) => {{
        let mut polls = 0;
        loop {
            let done = give_up_after(polls, $operation).await;
            if let Some(result) = done {
                assert!(result.is_ok());
                break polls;
            }
            probe(&$echo, polls).await;
            polls += 1;
            assert!(polls < 10_000, "never comes to its end");
        }
    }};
}

#[tokio::test]
async fn a_handle_that_nobody_waits_for_any_more_is_freed() {
    let server = Server::start(Ledger::keep);
    let session = open(&server).await;
    let echo = session.function("echo").await.unwrap();
    let give = session.function("give").await.unwrap();
    let cuda = session.device(CUDA);
    // Each waits for its answer at least once.
    for kind in ["tensor", "function", "module", "object"] {
        assert!(dropped_everywhere!(echo, give.call(args![kind])) > 1);
    }
    assert!(dropped_everywhere!(echo, session.function("other")) > 1);
    assert!(dropped_everywhere!(echo, cuda.empty(&[4], DataType::UINT8)) > 1);
    assert!(dropped_everywhere!(echo, cuda.create_stream()) > 1);
    // What the last answers brought is on its way.
    probe(&echo, 1).await;
    session.cpu(0).sync().await.unwrap();
    session.close().await;
    finish(server).await.assert_balanced();
}

/// The bytes in the last place of a call.
fn last_bytes(request: &Request) -> Vec<u8> {
    let Packet::Call { args, .. } = request.packet() else {
        panic!("no call");
    };
    match args.last() {
        Some(Value::Bytes(bytes)) => bytes.to_vec(),
        other => panic!("no bytes: {other:?}"),
    }
}

#[tokio::test]
async fn an_upload_that_is_dropped_is_completed_with_zeros() {
    let (tell, dropped) = mpsc::channel();
    let server = Server::start(move |talk| {
        let take_once_it_is_dropped = |talk: &mut Talk| {
            dropped.recv_timeout(PATIENCE).unwrap();
            let bytes = last_bytes(&talk.request());
            talk.value(());
            talk.called(ECHO, [Value::Int(1)]);
            talk.value(1);
            bytes
        };
        talk.function("echo", ECHO);
        let first = take_once_it_is_dropped(talk);
        talk.function("tvm.rpc.server.upload", TAKE);
        talk.request();
        talk.value(());
        let second = take_once_it_is_dropped(talk);
        talk.goodbye();
        [first, second]
    });
    let session = open(&server).await;
    let echo = session.function("echo").await.unwrap();
    let bytes = vec![5; LARGE];

    // The server takes nothing yet, so that each is dropped in the middle of its payload.
    let begun = give_up_after(1, echo.call(args![&bytes])).await;
    assert!(begun.is_none());
    tell.send(()).unwrap();
    probe(&echo, 1).await;

    let files = session.files();
    files.upload("x", b"").await.unwrap();
    let (mut reader, mut silent) = (&bytes[..], |_, _| {});
    let upload = files.upload_from("x", LARGE as u64, &mut reader, &mut silent);
    assert!(give_up_after(1, upload).await.is_none());
    tell.send(()).unwrap();
    probe(&echo, 1).await;

    session.close().await;
    for upload in finish(server).await {
        assert_eq!(upload.len(), LARGE);
        let sent = upload.iter().take_while(|&&byte| byte == 5).count();
        assert!(0 < sent && sent < LARGE, "{sent}");
        assert!(upload[sent..].iter().all(|&byte| byte == 0));
    }
}

#[tokio::test]
async fn an_upload_may_be_dropped_anywhere() {
    let server = Server::start(Ledger::keep);
    let session = open(&server).await;
    let echo = session.function("echo").await.unwrap();
    let take = session.function("take").await.unwrap();
    let cpu = session.cpu(0);
    let nbytes = i64::try_from(LARGE).unwrap();
    let tensor = cpu.empty(&[nbytes], DataType::UINT8).await.unwrap();
    let bytes = vec![5_u8; LARGE];
    assert!(dropped_everywhere!(echo, take.call(args![&bytes])) > 1);
    assert!(dropped_everywhere!(echo, tensor.copy_from(&bytes)) > 1);
    session.close().await;
    let uploads = finish(server).await.uploads;
    assert!(uploads.iter().all(|upload| upload.len() == LARGE));
    assert!(uploads.last().unwrap() == &bytes);
}

#[tokio::test]
async fn an_upload_from_a_reader_that_is_dropped_is_completed() {
    let server = Server::start(|talk| {
        talk.function("echo", ECHO);
        talk.function("tvm.rpc.server.upload", TAKE);
        loop {
            let request = talk.request();
            match request.packet() {
                Packet::Call {
                    function: ECHO,
                    args,
                    ..
                } => talk.value(args[0].clone()),
                Packet::Call { args, .. } => {
                    let [_, Value::Bytes(bytes)] = &args[..] else {
                        panic!("no upload");
                    };
                    assert_eq!(bytes.len(), LARGE);
                    talk.value(());
                }
                Packet::Shutdown => return,
                other => panic!("{other:?}"),
            }
        }
    });
    let session = open(&server).await;
    let echo = session.function("echo").await.unwrap();
    let files = session.files();
    files.upload("x", &vec![5; LARGE]).await.unwrap();
    let bytes = vec![5; LARGE];
    let upload = || async {
        let mut reader = &bytes[..];
        let nbytes = LARGE as u64;
        files
            .upload_from("x", nbytes, &mut reader, &mut |_, _| {})
            .await
    };
    assert!(dropped_everywhere!(echo, upload()) > 1);
    session.close().await;
    finish(server).await;
}

#[tokio::test]
async fn the_rest_of_a_large_answer_is_skipped() {
    let server = Server::start(|talk| {
        talk.chunk = 4096;
        Ledger::keep(talk)
    });
    let session = open(&server).await;
    let echo = session.function("echo").await.unwrap();
    let give = session.function("give").await.unwrap();
    let cpu = session.cpu(0);
    let nbytes = i64::try_from(MANY).unwrap();
    let tensor: Tensor = cpu.empty(&[nbytes], DataType::UINT8).await.unwrap();
    assert!(dropped_everywhere!(echo, give.call(args!["large"])) > 1);
    assert!(dropped_everywhere!(echo, give.call(args!["text"])) > 1);
    assert!(dropped_everywhere!(echo, tensor.to_vec::<u8>()) > 1);
    // And what came whole is right.
    assert!(tensor.to_vec::<u8>().await.unwrap() == vec![3; MANY]);
    session.close().await;
    finish(server).await;
}

#[tokio::test]
async fn a_download_that_is_dropped_in_the_middle_is_skipped() {
    /// The client writes in pieces of this many bytes.
    const PIECE: usize = 256 << 10;
    let (tell, dropped) = mpsc::channel();
    let server = Server::start(move |talk| {
        talk.function("echo", ECHO);
        talk.function("tvm.rpc.server.download", GIVE);
        talk.called(GIVE, ["x".into()]);
        let answer = encoded_returned(&Returned::Value(vec![3; MANY].into()));
        let (some, rest) = answer.split_at(PIECE + 1000);
        talk.send(some);
        dropped.recv_timeout(PATIENCE).unwrap();
        talk.send(rest);
        talk.called(ECHO, [Value::Int(6)]);
        talk.value(6);
        talk.goodbye();
    });
    let session = open(&server).await;
    let echo = session.function("echo").await.unwrap();
    let files = session.files();
    let (mut written, begun) = (Vec::new(), AtomicBool::new(false));
    let mut progress = |_, _| begun.store(true, Ordering::Relaxed);
    {
        let mut download = pin!(files.download_to("x", &mut written, &mut progress));
        poll_fn(|context| {
            assert!(download.as_mut().poll(context).is_pending());
            if begun.load(Ordering::Relaxed) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
    assert!(written == [3; PIECE]);
    tell.send(()).unwrap();
    probe(&echo, 6).await;
    session.close().await;
    finish(server).await;
}

#[tokio::test]
async fn a_future_that_waits_for_its_turn_to_write_sends_nothing() {
    let server = Server::start(Ledger::keep);
    let session = open(&server).await;
    let echo = session.function("echo").await.unwrap();
    let take = session.function("take").await.unwrap();
    let bytes = vec![5; LARGE];
    let upload = args![&bytes];
    let mut upload = pin!(take.call(upload));
    // The upload has begun and is not done, so that whoever comes now waits behind it.
    let began = poll_fn(|context| Poll::Ready(upload.as_mut().poll(context))).await;
    assert!(began.is_pending());
    let call = give_up_after(1, session.function("never asked for")).await;
    assert!(call.is_none());
    upload.await.unwrap();
    probe(&echo, 5).await;
    session.close().await;
    let ledger = finish(server).await;
    // Its answer would have been a handle.
    assert!(ledger.given.is_empty());
}

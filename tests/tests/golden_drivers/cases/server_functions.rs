//! Recorded calls of the server's own functions: files, modules, time evaluation.

use rpc_proto::packet::{Frame, scan};
use rpc_proto::{Device, Dialect, Limits, Packet, Value};
use rpc_session::{SessionError, TimeEvaluatorOptions, args};

use super::session::Played;
use super::{Module, bisync, twin_test};

#[bisync]
#[twin_test]
async fn files() {
    let played = Played::open("session_files").await;
    let files = played.session.files();
    let ten: Vec<u8> = (0..10).collect();
    files.upload("dat.bin", &ten).await.unwrap();
    assert_eq!(files.download("dat.bin").await.unwrap(), ten);
    files.upload("empty.bin", b"").await.unwrap();
    assert_eq!(files.download("empty.bin").await.unwrap(), b"");
    files.upload("n.bin", b"\0\xff\0").await.unwrap();
    assert_eq!(files.download("n.bin").await.unwrap(), b"\0\xff\0");
    let listed = files.list("").await;
    assert!(
        matches!(listed, Err(SessionError::NoFunction { .. })),
        "{listed:?}"
    );
    let workpath = played.function("tvm.rpc.server.workpath").await;
    let path: String = workpath.call(args!["x"]).await.unwrap().try_into().unwrap();
    assert!(path.ends_with("/x"), "{path}");
    files.remove("dat.bin").await.unwrap();
    let error = files.download("dat.bin").await.unwrap_err();
    let recorded = played.recording.error("download removed");
    assert_eq!(error.remote().unwrap().text(), recorded);
    files.remove("nothere.bin").await.unwrap();
    played.close().await;
}

/// The library that was uploaded in the recording.
fn library(played: &Played) -> Vec<u8> {
    let conversation = played.recording.conversation(0);
    let (dialect, limits) = (Dialect::Ffi, Limits::default());
    for exchange in &conversation.exchanges {
        if let Ok(Frame::Packet { head, payload: 0 }) = scan(&exchange.request, dialect, limits)
            && let Ok(Packet::Call { args, .. }) = Packet::decode(
                &exchange.request[..usize::try_from(head).unwrap()],
                0,
                dialect,
                limits,
            )
            && let [_, Value::Bytes(bytes)] = &args[..]
        {
            return bytes.to_vec();
        }
    }
    panic!("nothing was uploaded");
}

#[bisync]
#[twin_test]
async fn module() {
    let played = Played::open("session_module").await;
    let session = &played.session;
    let failed = |error: SessionError, step: &str| {
        assert_eq!(error.remote().unwrap().text(), played.recording.error(step));
    };
    session
        .files()
        .upload("lib.so", &library(&played))
        .await
        .unwrap();
    let module = session.load_module("lib.so").await.unwrap();
    let myadd = module.function("myadd").await.unwrap();
    let numbers: Vec<f32> = (0..8_u8).map(f32::from).collect();
    let a = session.cpu(0).tensor(&[8], &numbers).await.unwrap();
    let b = session.cpu(0).tensor(&[8], &[0.0_f32; 8]).await.unwrap();
    myadd.call(args![&a, &b]).await.unwrap();
    let sums: Vec<f32> = (1..9_u8).map(f32::from).collect();
    assert_eq!(b.to_vec::<f32>().await.unwrap(), sums);
    assert!(module.get_function("nosuch").await.unwrap().is_none());

    let cpu = Device::cpu(0);
    let options = TimeEvaluatorOptions::default()
        .with_number(3)
        .with_repeat(2);
    let evaluator = module.time_evaluator("myadd", cpu, &options).await.unwrap();
    let timing = evaluator.run(args![&a, &b]).await.unwrap();
    assert!(timing.costs().len() == 2 && timing.min() > 0.0);
    drop(evaluator);
    let once = TimeEvaluatorOptions::default().with_number(1);
    let flushing = once.clone().with_cache_flush_bytes(64);
    let evaluator = module
        .time_evaluator("myadd", cpu, &flushing)
        .await
        .unwrap();
    assert_eq!(evaluator.run(args![&a, &b]).await.unwrap().costs().len(), 1);
    let error = module
        .time_evaluator("nosuch", cpu, &once)
        .await
        .unwrap_err();
    failed(error, "time_evaluator of missing function");
    let preprocessed = once.with_preprocess("nosuch.preproc");
    let error = module.time_evaluator("myadd", cpu, &preprocessed).await;
    failed(error.unwrap_err(), "time_evaluator of missing preproc");

    failed(myadd.call(args![&a]).await.unwrap_err(), "f(a) wrong arity");
    let c = session.cpu(0).tensor(&[4], &[0.0_f32; 4]).await.unwrap();
    failed(
        myadd.call(args![&a, &c]).await.unwrap_err(),
        "f(a, c) wrong shape",
    );
    let error = session.load_module("nosuch.so").await.unwrap_err();
    failed(error, "load_module(nosuch.so)");
    let again: Module = session.load_module("lib.so").await.unwrap();
    module.import_module(&again).await.unwrap();
    played.close().await;
}

#[bisync]
#[twin_test]
async fn system_lib() {
    let played = Played::open("session_system_lib").await;
    let library = played.session.system_lib().await.unwrap();
    let missing = library.function("notexist").await;
    assert!(
        matches!(missing, Err(SessionError::NoModuleFunction { .. })),
        "{missing:?}"
    );
    let options = TimeEvaluatorOptions::default()
        .with_number(2)
        .with_repeat(3);
    let cpu = Device::cpu(0);
    let evaluator = played
        .session
        .time_evaluator("testing.nop", cpu, &options)
        .await;
    let timing = evaluator.unwrap().run(&[]).await.unwrap();
    assert_eq!(timing.costs().len(), 3);
    played.close().await;
}

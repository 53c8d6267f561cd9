//! What cannot be sent is refused here, and nothing of it reaches the server.

use rpc_proto::{DataType, Limits, Packet, Returned, Value};
use rpc_session::{SessionError, SessionOptions, args};
use rpc_transport::ConnectOptions;

use super::session::{finish, open, open_with};
use super::{Argument, Module, Object, Tensor, bisync, twin_test};
use crate::support::{Server, Talk};

const FUNCTION: u64 = 10;

/// After what was refused, the next request that comes is a call with this argument.
fn works_still(talk: &mut Talk) {
    talk.called(FUNCTION, [Value::Int(7)]);
    talk.value(8);
}

fn give_one_of_each(talk: &mut Talk) {
    talk.function("f", FUNCTION);
    for returned in [
        Returned::Value(Value::Module(24)),
        Returned::Object {
            type_index: 69,
            handle: 22,
        },
    ] {
        talk.called(FUNCTION, []);
        talk.returned(&returned);
    }
    talk.request();
    talk.pointer(0x2000);
}

#[bisync]
#[twin_test]
async fn what_belongs_to_another_session_is_refused() {
    let server = || {
        Server::start(|talk| {
            give_one_of_each(talk);
            works_still(talk);
            talk.goodbye();
        })
    };
    let (server, other) = (server(), server());
    let (session, elsewhere) = (open(&server).await, open(&other).await);

    let function = session.function("f").await.unwrap();
    let module: Module = function.call(&[]).await.unwrap().try_into().unwrap();
    let _object: Object = function.call(&[]).await.unwrap().try_into().unwrap();
    let shape = ([2], DataType::FLOAT32);
    let tensor = session.cpu(0).empty(&shape.0, shape.1).await.unwrap();

    let function2 = elsewhere.function("f").await.unwrap();
    let module2: Module = function2.call(&[]).await.unwrap().try_into().unwrap();
    let object2: Object = function2.call(&[]).await.unwrap().try_into().unwrap();
    let tensor2: Tensor = elsewhere.cpu(0).empty(&shape.0, shape.1).await.unwrap();

    for (foreign, word) in [
        (args![1, &tensor2], "argument 1, a tensor,"),
        (args![1, &function2], "argument 1, a function,"),
        (args![1, &module2], "argument 1, a module,"),
        (args![1, &object2], "argument 1, an object,"),
    ] {
        let error = function.call(foreign).await.unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, SessionError::ForeignHandle { .. }),
            "{text}"
        );
        assert!(text.starts_with(word), "{text}");
    }
    let copied = tensor.copy_to(&tensor2).await;
    assert!(matches!(copied, Err(SessionError::ForeignHandle { .. })));
    drop(module);

    for function in [&function, &function2] {
        let sum: i64 = function.call(args![7]).await.unwrap().try_into().unwrap();
        assert_eq!(sum, 8);
    }
    session.close().await;
    elsewhere.close().await;
    finish(server).await;
    finish(other).await;
}

#[bisync]
#[twin_test]
async fn what_is_too_large_is_refused_and_the_session_goes_on() {
    let server = Server::start(|talk| {
        talk.function("f", FUNCTION);
        works_still(talk);
        talk.goodbye();
    });
    let limits = Limits::default()
        .with_packet(1024)
        .with_payload(1 << 20)
        .with_arguments(4);
    let connect = ConnectOptions::default().with_limits(limits);
    let options = SessionOptions::default().with_connect(connect);
    let session = open_with(&server, &options).await.unwrap();
    let function = session.function("f").await.unwrap();

    let (text, bytes) = ("x".repeat(1025), vec![0; (1 << 20) + 1]);
    let too_large: [&[Argument<'_>]; 3] = [
        args![&text],
        // In the last place, bytes are a payload.
        args![&bytes],
        args![1, 2, 3, 4, 5],
    ];
    for too_large in too_large {
        let error = function.call(too_large).await.unwrap_err();
        assert!(matches!(error, SessionError::Request(_)), "{error}");
        assert!(!error.is_fatal());
    }

    let sum: i64 = function.call(args![7]).await.unwrap().try_into().unwrap();
    assert_eq!(sum, 8);
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn shapes_that_no_tensor_has_and_data_that_does_not_fit_are_refused() {
    let server = Server::start(|talk| {
        talk.request();
        talk.pointer(0x2000);
        talk.goodbye();
    });
    let session = open(&server).await;
    let cpu = session.cpu(0);
    for shape in [&[-1][..], &[i64::MAX, 3], &[0, -1]] {
        let made = cpu.empty(shape, DataType::FLOAT32).await;
        assert!(matches!(made, Err(SessionError::BadTensor(_))), "{made:?}");
    }
    let tensor = cpu.empty(&[2, 3], DataType::FLOAT32).await.unwrap();
    let text = |error: SessionError| error.to_string();
    assert_eq!(
        text(tensor.copy_from(&[1.0_f32; 5]).await.unwrap_err()),
        "the tensor holds 6 elements of float32, but the data is 5 elements of float32"
    );
    assert_eq!(
        text(tensor.copy_into(&mut [1_i32; 6]).await.unwrap_err()),
        "the tensor holds 6 elements of float32, but the data is 6 elements of int32"
    );
    assert_eq!(
        text(tensor.copy_from_bytes(&[0; 23]).await.unwrap_err()),
        "the tensor holds 6 elements of float32, but the data is 23 bytes instead of 24"
    );
    let view = tensor.view(&[5], DataType::FLOAT32, 8);
    assert!(matches!(view, Err(SessionError::BadTensor(_))));
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn nothing_is_sent_for_an_option_that_is_none() {
    use rpc_session::TimeEvaluatorOptions;
    let server = Server::start(Talk::goodbye);
    let session = open(&server).await;
    let options = TimeEvaluatorOptions::default().with_repeat(0);
    let device = session.cpu(0).device();
    let made = session.time_evaluator("f", device, &options).await;
    assert!(matches!(made, Err(SessionError::BadOption(_))), "{made:?}");
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn large_bytes_are_sent_whole_wherever_they_stand() {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let sent = bytes.clone();
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        for args in [
            vec![1.into(), sent.clone().into()],
            vec![sent.into(), 1.into()],
        ] {
            talk.expect(&Packet::Call {
                function: FUNCTION,
                args: args.into_iter().collect(),
                bulk: None,
            });
            talk.value(());
        }
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    function.call(args![1, &bytes]).await.unwrap();
    function.call(args![&bytes, 1]).await.unwrap();
    session.close().await;
    finish(server).await;
}

//! How recorded sessions begin and end.

use std::time::Duration;

use rpc_session::{SessionConstructor, SessionError, SessionOptions, args};

use super::session::{Played, connect, finish};
use super::{Object, Tensor, bisync, twin_test};
use crate::recording::Recording;
use crate::replay::Replay;

#[bisync]
#[twin_test]
async fn init_noargs() {
    Played::open("session_init_noargs").await.close().await;
}

#[bisync]
#[twin_test]
async fn init_constructor() {
    let recording = Recording::load("session_init_constructor");
    let options = |constructor| SessionOptions::default().with_constructor(constructor);

    let replay = Replay::start(&recording, 0);
    let local = options(SessionConstructor::local());
    let session = connect(&replay, &local).await.unwrap();
    let addone = session.function("rpc.test.addone").await.unwrap();
    let two = addone.call(args![1]).await.unwrap();
    assert_eq!(i64::try_from(two).unwrap(), 2);
    session.close().await;
    finish(replay).await;

    let unknown = SessionConstructor::named("rpc.NonExistingConstructor");
    let no_module = SessionConstructor::named("golden.describe")
        .arg(1)
        .arg(2.5)
        .arg("str")
        .arg("a longer string")
        .arg(true)
        .arg(())
        .arg(b"bytes".to_vec());
    let throws = SessionConstructor::named("golden.raise")
        .arg("ValueError")
        .arg("msg");
    for (connection, constructor) in [(1, unknown), (2, no_module), (3, throws)] {
        let replay = Replay::start(&recording, connection);
        let refused = connect(&replay, &options(constructor)).await.unwrap_err();
        let outcome = &recording.outcomes()[connection + 1];
        let text = refused.remote().unwrap().text();
        assert_eq!(text, recording.error(&outcome.step));
        finish(replay).await;
    }
}

#[bisync]
#[twin_test]
async fn init_multihop() {
    let recording = Recording::load("session_init_multihop");
    let replay = Replay::start(&recording, 0);
    // The second server's port differs from run to run, so it is taken from the recording.
    let request = &recording.conversation(0).exchanges[0].request;
    let port = request
        .windows(4 + 8)
        .filter(|window| window[..4] == [1, 0, 0, 0])
        .map(|window| i64::from_le_bytes(window[4..].try_into().unwrap()))
        .find_map(|port| u16::try_from(port).ok().filter(|&port| port > 1024))
        .unwrap();
    let far = rpc_transport::Address::new("127.0.0.1", port);
    let constructor = SessionConstructor::connect(&far, "x2");
    let options = SessionOptions::default().with_constructor(constructor);
    let session = connect(&replay, &options).await.unwrap();

    let echo = session.function("testing.echo").await.unwrap();
    for (value, expected) in [
        (args![1], "Int(1)"),
        (args![-1], "Int(-1)"),
        (args![2.5], "Float(2.5)"),
        (args!["xyz"], r#"Str("xyz")"#),
        (
            args!["a longer string than 7"],
            r#"Str("a longer string than 7")"#,
        ),
        (args![b"123"], "Bytes([49, 50, 51])"),
        (args![true], "Bool(true)"),
        (args![()], "None"),
    ] {
        let echoed = echo.call(value).await.unwrap();
        assert_eq!(format!("{echoed:?}"), expected);
    }

    let tensor = session.cpu(0).tensor(&[3], &[1, 2, 3]).await.unwrap();
    assert_eq!(tensor.to_vec::<i32>().await.unwrap(), [1, 2, 3]);

    let add_to = session.function("rpc.test.add_to_lhs").await.unwrap();
    let add_ten: super::Function = add_to.call(args![10]).await.unwrap().try_into().unwrap();
    drop(add_to);
    let sum = add_ten.call(args![12]).await.unwrap();
    assert_eq!(i64::try_from(sum).unwrap(), 22);

    let ret = session.function("golden.ret").await.unwrap();
    let returned: Tensor = ret
        .call(args!["tensor_f32_2x3"])
        .await
        .unwrap()
        .try_into()
        .unwrap();
    drop(ret);
    assert_eq!(
        returned.to_vec::<f32>().await.unwrap(),
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    );
    let describe = session.function("golden.describe").await.unwrap();
    let described = describe.call(args![&returned]).await.unwrap();
    assert_eq!(
        String::try_from(described).unwrap(),
        "1:Tensor(float32,[2, 3],[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])"
    );
    drop(describe);

    let except = session.function("rpc.test.except").await.unwrap();
    let error = except.call(args!["abc"]).await.unwrap_err();
    assert_eq!(error.remote().unwrap().text(), recording.error("exception"));
    drop(except);

    let make = session.function("ffi.Shape").await.unwrap();
    let shape: Object = make.call(args![2, 3]).await.unwrap().try_into().unwrap();
    drop(make);
    let element = session.function("rpc.testing.GetShapeElem").await.unwrap();
    let three = element.call(args![&shape, 1]).await.unwrap();
    assert_eq!(i64::try_from(three).unwrap(), 3);
    drop(element);

    session.cpu(0).sync().await.unwrap();
    let cuda = session.device("cuda:0".parse().unwrap());
    assert!(!cuda.exists().await.unwrap());
    assert!(
        session
            .get_function("no.such.function")
            .await
            .unwrap()
            .is_none()
    );
    session.close().await;
    finish(replay).await;
}

#[bisync]
#[twin_test]
async fn timeout() {
    let recording = Recording::load("session_timeout");
    let replay = Replay::start(&recording, 0);
    let options = SessionOptions::default().with_session_timeout(Duration::from_secs(1));
    let session = connect(&replay, &options).await.unwrap();
    let addone = session.function("rpc.test.addone").await.unwrap();
    let error = addone.call(args![10]).await.unwrap_err();
    let SessionError::TimedOut { message } = &error else {
        panic!("{error:?}");
    };
    let text = recording.error("addone(10) after expiry");
    assert_eq!(format!("RPCSessionTimeoutError: {message}"), text);
    assert!(addone.call(args![10]).await.unwrap_err().is_fatal());
    session.close().await;
    finish(replay).await;
}

#[bisync]
#[twin_test]
async fn timeout_busy() {
    let recording = Recording::load("session_timeout_busy");
    let replay = Replay::start(&recording, 0);
    let options = SessionOptions::default().with_session_timeout(Duration::from_secs(1));
    let session = connect(&replay, &options).await.unwrap();
    let sleep = session.function("golden.sleep").await.unwrap();
    let error = sleep.call(args![3]).await.unwrap_err();
    assert!(error.is_session_timeout(), "{error:?}");
    session.close().await;
    finish(replay).await;
}

#[bisync]
#[twin_test]
async fn shutdown() {
    let played = Played::open("session_shutdown").await;
    let addone = played.function("rpc.test.addone").await;
    played.session.close().await;
    let error = addone.call(args![1]).await.unwrap_err();
    assert!(matches!(error, SessionError::Closed), "{error:?}");
    let error = played.session.get_function("rpc.test.addone").await;
    assert!(matches!(error, Err(SessionError::Closed)), "{error:?}");
    played.close().await;
}

#[bisync]
#[twin_test]
async fn server_exit() {
    let recording = Recording::load("session_server_exit");
    for (connection, status) in [(0, 0), (1, 3)] {
        let replay = Replay::start(&recording, connection);
        let session = connect(&replay, &SessionOptions::default()).await.unwrap();
        let exit = session.function("golden.exit").await.unwrap();
        let error = exit.call(args![status]).await.unwrap_err();
        assert!(matches!(error, SessionError::Transport(_)), "{error:?}");
        session.close().await;
        finish(replay).await;
    }
}

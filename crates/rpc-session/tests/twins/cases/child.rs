//! Sessions over the standard input and output of a child process.

use std::process::Command;

use rpc_session::{SessionError, SessionOptions};

use super::{Output, RemoteSession, bisync, spawn, twin_test};

/// Takes an init packet and answers it, then a look-up of "f", then a call without arguments.
const PEER: &str = include_str!("../../shared/peer.sh");

#[bisync]
async fn open(script: String) -> Result<RemoteSession, SessionError> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script);
    RemoteSession::on_stream(spawn(shell)?, &SessionOptions::default()).await
}

#[bisync]
#[twin_test]
async fn a_child_serves_a_session() {
    // The last thing that it reads is the goodbye.
    let session = open(format!("{PEER} take 12")).await.unwrap();
    let function = session.function("f").await.unwrap();
    assert!(matches!(function.call(&[]).await, Ok(Output::Int(42))));
    session.close().await;
    let error = function.call(&[]).await.unwrap_err();
    assert!(matches!(error, SessionError::Closed), "{error:?}");
}

#[bisync]
#[twin_test]
async fn a_child_that_leaves_ends_the_session() {
    let session = open(format!("{PEER} take 5; exit 3")).await.unwrap();
    let function = session.function("f").await.unwrap();
    function.call(&[]).await.unwrap();
    let error = function.call(&[]).await.unwrap_err();
    assert!(matches!(error, SessionError::Transport(_)), "{error:?}");
    assert!(error.to_string().contains("sh"), "{error}");
}

#[bisync]
#[twin_test]
async fn a_child_that_is_no_server_is_told_as_such() {
    let error = open("exit 0".to_owned()).await.unwrap_err();
    assert!(matches!(error, SessionError::Transport(_)), "{error:?}");
    let error =
        open("dd bs=1 count=29 2>/dev/null >/dev/null; echo Hello, I am no server".to_owned())
            .await;
    assert!(
        matches!(error, Err(SessionError::Protocol { .. })),
        "{error:?}"
    );
}

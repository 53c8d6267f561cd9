//! Connections that come to nothing.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use rpc_transport::{Address, ConnectOptions};

use super::{bisync, twin};

/// A refused connection, a handshake and a greeting that nobody answers, and a program that is not there.
#[bisync]
pub(crate) async fn fail_in_every_way() {
    // The system accepts for a listener that never does.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::new("127.0.0.1", listener.local_addr().unwrap().port());
    let impatient = ConnectOptions::default().with_handshake_timeout(Duration::from_millis(1));

    let mut stream = twin::connect(&address, &impatient).await.unwrap();
    let error = twin::handshake(&mut stream, "client:", &impatient).await;
    assert!(error.unwrap_err().is_timeout());
    let error = twin::TrackerStream::connect(&address, &impatient).await;
    assert!(error.unwrap_err().is_timeout());

    drop(listener);
    let error = twin::connect(&address, &impatient).await;
    assert!(error.unwrap_err().is_refused());

    let error = twin::spawn(Command::new("/nowhere/tvm_rpc"));
    assert!(error.is_err());
}

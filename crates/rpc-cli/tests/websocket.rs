//! `--server ws://…`: a server behind a proxy that takes WebSockets.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the lint spares test functions, not their helpers"
)]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod support;

use std::net;
use std::thread;

use rpc_transport::Address;
use rpc_transport::asynchronous::WebSocket;
use support::{Service, tvm_rpc};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

/// Carries the bytes of one WebSocket to `server` and back; gives its port.
fn carry_to(server: &Address) -> u16 {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = server.to_string();
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let upgraded = tungstenite::accept(client.try_clone().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut client = WebSocket::accepted(TcpStream::from_std(client).unwrap());
            let mut server = TcpStream::connect(server).await.unwrap();
            // Either may be gone first.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
        drop(upgraded);
    });
    port
}

#[test]
fn a_server_is_called_by_a_websocket() {
    let server = Service::start(&["server", "--port", "0", "--key", "x1", "--test-functions"]);
    let to = format!("ws://127.0.0.1:{}/ws", carry_to(server.address()));
    let call = [
        "call",
        "rpc.test.addone",
        "41",
        "--server",
        &to,
        "--key",
        "x1",
    ];
    let output = tvm_rpc(&call);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "42");
}

//! Clients and functions that do their worst.

use std::time::Duration;

use rpc_proto::{Packet, Syscall, Value};
use rpc_session::{SessionError, args};
use socket2::SockRef;

use crate::client::{INIT, Peer, handshake};
use crate::functions::on_threads;
use crate::process::{ServerProcess, kill};
use crate::service::{Service, until, within};

#[tokio::test]
async fn a_crash_costs_its_session_alone() {
    let service = Service::with(crate::functions::in_workers(), |builder| {
        builder.with_slots(2)
    })
    .await;
    let other = service.client().await;
    for (function, end) in [
        ("test.abort", "signal: 6 (SIGABRT)"),
        ("test.exit", "exit status: 0"),
    ] {
        let client = service.client().await;
        let error = client.try_call(function, args![]).await.unwrap_err();
        assert_lost(&error, end);
        assert_lost(&client.try_call(function, args![]).await.unwrap_err(), end);
        other.works().await;
        service.serves().await;
    }
    let client = service.client().await;
    let pid = client.int("test.pid").await.try_into().unwrap();
    let hanging = client.try_call("test.hang", args![]);
    let killing = async {
        tokio::task::yield_now().await;
        kill(pid);
    };
    let (error, ()) = tokio::join!(hanging, killing);
    assert_lost(&error.unwrap_err(), "signal: 9 (SIGKILL)");
    other.works().await;
    service.serves().await;
}

/// Its client was told how the process of the session ended.
#[track_caller]
fn assert_lost(error: &SessionError, how: &str) {
    let SessionError::Lost { message } = error else {
        panic!("{error:?}");
    };
    assert!(error.is_fatal());
    assert_eq!(*message, format!("its process ended with {how}"));
}

#[tokio::test]
async fn a_crash_in_the_middle_of_an_answer_adds_nothing_to_it() {
    const NBYTES: usize = 15 << 20;
    let server = ServerProcess::start();
    let mut peer = Peer::connect(server.addr).await;
    peer.shake("client:board").await;
    peer.has_session().await;
    peer.asks(&Packet::Syscall(Syscall::GetGlobalFunc {
        name: "testing.echo".into(),
    }))
    .await;
    let found = peer.reply().await;
    let handle = found.last_chunk().copied().map(u64::from_le_bytes).unwrap();
    let data = vec![b'x'; NBYTES];
    peer.asks(&Packet::Call {
        function: handle,
        args: [Value::from(data.as_slice())].into_iter().collect(),
        bulk: None,
    })
    .await;
    // Its answer is on its way, and nobody takes it.
    peer.receive(100_000).await;
    for pid in server.workers() {
        kill(pid);
    }
    let rest = peer.rest().await;
    assert!(rest.len() < NBYTES);
    assert!(rest.iter().all(|&byte| byte == b'x'));
}

#[tokio::test]
async fn a_hundred_crashes_leave_nothing() {
    let server = ServerProcess::start();
    let before = {
        server.client().await.works().await;
        server.is_idle().await;
        server.descriptors()
    };
    for _ in 0..100 {
        let client = server.client().await;
        client.try_call("test.abort", args![]).await.unwrap_err();
    }
    server.client().await.works().await;
    server.is_idle().await;
    until("its file descriptors to be closed", || {
        server.descriptors() <= before
    })
    .await;
}

#[tokio::test]
async fn clients_that_vanish_in_the_middle_are_in_nobodys_way() {
    for service in Service::both(|builder| builder).await {
        // A call that announces a payload of a megabyte.
        let call = [
            &(1_u64 << 20).to_le_bytes()[..],
            b"\x03\0\0\0",
            &[0xff; 8],
            b"\x01\0\0\0\x09\0\0\0",
            &(1_u64 << 20).to_le_bytes()[..],
            &[0; 1000],
        ]
        .concat();
        let all = [&handshake(b"client:board"), INIT, &call].concat();
        for length in (8..all.len()).step_by(29) {
            let mut peer = service.peer().await;
            peer.send(&all[..length]).await;
            if length % 2 == 0 {
                // It goes with a reset.
                let socket = SockRef::from(&peer.stream);
                socket.set_linger(Some(Duration::ZERO)).unwrap();
            }
            drop(peer);
        }
        service.serves().await;
        service.is_idle().await;
    }
}

#[tokio::test]
async fn a_panic_on_a_thread_costs_its_session_at_most() {
    let service = Service::with(on_threads(), |builder| builder).await;
    let client = service.client().await;
    client.try_call("test.panic", args![]).await.unwrap_err();
    drop(client);
    service.is_idle().await;
    service.serves().await;
}

#[tokio::test]
async fn what_breaks_the_protocol_ends_alone() {
    for service in Service::both(|builder| builder).await {
        for packet in [&[0xff; 32][..], b"\x04\0\0\0\0\0\0\0\x63\0\0\0"] {
            let mut peer = service.peer().await;
            peer.shake("client:board").await;
            peer.has_session().await;
            peer.send(packet).await;
            // It may be told so.
            let _ = peer.rest().await;
            within("the next one", service.serves()).await;
        }
    }
}

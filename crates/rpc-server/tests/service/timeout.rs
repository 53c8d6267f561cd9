//! Sessions with a time limit.

use std::time::Duration;

use rpc_session::args;

use crate::client::Client;
use crate::functions::on_threads;
use crate::service::{KEY, Service, within};

const LIMIT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn the_end_of_its_time_is_told_to_a_client_that_waits() {
    let service = Service::start().await;
    let client = Client::limited(service.addr, KEY, LIMIT).await;
    let error = client.try_call("test.hang", args![]).await.unwrap_err();
    assert!(error.is_session_timeout(), "{error}");
    assert!(error.to_string().contains("0.3"), "{error}");
    service.is_idle().await;
    service.serves().await;
}

#[tokio::test]
async fn the_end_of_its_time_is_told_to_a_client_that_is_idle() {
    for service in Service::both(|builder| builder).await {
        let client = Client::limited(service.addr, KEY, LIMIT).await;
        service.is_idle().await;
        let error = within("its end", async {
            loop {
                let called = client.try_call("rpc.test.addone", args![1]).await;
                if let Err(error) = called {
                    break error;
                }
            }
        })
        .await;
        assert!(error.is_session_timeout(), "{error}");
        service.serves().await;
    }
}

#[tokio::test]
async fn a_long_time_is_not_up() {
    for service in Service::both(|builder| builder).await {
        let limit = Duration::from_secs(3600);
        let client = Client::limited(service.addr, KEY, limit).await;
        client.works().await;
        drop(client);
        service.is_idle().await;
    }
}

#[tokio::test]
async fn nonsense_for_a_time_is_refused() {
    let service = Service::with(on_threads(), |builder| builder).await;
    for limit in ["abc", "", "inf", "nan", "-1", "1e30", "1s"] {
        let mut peer = service.peer().await;
        peer.shake(&format!("client:{KEY} -timeout={limit}")).await;
        peer.is_refused().await;
    }
    service.serves().await;
}

#[tokio::test]
async fn times_are_read_as_clients_write_them() {
    for service in Service::both(|builder| builder).await {
        for options in [
            "-timeout=0",
            "-timeout=60",
            "-timeout=60.0",
            "-timeout=1e2",
            "-timeout=1e10",
            "-timeout=1e19",
            "-other=1 -timeout=60",
            "-timeout=0.001 -timeout=60",
        ] {
            let mut peer = service.peer().await;
            peer.shake(&format!("client:{KEY} {options}")).await;
            peer.has_session().await;
        }
    }
}

#[tokio::test]
async fn the_shortest_time_ends() {
    for service in Service::both(|builder| builder).await {
        let mut peer = service.peer().await;
        peer.shake(&format!("client:{KEY} -timeout=1e-05")).await;
        let said = peer.rest().await;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("RPCSessionTimeoutError: "), "{said:?}");
        service.serves().await;
    }
}

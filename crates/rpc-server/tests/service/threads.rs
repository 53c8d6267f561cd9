//! Sessions on threads of the server's own process.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_server::Isolation;
use rpc_session::blocking::{Constructors, LocalSessions};
use rpc_session::{Exception, Functions, LocalOptions, args};

use crate::client::Client;
use crate::functions::on_threads;
use crate::service::{KEY, Service, until};

/// Sessions with a function that returns when it is allowed to.
fn patient() -> (Isolation, mpsc::Sender<()>) {
    let (allow, allowed) = mpsc::channel();
    let allowed = Arc::new(Mutex::new(allowed));
    let isolation = Isolation::in_process(move |_| {
        let allowed = Arc::clone(&allowed);
        let mut functions = Functions::new();
        functions.add("wait", move || {
            // Nobody is left who could allow it, at the end of a test.
            let _ = allowed.lock().unwrap().recv();
        });
        let local = LocalSessions::new(functions, None, LocalOptions::default());
        Ok(Constructors::new(local))
    });
    (isolation, allow)
}

#[tokio::test]
async fn a_function_that_goes_on_keeps_its_slot() {
    let (isolation, allow) = patient();
    let service = Service::with(isolation, |builder| builder).await;
    let limit = Duration::from_millis(200);
    let client = Client::limited(service.addr, KEY, limit).await;
    let error = client.try_call("wait", args![]).await.unwrap_err();
    assert!(error.is_session_timeout(), "{error}");
    assert_eq!(service.handle.sessions(), 1);

    let mut next = service.peer().await;
    next.shake("client:board").await;
    until("it to wait", || service.handle.waiting() == 1).await;
    allow.send(()).unwrap();
    next.has_session().await;
}

#[tokio::test]
async fn the_end_of_a_server_waits_for_no_function() {
    let (isolation, allow) = patient();
    let mut service = Service::with(isolation, |builder| builder).await;
    let client = service.client().await;
    let (error, ()) = tokio::join!(client.try_call("wait", args![]), async {
        until("the session", || service.handle.sessions() == 1).await;
        service.handle.stop();
    });
    assert!(error.unwrap_err().is_fatal());
    service.stop().await;
    assert!(service.dirs().is_empty());
    drop(allow);
}

#[tokio::test]
async fn a_session_that_cannot_be_prepared_tells_why() {
    let failing = Isolation::in_process(|_| Err(Exception::runtime("no such driver")));
    let service = Service::with(failing, |builder| builder).await;
    let error = Client::connect(service.addr, KEY).await.err().unwrap();
    let remote = error.remote().expect("it is told").text();
    assert_eq!(remote, "this session cannot be prepared: no such driver");
    service.is_idle().await;
}

#[tokio::test]
async fn sessions_are_in_one_process() {
    let service = Service::with(on_threads(), |builder| builder).await;
    let pid = service.client().await.int("test.pid").await;
    assert_eq!(pid, i64::from(std::process::id()));
}

//! How many sessions there are at once, and who comes next.

use crate::client::Peer;
use crate::functions::{in_workers, on_threads};
use crate::service::{KEY, Service, until};

const CLIENT: &str = "client:board";

/// Clients that have come, one after the other.
async fn queue(service: &Service, count: usize) -> Vec<Peer> {
    let mut queue = Vec::new();
    let before = service.handle.waiting();
    for count in 1..=count {
        let mut peer = service.peer().await;
        peer.shake(CLIENT).await;
        until("it to wait", || service.handle.waiting() == before + count).await;
        queue.push(peer);
    }
    queue
}

/// Nothing was said to this client so far.
fn is_silent(peer: &Peer) -> bool {
    let read = peer.stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn clients_have_their_turns_in_the_order_in_which_they_came() {
    for service in Service::both(|builder| builder).await {
        let first = service.client().await;
        let mut waiting = queue(&service, 4).await;
        first.works().await;
        drop(first);
        while !waiting.is_empty() {
            let mut next = waiting.remove(0);
            next.has_session().await;
            assert!(waiting.iter().all(is_silent));
            assert_eq!(service.handle.sessions(), 1);
            assert_eq!(service.handle.waiting(), waiting.len());
        }
        service.is_idle().await;
    }
}

#[tokio::test]
async fn a_client_that_goes_gives_up_its_turn() {
    let service = Service::start().await;
    let first = service.client().await;
    let mut waiting = queue(&service, 3).await;
    drop(waiting.remove(1));
    until("it to be gone", || service.handle.waiting() == 2).await;
    drop(first);
    waiting[0].has_session().await;
    assert!(is_silent(&waiting[1]));
    waiting.remove(0);
    waiting[0].has_session().await;
}

#[tokio::test]
async fn a_client_may_say_more_while_it_waits() {
    let service = Service::start().await;
    let first = service.client().await;
    let mut waiting = queue(&service, 1).await;
    waiting[0].send(crate::client::INIT).await;
    drop(first);
    waiting[0].is_accepted().await;
    assert_eq!(waiting[0].receive(8).await, 12_u64.to_le_bytes());
}

#[tokio::test]
async fn more_than_may_wait_are_turned_away() {
    let service = Service::with(on_threads(), |builder| builder.with_waiting(2)).await;
    let first = service.client().await;
    let mut waiting = queue(&service, 2).await;
    let mut third = service.peer().await;
    third.shake(CLIENT).await;
    third.is_closed().await;
    drop(first);
    for mut peer in waiting.drain(..) {
        peer.has_session().await;
    }
}

#[tokio::test]
async fn slots_are_sessions_at_once() {
    for isolation in [in_workers(), on_threads()] {
        let service = Service::with(isolation, |builder| builder.with_slots(3)).await;
        let mut clients = Vec::new();
        for count in 1..=3 {
            clients.push(service.client().await);
            assert_eq!(service.handle.sessions(), count);
        }
        let mut waiting = queue(&service, 1).await;
        for client in &clients {
            client.works().await;
        }
        let dirs = service.dirs();
        assert_eq!(dirs.len(), 3, "{dirs:?}");
        clients.remove(1);
        waiting[0].has_session().await;
        drop((clients, waiting));
        service.is_idle().await;
    }
}

#[tokio::test]
async fn a_hundred_clients_at_once_are_all_served() {
    let service = Service::with(on_threads(), |builder| {
        builder.with_slots(4).with_waiting(100)
    })
    .await;
    let addr = service.addr;
    let clients = (0..100).map(|_| {
        tokio::spawn(async move {
            let client = crate::client::Client::connect(addr, KEY).await.unwrap();
            client.works().await;
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    service.is_idle().await;
}

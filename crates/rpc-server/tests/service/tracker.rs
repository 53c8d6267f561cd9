//! A server that offers itself at a tracker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_server::ServerBuilder;
use rpc_session::args;
use rpc_tracker::{Tracker, TrackerOptions};
use rpc_tracker_client::Port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::client::Client;
use crate::farm::{Farm, come, quick};
use crate::functions::{in_workers, on_threads};
use crate::service::{KEY, Service, until, within};

#[tokio::test]
async fn clients_come_by_way_of_the_tracker_one_after_the_other() {
    for isolation in [in_workers(), on_threads()] {
        let farm = Farm::start().await;
        let service = farm.server(isolation).await;
        let mut seen = Vec::new();
        for _ in 0..3 {
            let device = farm.take().await;
            assert_eq!(device.port, service.addr.port());
            assert!(device.match_key.starts_with("board:0."), "{device:?}");
            assert!(!seen.contains(&device.match_key));
            let client = come(&device).await.unwrap();
            client.works().await;
            assert_eq!(farm.free(), 0);
            // One match key is one session.
            assert!(come(&device).await.is_err());
            seen.push(device.match_key);
            drop(client);
        }
        farm.has_free(1).await;
        service.is_idle().await;
    }
}

#[tokio::test]
async fn the_servers_own_key_is_none_to_come_with() {
    let farm = Farm::start().await;
    let service = farm.server(on_threads()).await;
    farm.has_free(1).await;
    for key in [KEY, "", "board:", "board:0.5"] {
        let mut peer = service.peer().await;
        peer.shake(&format!("client:{key}")).await;
        peer.is_refused().await;
    }
    farm.client().await.works().await;
}

#[tokio::test]
async fn there_are_as_many_offers_as_free_slots() {
    let farm = Farm::start().await;
    let _service = farm
        .server_with(on_threads(), |builder| builder.with_slots(3))
        .await;
    farm.has_free(3).await;
    let clients = [farm.client().await, farm.client().await];
    farm.has_free(1).await;
    let third = farm.client().await;
    for client in &clients {
        client.works().await;
    }
    third.works().await;
    assert_eq!(farm.free(), 0);
    drop(clients);
    farm.has_free(2).await;
}

#[tokio::test]
async fn a_device_that_was_granted_to_nobody_is_offered_again() {
    let farm = Farm::start().await;
    let patience = Duration::from_millis(200);
    let _service = farm
        .server_with(on_threads(), |builder| builder.with_patience(patience))
        .await;
    let lost = farm.take().await;
    farm.has_free(1).await;
    let error = come(&lost).await.err().expect("it is too late");
    assert!(
        error.to_string().contains("match key") || error.is_fatal(),
        "{error}"
    );
    let device = farm.take().await;
    assert_ne!(device.match_key, lost.match_key);
    come(&device).await.unwrap().works().await;
}

#[tokio::test]
async fn whoever_looks_at_the_port_changes_nothing() {
    let farm = Farm::start().await;
    let service = farm.server(on_threads()).await;
    let device = farm.take().await;
    for bytes in [
        &b""[..],
        b"\0",
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x71\xf2\x0f\x00\0\0\0\0",
    ] {
        for _ in 0..10 {
            let mut peer = service.peer().await;
            peer.send(bytes).await;
            drop(peer);
        }
    }
    // It is the same match key, and the same connection to the tracker.
    assert_eq!(farm.handle.summary().servers.len(), 1);
    come(&device).await.unwrap().works().await;
    farm.has_free(1).await;
}

#[tokio::test]
async fn the_limit_of_a_session_does_not_use_up_a_match_key_if_it_is_nonsense() {
    let farm = Farm::start().await;
    let service = farm.server(on_threads()).await;
    let device = farm.take().await;
    let mut peer = service.peer().await;
    peer.shake(&format!("client:{} -timeout=abc", device.match_key))
        .await;
    peer.is_refused().await;
    come(&device).await.unwrap().works().await;
}

#[tokio::test]
async fn a_tracker_that_restarts_is_found_again() {
    let farm = Farm::start().await;
    // What was on offer is offered again, and not given up.
    let patient = |builder: ServerBuilder| builder.with_patience(Duration::from_secs(3600));
    let service = farm.server_with(in_workers(), patient).await;
    farm.has_free(1).await;
    let port = farm.stop().await;
    let farm = Farm::on_port(port).await;
    farm.has_free(1).await;
    let client = farm.client().await;
    // Also in the middle of a session, which goes on.
    let port = farm.stop().await;
    client.works().await;
    let farm = Farm::on_port(port).await;
    until("the server", || farm.handle.summary().servers.len() == 1).await;
    client.works().await;
    assert_eq!(farm.free(), 0);
    drop(client);
    farm.has_free(1).await;
    farm.client().await.works().await;
    drop(service);
}

#[tokio::test]
async fn a_grant_outlives_the_tracker() {
    let farm = Farm::start().await;
    let _service = farm.server(on_threads()).await;
    let device = farm.take().await;
    let port = farm.stop().await;
    come(&device).await.unwrap().works().await;
    let farm = Farm::on_port(port).await;
    farm.has_free(1).await;
}

/// What may be at a tracker's address instead of one, or be wrong with one.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    Closes,
    IsNoTracker,
    RefusesTheServer,
    RefusesTheOffer,
    AnswersNonsense,
    LosesTheKeys,
}

async fn misbehave(wrong: Wrong, mut stream: TcpStream) -> Option<()> {
    if let Wrong::Closes = wrong {
        return None;
    }
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).await.ok()?;
    if let Wrong::IsNoTracker = wrong {
        return stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .ok();
    }
    stream.write_all(&greeting).await.ok()?;
    let answers: &[&str] = match wrong {
        Wrong::RefusesTheServer => &["-1"],
        Wrong::RefusesTheOffer => &["0", "[-1, \"no\"]"],
        Wrong::AnswersNonsense => &["0", "0", "{\"a\":"],
        Wrong::LosesTheKeys => &["0", "0", "17"],
        Wrong::Closes | Wrong::IsNoTracker => &[],
    };
    for answer in answers {
        let length = stream.read_u32_le().await.ok()?;
        let mut request = vec![0; length as usize];
        stream.read_exact(&mut request).await.ok()?;
        let length = u32::try_from(answer.len()).unwrap();
        stream.write_all(&length.to_le_bytes()).await.ok()?;
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
    // It is the server that ends the conversation.
    while stream.read(&mut [0; 64]).await.ok()? > 0 {}
    Some(())
}

#[tokio::test]
async fn whatever_is_wrong_with_a_tracker_is_waited_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let at_tracker = |builder: ServerBuilder| quick(builder.with_tracker(addr.into()));
    let service = Service::with(on_threads(), at_tracker).await;
    for wrong in [
        Wrong::Closes,
        Wrong::IsNoTracker,
        Wrong::RefusesTheServer,
        Wrong::RefusesTheOffer,
        Wrong::AnswersNonsense,
        Wrong::LosesTheKeys,
        Wrong::Closes,
    ] {
        let what = format!("the server to come to one that {wrong:?}");
        let (stream, _) = within(&what, listener.accept()).await.unwrap();
        within(&what, misbehave(wrong, stream)).await;
    }
    let tracker = Tracker::from_listener(listener.into_std().unwrap(), TrackerOptions::default());
    let farm = Farm::of(tracker.unwrap());
    farm.has_free(1).await;
    farm.client().await.works().await;
    drop(service);
}

#[tokio::test]
async fn tries_have_pauses_in_between() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let pause = Duration::from_millis(100);
    let _service = Service::with(on_threads(), |builder| {
        builder.with_tracker(addr.into()).with_longest_pause(pause)
    })
    .await;
    let start = Instant::now();
    for _ in 0..5 {
        drop(within("a try", listener.accept()).await.unwrap());
    }
    assert!(start.elapsed() >= 4 * pause);
}

#[tokio::test]
async fn the_tracker_is_told_where_the_server_is() {
    let farm = Farm::start().await;
    let custom = |builder: ServerBuilder| builder.with_custom_addr("lab.example");
    let service = farm.server_with(on_threads(), custom).await;
    let device = farm.take().await;
    assert_eq!(device.host, "lab.example");
    assert_eq!(device.port, service.addr.port());
    let servers = farm.handle.summary().servers;
    let [server] = &servers[..] else {
        panic!("one server, not {servers:?}");
    };
    assert_eq!(server.key, "server:board");
    let addr = server.addr.as_ref().unwrap();
    assert_eq!(addr.host.as_deref(), Some("lab.example"));
    assert_eq!(addr.port, Port::Number(service.addr.port().into()));
}

#[tokio::test]
async fn a_server_that_stops_withdraws_its_device() {
    let farm = Farm::start().await;
    let mut service = farm.server(on_threads()).await;
    farm.has_free(1).await;
    service.stop().await;
    farm.has_free(0).await;
    until("the server to be gone", || {
        farm.handle.summary().servers.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_crash_and_the_end_of_time_lead_to_the_next_offer() {
    let farm = Farm::start().await;
    let service = farm.server(in_workers()).await;
    for _ in 0..3 {
        let client = farm.client().await;
        client.try_call("test.abort", args![]).await.unwrap_err();
    }
    let device = farm.take().await;
    let limit = Duration::from_millis(100);
    let client = Client::limited(service.addr, &device.match_key, limit).await;
    let error = client.try_call("test.hang", args![]).await.unwrap_err();
    assert!(error.is_session_timeout(), "{error}");
    farm.client().await.works().await;
}

#[tokio::test]
async fn thirty_clients_share_two_slots() {
    let farm = Arc::new(Farm::start().await);
    let service = farm
        .server_with(in_workers(), |builder| builder.with_slots(2))
        .await;
    let clients = (0..30).map(|_| {
        let farm = Arc::clone(&farm);
        tokio::spawn(async move { farm.client().await.works().await })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    service.is_idle().await;
}

//! The beginning and the end of a tracker.

use std::io::ErrorKind;

use rpc_tracker::{Tracker, TrackerOptions};
use tokio::net::TcpStream;

use crate::peer::{Peer, Service, within};

#[tokio::test]
async fn the_stop_key_ends_the_tracker() {
    let mut service = Service::with(TrackerOptions::default().with_stop_key("secret")).await;
    let (mut other, mut peer) = (service.peer().await, service.peer().await);
    assert_eq!(peer.ask(r#"[2, "wrong"]"#).await, "-1");
    assert_eq!(peer.ask(r#"[2, ""]"#).await, "-1");
    other.ping().await;
    assert_eq!(peer.ask(r#"[2, "secret"]"#).await, "0");
    peer.is_closed().await;
    other.is_closed().await;
    within("the tracker to end", &mut service.served)
        .await
        .unwrap();
    let refused = TcpStream::connect(service.addr).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn without_a_stop_key_no_peer_ends_the_tracker() {
    let service = Service::start().await;
    let mut peer = service.peer().await;
    assert_eq!(peer.ask(r#"[2, ""]"#).await, "-1");
    peer.ping().await;
}

#[tokio::test]
async fn a_tracker_on_ipv6_can_be_stopped() {
    let options = TrackerOptions::default().with_stop_key("secret");
    // Not every machine has IPv6.
    let Ok(tracker) = Tracker::bind("::1", 0..=0, options).await else {
        return;
    };
    let addr = tracker.local_addr();
    assert!(addr.is_ipv6());
    let served = tokio::spawn(tracker.serve());
    let mut peer = Peer::connect(addr).await;
    peer.send(crate::peer::GREETING).await;
    peer.receive(4).await;
    peer.put("k", "m").await;
    peer.request("k").await;
    assert_eq!(peer.hear().await, r#"[0, ["::1", 9090, "m"]]"#);
    assert_eq!(peer.ask(r#"[2, "secret"]"#).await, "0");
    within("the tracker to end", served).await.unwrap();
}

#[tokio::test]
async fn an_ipv4_peer_of_an_ipv6_tracker_is_told_as_ipv4() {
    let Ok(tracker) = Tracker::bind("::", 0..=0, TrackerOptions::default()).await else {
        return;
    };
    let port = tracker.local_addr().port();
    let served = tokio::spawn(tracker.serve());
    let mut peer = Peer::connect(([127, 0, 0, 1], port).into()).await;
    peer.send(crate::peer::GREETING).await;
    peer.receive(4).await;
    peer.register("server:k").await;
    peer.put("k", "m").await;
    assert!(
        peer.ask("[6]")
            .await
            .contains(r#""addr": ["127.0.0.1", 9090]"#)
    );
    peer.request("k").await;
    assert_eq!(peer.hear().await, crate::peer::granted("m"));
    served.abort();
}

#[tokio::test]
async fn a_handle_ends_the_tracker_and_all_connections() {
    let mut service = Service::start().await;
    let (mut waiting, mut silent) = (service.peer().await, Peer::connect(service.addr).await);
    waiting.request("k").await;
    service.until(|service| service.status("k").is_some()).await;
    service.handle.stop();
    waiting.is_closed().await;
    silent.is_closed().await;
    within("the tracker to end", &mut service.served)
        .await
        .unwrap();
    assert_eq!(service.handle.connections(), 0);
}

#[tokio::test]
async fn a_tracker_that_was_stopped_before_it_serves_does_not_serve() {
    let options = TrackerOptions::default();
    let tracker = Tracker::bind("127.0.0.1", 0..=0, options).await.unwrap();
    tracker.handle().stop();
    within("the tracker to end", tracker.serve()).await;
}

#[tokio::test]
async fn a_tracker_that_is_dropped_closes_all_connections() {
    let service = Service::start().await;
    let mut peer = service.peer().await;
    drop(service);
    peer.is_closed().await;
}

#[tokio::test]
async fn a_taken_port_leads_to_the_next_and_is_told() {
    let options = TrackerOptions::default();
    let first = Tracker::bind("127.0.0.1", 30_000..=60_000, options.clone())
        .await
        .unwrap();
    let port = first.local_addr().port();
    let second = Tracker::bind("127.0.0.1", port..=60_000, options.clone())
        .await
        .unwrap();
    assert!(second.local_addr().port() > port);
    let error = Tracker::bind("127.0.0.1", port..=port, options)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on 127.0.0.1, port {port}")
    );
}

#[tokio::test]
async fn a_connection_over_the_limit_is_closed_until_others_leave() {
    let service = Service::with(TrackerOptions::default().with_connections(2)).await;
    let (mut first, second) = (service.peer().await, service.peer().await);
    Peer::connect(service.addr).await.is_closed().await;
    first.ping().await;
    drop(second);
    service
        .until(|service| service.handle.connections() < 2)
        .await;
    service.peer().await.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_may_connect_at_once() {
    let service = Service::start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let addr = service.addr;
        tasks.spawn(async move {
            let mut peer = Peer::connect(addr).await;
            peer.send(crate::peer::GREETING).await;
            assert_eq!(peer.receive(4).await, crate::peer::GREETING);
            peer.ping().await;
            peer
        });
    }
    let peers = within("all to be greeted", tasks.join_all()).await;
    assert_eq!(service.handle.connections(), 1000);
    drop(peers);
    service
        .until(|service| service.handle.connections() == 0)
        .await;
}

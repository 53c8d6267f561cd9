//! What a SUMMARY tells.

use crate::peer::Service;

#[tokio::test]
async fn a_summary_has_the_shape_of_the_references() {
    let service = Service::start().await;
    let (mut server, mut client) = (service.peer().await, service.peer().await);
    let empty = r#"[0, {"queue_info": {}, "server_info": []}]"#;
    assert_eq!(client.ask("[6]").await, empty);
    server.register("server:dev").await;
    server.put("dev", "dev:0.5").await;
    assert_eq!(
        client.ask("[6]").await,
        r#"[0, {"queue_info": {"dev": {"free": 1, "pending": 0}}, "server_info": [{"key": "server:dev", "addr": ["127.0.0.1", 9090]}]}]"#
    );
}

#[tokio::test]
async fn known_forms_of_an_update_info_are_taken_and_listed() {
    let service = Service::start().await;
    let mut peers = Vec::new();
    for info in [
        r#"{"key": "server:a"}"#,
        r#"{"key": "server:b", "addr": [null, "9091"]}"#,
        r#"{"key": "server:c", "addr": [null, 9092]}"#,
        r#"{"key": "server:d", "addr": ["1.2.3.4", 9093]}"#,
        r#"{"key": "server:e", "addr": ["", 9094]}"#,
    ] {
        let mut peer = service.peer().await;
        assert_eq!(peer.ask(&format!("[5, {info}]")).await, "0");
        peers.push(peer);
    }
    peers[0].put("a", "a:0.5").await;
    let summary = peers[0].ask("[6]").await;
    let (_, listed) = summary.split_once("server_info\": ").unwrap();
    assert_eq!(
        listed,
        concat!(
            r#"[{"key": "server:a", "addr": ["127.0.0.1", 9090]}, "#,
            r#"{"key": "server:b", "addr": ["127.0.0.1", "9091"]}, "#,
            r#"{"key": "server:c", "addr": ["127.0.0.1", 9092]}, "#,
            r#"{"key": "server:d", "addr": ["1.2.3.4", 9093]}, "#,
            r#"{"key": "server:e", "addr": ["127.0.0.1", 9094]}]}]"#
        )
    );
}

#[tokio::test]
async fn a_summary_cannot_be_spoilt() {
    let service = Service::start().await;
    for info in [
        r#"{"key": 5, "addr": [null, 1]}"#,
        r#"{"key": null, "addr": [null, 1]}"#,
        r#"{"addr": [null, 1]}"#,
        r#"{"key": "server:k", "addr": [null, {}]}"#,
        r#"{"key": "server:k", "addr": 7}"#,
        "[]",
    ] {
        let mut peer = service.peer().await;
        peer.say(&format!("[5, {info}]")).await;
        peer.is_closed().await;
    }
    let mut asker = service.peer().await;
    let empty = r#"[0, {"queue_info": {}, "server_info": []}]"#;
    assert_eq!(asker.ask("[6]").await, empty);
}

#[tokio::test]
async fn a_proxy_and_what_is_behind_it_go_together() {
    let service = Service::start().await;
    let (mut proxy, mut other) = (service.peer().await, service.peer().await);
    other.put("c", "c:0.5").await;
    proxy.put("a", "a:0.5").await;
    proxy.register("server:proxy[a,b]").await;
    proxy.put("b", "b:0.5").await;
    assert_eq!(service.status("a"), Some((1, 0)));
    assert_eq!(service.status("b"), Some((1, 0)));
    drop(proxy);
    service
        .until(|service| service.handle.summary().servers.is_empty())
        .await;
    for key in ["a", "b"] {
        assert_eq!(service.status(key), Some((0, 0)));
    }
    assert_eq!(service.status("c"), Some((1, 0)));
    other.ping().await;
}

#[tokio::test]
async fn a_server_that_only_puts_can_be_used_and_leaves_nothing() {
    let service = Service::start().await;
    let (mut server, mut client) = (service.peer().await, service.peer().await);
    server.put("phone", "phone:1").await;
    server.put("phone", "phone:2").await;
    client.request("phone").await;
    assert_eq!(client.hear().await, crate::peer::granted("phone:1"));
    assert!(service.handle.summary().servers.is_empty());
    drop(server);
    service
        .until(|service| service.status("phone").is_none())
        .await;
}

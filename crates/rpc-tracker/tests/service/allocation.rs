//! Who gets which device.

use crate::peer::{Service, frame, granted};

#[tokio::test]
async fn the_highest_priority_is_served_first() {
    let service = Service::start().await;
    let mut clients = Vec::new();
    for (number, priority) in ["1", "7.5", "-2", "7"].into_iter().enumerate() {
        let mut client = service.peer().await;
        client.say(&format!(r#"[4, "k", "", {priority}]"#)).await;
        let waiting = number as u64 + 1;
        service
            .until(|service| service.status("k") == Some((0, waiting)))
            .await;
        clients.push(client);
    }
    let mut server = service.peer().await;
    for (device, client) in [1, 3, 0, 2].into_iter().enumerate() {
        let match_key = format!("k:{device}");
        server.put("k", &match_key).await;
        assert_eq!(clients[client].hear().await, granted(&match_key));
    }
}

#[tokio::test]
async fn a_thousand_requests_of_one_priority_are_served_in_their_order() {
    const CLIENTS: usize = 10;
    const REQUESTS: usize = 100;
    let service = Service::start().await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = service.peer().await;
        let requests = frame(r#"[4, "k", "", 1]"#).repeat(REQUESTS);
        client.send(&requests).await;
        clients.push(client);
    }
    let all = (CLIENTS * REQUESTS) as u64;
    service
        .until(|service| service.status("k") == Some((0, all)))
        .await;
    let mut server = service.peer().await;
    for device in 0..all {
        server.put("k", &format!("{device}")).await;
    }
    let mut served = Vec::new();
    for client in &mut clients {
        let mut last = None;
        for _ in 0..REQUESTS {
            let reply = client.hear().await;
            let number = reply.split('"').nth(3).unwrap().parse::<u64>().unwrap();
            assert!(last < Some(number), "in the order of the requests");
            last = Some(number);
            served.push(number);
        }
    }
    served.sort_unstable();
    assert!(
        served.into_iter().eq(0..all),
        "each device went to one request"
    );
}

#[tokio::test]
async fn two_requests_on_one_connection_are_answered_in_the_order_of_the_devices() {
    let service = Service::start().await;
    let (mut client, mut server) = (service.peer().await, service.peer().await);
    client.request("a1").await;
    client.request("a2").await;
    service
        .until(|service| service.status("a2").is_some())
        .await;
    server.put("a2", "a2:0.5").await;
    assert_eq!(client.hear().await, granted("a2:0.5"));
    server.put("a1", "a1:0.5").await;
    assert_eq!(client.hear().await, granted("a1:0.5"));
}

#[tokio::test]
async fn a_device_is_granted_once() {
    let service = Service::start().await;
    let mut server = service.peer().await;
    server.put("k", "k:1").await;
    server.put("k", "k:2").await;
    assert_eq!(server.ask("[7]").await, r#"["k:1", "k:2"]"#);
    let mut client = service.peer().await;
    client.request("k").await;
    assert_eq!(client.hear().await, granted("k:1"));
    assert_eq!(server.ask("[7]").await, r#"["k:2"]"#);
    // The keys of one connection are not those of another.
    assert_eq!(client.ask("[7]").await, "[]");
}

#[tokio::test]
async fn a_match_key_that_is_put_twice_harms_nobody() {
    let service = Service::start().await;
    let mut server = service.peer().await;
    server.put("k", "k:1").await;
    server.put("k", "k:1").await;
    assert_eq!(service.status("k"), Some((1, 0)));
    let (mut first, mut second) = (service.peer().await, service.peer().await);
    first.request("k").await;
    assert_eq!(first.hear().await, granted("k:1"));
    second.request("k").await;
    service
        .until(|service| service.status("k") == Some((0, 1)))
        .await;
    server.put("k", "k:1").await;
    assert_eq!(second.hear().await, granted("k:1"));
    for peer in [&mut first, &mut second, &mut server] {
        peer.ping().await;
    }
}

#[tokio::test]
async fn match_keys_are_opaque() {
    let service = Service::start().await;
    let (mut server, mut client) = (service.peer().await, service.peer().await);
    server.register("server:k").await;
    for match_key in [
        "k:0.5",
        "other:0.5",
        "nocolon",
        "",
        "9f86d081884c7d659a2feaa0c55ad015",
    ] {
        server.put("k", match_key).await;
        client.request("k").await;
        assert_eq!(client.hear().await, granted(match_key));
    }
}

#[tokio::test]
async fn devices_are_gone_with_their_server_without_an_update_info() {
    let service = Service::start().await;
    let mut server = service.peer().await;
    server.put("noinfo", "noinfo:0.1").await;
    assert_eq!(service.status("noinfo"), Some((1, 0)));
    drop(server);
    service
        .until(|service| service.status("noinfo").is_none())
        .await;
}

#[tokio::test]
async fn devices_are_gone_with_their_server_whatever_their_match_keys_are() {
    let service = Service::start().await;
    let mut server = service.peer().await;
    server.register("server:kk").await;
    for match_key in ["other:0.5", "nocolon", "kk:0.5"] {
        server.put("kk", match_key).await;
    }
    assert_eq!(service.status("kk"), Some((3, 0)));
    drop(server);
    service
        .until(|service| service.status("kk") == Some((0, 0)))
        .await;
}

#[tokio::test]
async fn a_key_may_hold_colons() {
    let service = Service::start().await;
    let key = "127.0.0.1:5555";
    for match_key in ["127.0.0.1:5555:0.42", "127.0.0.1:5555:0.43"] {
        let mut server = service.peer().await;
        server.register("server:127.0.0.1:5555").await;
        server.put(key, match_key).await;
        assert_eq!(service.status(key), Some((1, 0)));
        let mut client = service.peer().await;
        client.request(key).await;
        assert_eq!(client.hear().await, granted(match_key));
        server.put(key, "another").await;
        drop(server);
        service
            .until(|service| service.status(key) == Some((0, 0)))
            .await;
        assert!(service.handle.summary().servers.is_empty());
    }
}

#[tokio::test]
async fn requests_are_gone_with_their_client() {
    let service = Service::start().await;
    let mut clients = Vec::new();
    for number in 0..5 {
        let mut client = service.peer().await;
        client.request("k").await;
        client.request(&format!("typo {number}")).await;
        clients.push(client);
    }
    let pending = |count| move |service: &Service| service.status("k") == Some((0, count));
    service.until(pending(5)).await;
    clients.truncate(2);
    service.until(pending(2)).await;
    drop(clients);
    service
        .until(|service| service.handle.summary().queues.is_empty())
        .await;
}

#[tokio::test]
async fn a_device_does_not_go_to_a_client_that_is_gone() {
    let service = Service::start().await;
    for round in 0..50 {
        let (mut gone, mut next) = (service.peer().await, service.peer().await);
        let server = service.peer().await;
        gone.request("k").await;
        service
            .until(|service| service.status("k") == Some((0, 1)))
            .await;
        let match_key = format!("k:{round}");
        let put = frame(&format!(r#"[3, "k", [9090, "{match_key}"], null]"#));
        // The tracker shares the thread, so that it comes to both of them at once, in any order.
        assert_eq!(server.stream.try_write(&put).unwrap(), put.len());
        drop(gone);
        next.request("k").await;
        assert_eq!(next.hear().await, granted(&match_key));
    }
}

#[tokio::test]
async fn a_custom_address_is_told_as_it_is() {
    let service = Service::start().await;
    let (mut server, mut client) = (service.peer().await, service.peer().await);
    for (sent, told) in [
        (r#""203.0.113.7""#, r#""203.0.113.7""#),
        (r#""a \"b\" \\ c""#, r#""a \"b\" \\ c""#),
        (r#""""#, r#""127.0.0.1""#),
        ("null", r#""127.0.0.1""#),
    ] {
        let put = format!(r#"[3, "k \"q\"", [9090, "m"], {sent}]"#);
        assert_eq!(server.ask(&put).await, "0");
        client.request(r#"k \"q\""#).await;
        assert_eq!(client.hear().await, format!(r#"[0, [{told}, 9090, "m"]]"#));
    }
    // It may also be missing.
    assert_eq!(server.ask(r#"[3, "k", [9090, "m"]]"#).await, "0");
    client.request("k").await;
    assert_eq!(client.hear().await, granted("m"));
}

#[tokio::test]
async fn priorities_are_finite_numbers_and_keys_are_texts() {
    let service = Service::start().await;
    for wrong in [
        r#"[4, "k", "", NaN]"#,
        r#"[4, "k", "", Infinity]"#,
        r#"[4, "k", "", 1e999]"#,
        r#"[4, "k", "", "1"]"#,
        r#"[4, "k", "", true]"#,
        r#"[4, null, "", 1]"#,
        r#"[3, null, [1, "m"], null]"#,
    ] {
        let mut peer = service.peer().await;
        peer.say(wrong).await;
        peer.is_closed().await;
    }
    assert!(service.handle.summary().queues.is_empty());
}

use std::net::SocketAddr;

use rpc_proto::Limits;
use rpc_proto::tracker::{Port, ServerAddr};

use super::*;

mod listing;
mod model;

/// Queues, and what they did, as text: `2<0` is a 0 for the second connection, `1<h:9:m` a grant.
struct Desk {
    queues: Queues,
    grants: Vec<Grant>,
}

impl Desk {
    fn new() -> Self {
        Self::with(&TrackerOptions::default())
    }

    fn with(options: &TrackerOptions) -> Self {
        Self {
            queues: Queues::new(options),
            grants: Vec::new(),
        }
    }

    fn connect(&mut self) -> ConnectionId {
        let number = self.queues.last_id + 1;
        self.connect_from(&format!("10.0.0.{number}:40000"))
    }

    fn connect_from(&mut self, remote: &str) -> ConnectionId {
        self.queues.connected(Peer {
            remote: remote.parse().unwrap(),
            local: "10.0.0.254:9190".parse::<SocketAddr>().unwrap(),
        })
    }

    fn ask(&mut self, from: ConnectionId, request: Request) -> Vec<String> {
        let mut effects = Vec::new();
        self.queues.request(from, request, &mut effects);
        self.told(effects)
    }

    fn put(&mut self, from: ConnectionId, key: &str, match_key: &str) -> Vec<String> {
        self.ask(from, put(key, match_key, None))
    }

    fn request(&mut self, from: ConnectionId, key: &str, priority: i32) -> Vec<String> {
        self.ask(from, request(key, priority))
    }

    fn register(&mut self, from: ConnectionId, key: &str, addr: Option<ServerAddr>) -> Vec<String> {
        let key = key.to_owned();
        self.ask(from, Request::UpdateInfo(ServerInfo { key, addr }))
    }

    fn close(&mut self, id: ConnectionId) {
        self.queues.closed(id, [], &mut Vec::new());
    }

    /// Closes a connection which did not get its last grant.
    fn close_undelivered(&mut self, id: ConnectionId) -> Vec<String> {
        let grant = self.grants.pop().unwrap();
        assert_eq!(grant.to(), id);
        let mut effects = Vec::new();
        self.queues.closed(id, [grant], &mut effects);
        self.told(effects)
    }

    fn told(&mut self, effects: Vec<Effect>) -> Vec<String> {
        let mut told = Vec::new();
        for effect in effects {
            told.push(match effect {
                Effect::Reply { to, reply } => {
                    let mut frame = Vec::new();
                    reply.encode(Limits::default(), &mut frame).unwrap();
                    format!("{}<{}", to.0, String::from_utf8_lossy(&frame[4..]))
                }
                Effect::Grant(grant) => {
                    let Allocation {
                        host,
                        port,
                        match_key,
                    } = grant.allocation();
                    let line = format!("{}<{host}:{port}:{match_key}", grant.to().0);
                    self.grants.push(grant);
                    line
                }
                Effect::Stop => "stop".to_owned(),
            });
        }
        told
    }

    fn status(&self, key: &str) -> Option<(u64, u64)> {
        let summary = self.queues.summary();
        let queue = summary.queues.get(key)?;
        Some((queue.free, queue.pending))
    }

    fn pending(&mut self, of: ConnectionId) -> String {
        self.ask(of, Request::PendingMatchKeys).concat()
    }

    fn listed(&self) -> Vec<String> {
        let summary = self.queues.summary();
        let line = |server: &ServerInfo| {
            let addr = server.addr.as_ref().expect("each has one");
            format!("{} {addr}", server.key)
        };
        summary.servers.iter().map(line).collect()
    }
}

fn put(key: &str, match_key: &str, custom_addr: Option<&str>) -> Request {
    Request::Put {
        key: key.to_owned(),
        port: 9090,
        match_key: match_key.to_owned(),
        custom_addr: custom_addr.map(str::to_owned),
    }
}

fn request(key: &str, priority: i32) -> Request {
    Request::Request {
        key: key.to_owned(),
        user: String::new(),
        priority: priority.into(),
    }
}

fn addr(host: Option<&str>, port: Port) -> Option<ServerAddr> {
    let host = host.map(str::to_owned);
    Some(ServerAddr { host, port })
}

const NOTHING: [&str; 0] = [];

#[test]
fn the_highest_priority_is_served_first_then_the_earliest() {
    let mut desk = Desk::new();
    let clients: Vec<_> = [1, 5, 1, 5, -3]
        .into_iter()
        .map(|priority| {
            let client = desk.connect();
            assert_eq!(desk.request(client, "k", priority), NOTHING);
            client
        })
        .collect();
    assert_eq!(desk.status("k"), Some((0, 5)));
    let server = desk.connect();
    for (device, client) in [1, 3, 0, 2, 4].into_iter().enumerate() {
        let granted = format!("{}<10.0.0.6:9090:m{device}", clients[client].0);
        let told = desk.put(server, "k", &format!("m{device}"));
        assert_eq!(told, [granted.as_str(), "6<0"]);
    }
    assert_eq!(desk.status("k"), None);
}

#[test]
fn a_device_on_offer_is_granted_at_once_the_first_one_first() {
    let mut desk = Desk::new();
    let (server, client) = (desk.connect(), desk.connect());
    assert_eq!(desk.put(server, "k", "m1"), ["1<0"]);
    assert_eq!(desk.put(server, "k", "m2"), ["1<0"]);
    assert_eq!(desk.status("k"), Some((2, 0)));
    assert_eq!(desk.pending(server), r#"1<["m1", "m2"]"#);
    assert_eq!(desk.request(client, "k", 1), ["2<10.0.0.1:9090:m1"]);
    assert_eq!(desk.pending(server), r#"1<["m2"]"#);
    assert_eq!(desk.request(client, "other", 1), NOTHING);
    assert_eq!(desk.status("k"), Some((1, 0)));
}

#[test]
fn two_requests_of_one_connection_are_answered_in_the_order_of_the_grants() {
    let mut desk = Desk::new();
    let (server, client) = (desk.connect(), desk.connect());
    desk.request(client, "a1", 1);
    desk.request(client, "a2", 1);
    assert_eq!(desk.put(server, "a2", "m2"), ["2<10.0.0.1:9090:m2", "1<0"]);
    assert_eq!(desk.put(server, "a1", "m1"), ["2<10.0.0.1:9090:m1", "1<0"]);
}

#[test]
fn what_a_connection_offered_is_gone_with_it_whatever_its_match_keys_are() {
    let mut desk = Desk::new();
    let (server, other) = (desk.connect(), desk.connect());
    for match_key in [
        "k:0.5",
        "other:0.5",
        "nocolon",
        "",
        ":",
        "127.0.0.1:5555:0.42",
    ] {
        desk.put(server, "k", match_key);
    }
    desk.put(other, "k", "stays");
    assert_eq!(desk.status("k"), Some((7, 0)));
    desk.close(server);
    assert_eq!(desk.status("k"), Some((1, 0)));
    assert_eq!(desk.pending(other), r#"2<["stays"]"#);
    desk.close(other);
    assert_eq!(desk.status("k"), None);
}

#[test]
fn what_a_connection_waited_for_is_forgotten_with_it() {
    let mut desk = Desk::new();
    let (gone, stays, server) = (desk.connect(), desk.connect(), desk.connect());
    desk.request(gone, "k", 9);
    desk.request(gone, "typo", 1);
    desk.request(stays, "k", 1);
    desk.close(gone);
    assert_eq!(desk.status("k"), Some((0, 1)));
    assert_eq!(desk.status("typo"), None);
    assert_eq!(desk.put(server, "k", "m"), ["2<10.0.0.3:9090:m", "3<0"]);
}

#[test]
fn a_grant_that_was_not_delivered_goes_to_the_next_one() {
    let mut desk = Desk::new();
    let (first, second, server) = (desk.connect(), desk.connect(), desk.connect());
    desk.request(first, "k", 1);
    desk.request(second, "k", 1);
    // A second request of the connection that is gone does not get the device again.
    desk.request(first, "k", 7);
    desk.put(server, "k", "m");
    assert_eq!(desk.close_undelivered(first), ["2<10.0.0.3:9090:m"]);
    // Nobody waits any more: it is on offer again.
    assert_eq!(desk.close_undelivered(second), NOTHING);
    assert_eq!(desk.status("k"), Some((1, 0)));
    assert_eq!(desk.pending(server), r#"3<["m"]"#);
}

#[test]
fn a_grant_that_comes_back_gets_its_old_place() {
    let mut desk = Desk::new();
    let (server, first, second) = (desk.connect(), desk.connect(), desk.connect());
    desk.put(server, "k", "m1");
    desk.put(server, "k", "m2");
    desk.request(first, "k", 1);
    assert_eq!(desk.close_undelivered(first), NOTHING);
    assert_eq!(desk.request(second, "k", 1), ["3<10.0.0.1:9090:m1"]);
}

#[test]
fn a_grant_does_not_come_back_from_a_server_that_is_gone_or_offers_anew() {
    let mut desk = Desk::new();
    let (server, first, second) = (desk.connect(), desk.connect(), desk.connect());
    desk.put(server, "k", "m");
    desk.request(first, "k", 1);
    desk.put(server, "k", "m");
    assert_eq!(desk.close_undelivered(first), NOTHING);
    assert_eq!(desk.status("k"), Some((1, 0)));

    desk.request(second, "k", 1);
    desk.close(server);
    assert_eq!(desk.close_undelivered(second), NOTHING);
    assert_eq!(desk.status("k"), None);
}

#[test]
fn a_match_key_that_is_offered_twice_is_one_device() {
    let mut desk = Desk::new();
    let (server, other, client) = (desk.connect(), desk.connect(), desk.connect());
    assert_eq!(desk.put(server, "k", "m"), ["1<0"]);
    assert_eq!(desk.put(server, "k", "m"), ["1<0"]);
    assert_eq!(desk.status("k"), Some((1, 0)));
    // Under another key it has moved.
    desk.put(server, "k2", "m");
    assert_eq!((desk.status("k"), desk.status("k2")), (None, Some((1, 0))));
    // The same one of another server is another device.
    desk.put(other, "k2", "m");
    assert_eq!(desk.request(client, "k2", 1), ["3<10.0.0.1:9090:m"]);
    assert_eq!(desk.request(client, "k2", 1), ["3<10.0.0.2:9090:m"]);
    // Once it is taken it may be offered again.
    assert_eq!(desk.put(server, "k2", "m"), ["1<0"]);
    assert_eq!(desk.request(client, "k2", 1), ["3<10.0.0.1:9090:m"]);
}

#[test]
fn a_custom_address_is_told_as_it_is() {
    let mut desk = Desk::new();
    let (server, client) = (desk.connect(), desk.connect());
    for (custom_addr, host) in [
        (Some("203.0.113.7"), "203.0.113.7"),
        (Some("a \"name\" \\ of sorts"), "a \"name\" \\ of sorts"),
        (None, "10.0.0.1"),
    ] {
        desk.ask(server, put("k", "m", custom_addr));
        let told = desk.request(client, "k", 1);
        assert_eq!(told, [format!("2<{host}:9090:m")]);
    }
}

#[test]
fn a_server_on_the_trackers_machine_is_found_from_elsewhere() {
    let options = TrackerOptions::default();
    let public = options.clone().with_public_host("farm.example.org");
    for (options, expected) in [(options, "10.0.0.254"), (public, "farm.example.org")] {
        let mut desk = Desk::with(&options);
        let server = desk.connect_from("[::ffff:127.0.0.1]:40000");
        let (here, elsewhere) = (desk.connect_from("127.0.0.1:40001"), desk.connect());
        desk.put(server, "k", "m1");
        desk.put(server, "k", "m2");
        assert_eq!(desk.request(here, "k", 1), ["2<127.0.0.1:9090:m1"]);
        let told = desk.request(elsewhere, "k", 1);
        assert_eq!(told, [format!("3<{expected}:9090:m2")]);
    }
}

#[test]
fn what_is_over_a_limit_is_refused() {
    let options = TrackerOptions::default()
        .with_limits(Limits::default().with_key(8))
        .with_pending_requests(1)
        .with_free_devices(1);
    let mut desk = Desk::with(&options);
    let (server, client) = (desk.connect(), desk.connect());
    let long = "123456789";
    assert_eq!(desk.put(server, long, "m"), ["1<-1"]);
    assert_eq!(desk.put(server, "k", long), ["1<-1"]);
    assert_eq!(desk.ask(server, put("k", "m", Some(long))), ["1<-1"]);
    assert_eq!(desk.register(server, "server:k2", None), ["1<-1"]);
    let wordy = addr(None, Port::Text("000009090".to_owned()));
    assert_eq!(desk.register(server, "server:k", wordy), ["1<-1"]);
    let told = desk.request(client, long, 1);
    assert_eq!(told, [r#"2<[-1, "the key is too long"]"#]);

    assert_eq!(desk.put(server, "k", "m1"), ["1<0"]);
    assert_eq!(desk.put(server, "k", "m2"), ["1<-1"]);
    assert_eq!(desk.put(server, "k", "m1"), ["1<0"]);
    assert_eq!(desk.request(client, "k2", 1), NOTHING);
    let told = desk.request(client, "k2", 1);
    assert_eq!(
        told,
        [r#"2<[-1, "this connection has too many requests waiting"]"#]
    );
    // What need not wait is not waiting.
    assert_eq!(desk.request(client, "k", 1), ["2<10.0.0.1:9090:m1"]);
    desk.put(server, "k", "m3");
    assert_eq!(desk.put(server, "k2", "m4"), ["2<10.0.0.1:9090:m4", "1<0"]);
}

#[test]
fn only_the_stop_key_ends_the_tracker() {
    let stop = |key: &str| Request::Stop {
        stop_key: key.to_owned(),
    };
    let mut desk = Desk::with(&TrackerOptions::default().with_stop_key("secret"));
    let peer = desk.connect();
    assert_eq!(desk.ask(peer, stop("")), ["1<-1"]);
    assert_eq!(desk.ask(peer, stop("secret ")), ["1<-1"]);
    assert_eq!(desk.ask(peer, stop("secret")), ["1<0", "stop"]);
    // Without a stop key, none is right.
    let mut desk = Desk::new();
    let peer = desk.connect();
    assert_eq!(desk.ask(peer, stop("")), ["1<-1"]);
}

#[test]
fn a_connection_that_has_ended_asks_for_nothing() {
    let mut desk = Desk::new();
    let peer = desk.connect();
    desk.close(peer);
    desk.close(peer);
    assert_eq!(desk.put(peer, "k", "m"), NOTHING);
    assert_eq!(desk.queues.connections(), 0);
    assert!(desk.queues.summary().queues.is_empty());
    assert_ne!(desk.connect(), peer);
}

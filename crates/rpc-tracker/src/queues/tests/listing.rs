//! What a summary tells.

use super::*;

#[test]
fn servers_are_listed_with_the_address_that_they_give() {
    let mut desk = Desk::new();
    let number = |port| Port::Number(port);
    let text = |port: &str| Port::Text(port.to_owned());
    for (addr, listed) in [
        (addr(None, number(9090)), "10.0.0.1:9090"),
        (addr(None, text("9090")), "10.0.0.2:9090"),
        (addr(Some("1.2.3.4"), number(9090)), "1.2.3.4:9090"),
        (addr(Some(""), number(9090)), "10.0.0.4:9090"),
        (None, "10.0.0.5:0"),
    ] {
        let server = desk.connect();
        assert_eq!(
            desk.register(server, "server:k", addr),
            [format!("{}<0", server.0)]
        );
        assert_eq!(desk.listed().pop(), Some(format!("server:k {listed}")));
    }
    // A text stays a text.
    let servers = desk.queues.summary().servers;
    assert_eq!(servers[1].addr.as_ref().unwrap().port, text("9090"));
}

#[test]
fn a_server_that_does_not_give_its_port_is_listed_with_that_of_its_offer() {
    let mut desk = Desk::new();
    let (early, late) = (desk.connect(), desk.connect());
    desk.register(early, "server:k", None);
    desk.put(early, "k", "m1");
    desk.put(late, "k", "m2");
    desk.register(late, "server:k", None);
    assert_eq!(
        desk.listed(),
        ["server:k 10.0.0.1:9090", "server:k 10.0.0.2:9090"]
    );
    // One that did is not corrected, and need not repeat it.
    desk.register(early, "server:k", addr(None, Port::Number(5)));
    desk.register(early, "server:k2", None);
    desk.put(early, "k", "m3");
    assert_eq!(desk.listed()[0], "server:k2 10.0.0.1:5");
}

#[test]
fn only_servers_are_listed_and_only_while_they_are_connected() {
    let mut desk = Desk::new();
    let (server, odd, client) = (desk.connect(), desk.connect(), desk.connect());
    desk.register(server, "server:k", None);
    desk.register(odd, "server", None);
    desk.register(client, "client:k", None);
    assert_eq!(desk.listed(), ["server:k 10.0.0.1:0"]);
    desk.close(server);
    assert_eq!(desk.listed(), NOTHING);
}

#[test]
fn a_server_that_only_offers_can_be_used_and_is_not_listed() {
    let mut desk = Desk::new();
    let (server, client) = (desk.connect(), desk.connect());
    desk.put(server, "k", "m");
    assert_eq!(desk.listed(), NOTHING);
    assert_eq!(desk.request(client, "k", 1), ["2<10.0.0.1:9090:m"]);
}

#[test]
fn a_queue_is_listed_when_its_server_is_busy_or_gone() {
    let mut desk = Desk::new();
    let (server, proxy, client) = (desk.connect(), desk.connect(), desk.connect());
    desk.register(server, "server:127.0.0.1:5555", None);
    desk.register(proxy, "server:proxy[a,b]", None);
    desk.put(server, "127.0.0.1:5555", "m");
    desk.put(proxy, "a", "ma");
    desk.request(client, "127.0.0.1:5555", 1);
    assert_eq!(desk.status("127.0.0.1:5555"), Some((0, 0)));
    assert_eq!(desk.status("a"), Some((1, 0)));
    assert_eq!(desk.status("b"), Some((0, 0)));
    desk.close(server);
    desk.close(proxy);
    // The reference's own tests look at it then.
    for key in ["127.0.0.1:5555", "a", "b"] {
        assert_eq!(desk.status(key), Some((0, 0)));
    }
}

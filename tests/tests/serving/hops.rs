//! Chains of our servers and the reference's.

use super::*;

fn through(first: SocketAddr, second: SocketAddr) {
    let (first, second) = (first.to_string(), second.to_string());
    let server = ["--server", &first, "--key", "first"];
    let hop = ["--hop", &second, "--hop-key", "second"];
    client("two_hops", &[server, hop].concat());
}

#[test]
fn their_client_goes_through_our_server_to_theirs() {
    let first = Server::start("first", &[]);
    let second = peers::Server::builder().key("second").start();
    through(first.addr(), second.addr());
}

#[test]
fn their_client_goes_through_their_server_to_ours() {
    let first = peers::Server::builder().key("first").start();
    let second = Server::start("second", &[]);
    through(first.addr(), second.addr());
}

#[test]
fn their_client_goes_through_two_servers_of_ours() {
    let first = Server::start("first", &[]);
    let second = Server::start("second", &[]);
    through(first.addr(), second.addr());
}

use std::net::{IpAddr, SocketAddr};

use rpc_transport::Address;

/// The two ends of a connection to the tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The peer's address.
    pub remote: SocketAddr,
    /// The tracker's own address, at which the peer came to it.
    pub local: SocketAddr,
}

impl Peer {
    /// The peer's address, as others are told it.
    pub(super) fn host(&self) -> String {
        host(self.remote)
    }

    pub(super) fn is_on_this_machine(&self) -> bool {
        self.remote.ip().to_canonical().is_loopback()
    }

    /// Where `client` finds a server that is this peer.
    ///
    /// A server on the tracker's machine may come over loopback, which leads a client on another
    /// machine to itself. That client has found this machine already, at an address that will do.
    pub(super) fn host_for(&self, client: &Peer, public_host: Option<&str>) -> String {
        if !self.is_on_this_machine() || client.is_on_this_machine() {
            return self.host();
        }
        public_host.map_or_else(|| host(client.local), str::to_owned)
    }
}

/// An address without its port. An IPv4 address in the form of IPv6, which a listener for both versions
/// sees, is told as what it is: clients without IPv6 could not use the other form. A zone stays, since
/// an address that needs one is of no use without.
fn host(address: SocketAddr) -> String {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(_) => Address::from(address).host().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(remote: &str, local: &str) -> Peer {
        Peer {
            remote: remote.parse().unwrap(),
            local: local.parse().unwrap(),
        }
    }

    #[test]
    fn an_ipv4_address_is_told_as_such() {
        let server = peer("[::ffff:10.0.0.7]:40000", "[::ffff:10.0.0.1]:9190");
        assert_eq!(server.host(), "10.0.0.7");
        assert!(peer("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:2").is_on_this_machine());
    }

    #[test]
    fn a_link_local_address_keeps_its_zone() {
        let server = peer("[fe80::7%3]:40000", "[fe80::1%3]:9190");
        assert_eq!(server.host(), "fe80::7%3");
    }

    #[test]
    fn a_server_on_loopback_is_found_from_elsewhere() {
        let server = peer("127.0.0.1:40000", "127.0.0.1:9190");
        let here = peer("127.0.0.1:40001", "127.0.0.1:9190");
        let elsewhere = peer("10.0.0.9:40001", "10.0.0.1:9190");
        assert_eq!(server.host_for(&here, None), "127.0.0.1");
        assert_eq!(server.host_for(&elsewhere, None), "10.0.0.1");
        let public = Some("farm.example.org");
        assert_eq!(server.host_for(&elsewhere, public), "farm.example.org");
        assert_eq!(server.host_for(&here, public), "127.0.0.1");
    }

    #[test]
    fn other_servers_are_where_they_came_from() {
        let server = peer("10.0.0.7:40000", "10.0.0.1:9190");
        let client = peer("10.0.0.9:40001", "10.0.0.1:9190");
        let public = Some("farm.example.org");
        assert_eq!(server.host_for(&client, public), "10.0.0.7");
    }
}

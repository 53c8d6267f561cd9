use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::ops::RangeInclusive;

use socket2::{Domain, Protocol, Socket, Type};

use crate::TransportError;

/// How many connections may wait to be accepted; systems lower it to their own limit. The reference's
/// services let one wait, so that many clients at once wait for seconds.
const BACKLOG: i32 = 4096;

/// Opens a TCP listener on the first port of `ports` that is free; port 0 lets the system choose.
///
/// `host` is a name or an address of either version; `0.0.0.0` listens on all of the machine's IPv4
/// addresses, `::` on all of both versions. Of a name with several addresses it is the first one that
/// this machine has. On Unix a port counts as free while old connections of it linger.
///
/// The listener blocks; before tokio takes it, it has to be told not to.
///
/// # Errors
/// [`TransportError::Listen`]: the host is not of this machine, or no port of the range is free.
///
/// ```no_run
/// let listener = rpc_transport::listen("127.0.0.1", 9190..=9199)?;
/// println!("listening on {}", listener.local_addr()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn listen(host: &str, ports: RangeInclusive<u16>) -> Result<TcpListener, TransportError> {
    on_first_address(host, &ports).map_err(|source| TransportError::Listen {
        host: host.to_owned(),
        ports,
        source,
    })
}

fn on_first_address(host: &str, ports: &RangeInclusive<u16>) -> io::Result<TcpListener> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let mut failure = io::Error::new(ErrorKind::AddrNotAvailable, "the name has no address");
    for address in (bare.unwrap_or(host), 0).to_socket_addrs()? {
        match on_first_port(address, ports) {
            // The machine has no such address, or nothing of its version.
            Err(error) if !is_about_the_port(&error) => failure = error,
            listener_or_failure => return listener_or_failure,
        }
    }
    Err(failure)
}

/// Another port might do where this one did not. Some systems keep ports for themselves, and forbid
/// them instead of calling them taken.
fn is_about_the_port(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AddrInUse | ErrorKind::PermissionDenied
    )
}

fn on_first_port(mut address: SocketAddr, ports: &RangeInclusive<u16>) -> io::Result<TcpListener> {
    let mut failure = io::Error::new(ErrorKind::InvalidInput, "the range of ports is empty");
    for port in ports.clone() {
        address.set_port(port);
        match on(address) {
            Err(error) if is_about_the_port(&error) => failure = error,
            listener_or_failure => return listener_or_failure,
        }
    }
    Err(failure)
}

fn on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // On Windows this would let two services share a port, and what each of them gets is chance.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Systems differ in what they do by themselves; some cannot, and then it is IPv6 alone.
        let _ = socket.set_only_v6(false);
    }
    socket.bind(&address.into())?;
    // Two sockets that reuse an address can both bind it; it is listening that tells them apart.
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    fn port(listener: &TcpListener) -> u16 {
        listener.local_addr().unwrap().port()
    }

    /// The error and its source, in one line.
    fn refusal(host: &str, ports: RangeInclusive<u16>) -> String {
        let error = listen(host, ports).unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        format!("{error}: {source}")
    }

    #[test]
    fn the_system_chooses_a_port_for_zero() {
        let listener = listen("127.0.0.1", 0..=0).unwrap();
        assert_ne!(port(&listener), 0);
        TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    }

    #[test]
    fn a_taken_port_leads_to_the_next_one() {
        // Ports of other programs may lie in between, so that it need not be the very next.
        let taken = listen("127.0.0.1", 20_000..=60_000).unwrap();
        let next = listen("127.0.0.1", port(&taken)..=60_000).unwrap();
        assert!(port(&next) > port(&taken));
    }

    #[test]
    fn the_last_port_of_the_range_belongs_to_it() {
        let taken = listen("127.0.0.1", 0..=0).unwrap();
        let port = port(&taken);
        assert_eq!(
            refusal("127.0.0.1", port..=port).split(": ").next(),
            Some(format!("cannot listen on 127.0.0.1, port {port}").as_str())
        );
        drop(taken);
        listen("127.0.0.1", port..=port).unwrap();
    }

    #[test]
    fn a_port_is_free_while_old_connections_linger() {
        let listener = listen("127.0.0.1", 0..=0).unwrap();
        let port = port(&listener);
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        // Who closes first is the one whose side lingers.
        drop(accepted);
        drop(client);
        drop(listener);
        listen("127.0.0.1", port..=port).unwrap();
    }

    #[test]
    fn a_name_is_looked_up() {
        let listener = listen("localhost", 0..=0).unwrap();
        assert!(listener.local_addr().unwrap().ip().is_loopback());
    }

    #[test]
    fn an_ipv6_address_may_stand_in_brackets() {
        // Not every machine has it.
        if let Ok(listener) = listen("[::1]", 0..=0) {
            assert!(listener.local_addr().unwrap().is_ipv6());
            assert!(listen("::1", 0..=0).is_ok());
        }
    }

    #[test]
    fn all_addresses_of_ipv6_are_those_of_ipv4_too() {
        if let Ok(listener) = listen("::", 0..=0) {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port(&listener))).unwrap();
        }
    }

    #[test]
    fn a_failure_names_host_and_ports() {
        // An address of the documentation's, which no machine has.
        let told = refusal("192.0.2.1", 9190..=9199);
        assert!(
            told.starts_with("cannot listen on 192.0.2.1, ports 9190 to 9199: "),
            "{told}"
        );
        let told = refusal("no such host", 0..=0);
        assert!(
            told.starts_with("cannot listen on no such host, port 0: "),
            "{told}"
        );
        #[expect(clippy::reversed_empty_ranges, reason = "what it is about")]
        let told = refusal("127.0.0.1", 9199..=9190);
        assert_eq!(
            told,
            "cannot listen on 127.0.0.1, ports 9199 to 9190: the range of ports is empty"
        );
    }

    #[test]
    fn many_connections_may_wait_to_be_accepted() {
        let listener = listen("127.0.0.1", 0..=0).unwrap();
        let address = listener.local_addr().unwrap();
        let waiting: Vec<_> = (0..300)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        for _ in &waiting {
            listener.accept().unwrap();
        }
    }
}

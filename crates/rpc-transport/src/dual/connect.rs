use std::io::{self, ErrorKind};
use std::net::SocketAddr;

#[cfg(feature = "websocket")]
use super::WebSocket;
use super::{Stream, TcpStream, bisync, look_up, open};
use crate::socket::configure;
use crate::{Address, ConnectOptions, Deadline, ServerAddress, Step, TransportError};

/// Connects to `address`, trying every address of a host name until one accepts.
///
/// [`ConnectOptions::connect_timeout`] is shared out: each address may take an equal part of what is
/// left. In the blocking twin the look-up of a name has the system's time limit, not this one.
///
/// # Errors
/// The name has no address, none of them accepts, or the time is up.
#[bisync]
pub async fn connect(
    address: &Address,
    options: &ConnectOptions,
) -> Result<Stream, TransportError> {
    let peer = address.to_string();
    let socket = open_any(address, &peer, options).await?;
    Ok(Stream::tcp(socket, peer))
}

/// Connects to a server or a proxy, by the kind of connection that its address says.
///
/// To connect is the work of [`ConnectOptions::connect_timeout`] as it is in [`connect`]; that a
/// WebSocket is made of the connection may take [`ConnectOptions::handshake_timeout`].
///
/// # Errors
/// As [`connect`]; of a WebSocket also that the peer refuses to make one.
#[bisync]
pub async fn connect_server(
    server: &ServerAddress,
    options: &ConnectOptions,
) -> Result<Stream, TransportError> {
    match server {
        ServerAddress::Tcp(address) => connect(address, options).await,
        #[cfg(feature = "websocket")]
        ServerAddress::WebSocket(address) => {
            let socket = WebSocket::connect(address, options).await?;
            Ok(socket.into_stream(address.to_string()))
        }
    }
}

/// Opens a connection to one of the addresses of `address`; `peer` is its name in errors.
#[bisync]
pub(in super::super) async fn open_any(
    address: &Address,
    peer: &str,
    options: &ConnectOptions,
) -> Result<TcpStream, TransportError> {
    let deadline = Deadline::total(Step::Connect, Some(options.connect_timeout));
    let connected = match look_up(address, &deadline).await {
        Ok(addresses) => connect_any(&addresses, &deadline, options).await,
        Err(error) => Err(error),
    };
    connected.map_err(|error| failed(peer.to_owned(), &deadline, error))
}

/// The system has a limit of its own, so that its time can be up where none was set.
fn failed(peer: String, deadline: &Deadline, source: io::Error) -> TransportError {
    if source.kind() == ErrorKind::TimedOut && deadline.next_wait().is_some() {
        deadline.timed_out(&peer)
    } else {
        TransportError::Connect { peer, source }
    }
}

#[bisync]
async fn connect_any(
    addresses: &[SocketAddr],
    deadline: &Deadline,
    options: &ConnectOptions,
) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for (tried, &address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        // So that one dead address does not use up the time of the others.
        let share = deadline.next_wait().map(|wait| wait / left);
        let opened = open(address, share).await;
        let configured = opened.and_then(|socket| {
            configure(&socket, options.keep_alive)?;
            Ok(socket)
        });
        match configured {
            Ok(socket) => return Ok(socket),
            Err(error) => {
                tracing::debug!(%address, %error, "cannot connect");
                if weight(&error) >= weight(&failure) {
                    failure = error;
                }
            }
        }
    }
    Err(failure)
}

/// How much a failure says of the peer: silence more than a refusal, other errors are this system's own.
fn weight(error: &io::Error) -> u8 {
    match error.kind() {
        ErrorKind::TimedOut => 2,
        ErrorKind::ConnectionRefused => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use socket2::{Domain, Socket, Type};

    use super::super::twin_test;
    use super::*;

    /// No test waits as long for something that ought to happen.
    const LONG: Duration = Duration::from_secs(20);

    /// `silent` neither accepts nor refuses, `refusing` refuses, `open` accepts.
    struct Hosts {
        silent: SocketAddr,
        refusing: SocketAddr,
        open: SocketAddr,
        _keep: (TcpListener, [Socket; 2], Vec<std::net::TcpStream>),
    }

    fn hosts() -> Hosts {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (silent, full, filling) = full_listener();
        // Bound, so that nobody else gets the port, but not listening.
        let bound = bound();
        Hosts {
            silent,
            refusing: address(&bound),
            open: listener.local_addr().unwrap(),
            _keep: (listener, [full, bound], filling),
        }
    }

    fn bound() -> Socket {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(&any_port.into()).unwrap();
        socket
    }

    fn address(socket: &Socket) -> SocketAddr {
        socket.local_addr().unwrap().as_socket().unwrap()
    }

    /// A listener whose queue is full drops what comes, as a dead address does.
    fn full_listener() -> (SocketAddr, Socket, Vec<std::net::TcpStream>) {
        const MOMENT: Duration = Duration::from_millis(200);
        let socket = bound();
        socket.listen(0).unwrap();
        let address = address(&socket);
        let mut queue = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, MOMENT) {
            queue.push(stream);
            assert!(queue.len() < 100, "the queue of the listener is never full");
        }
        (address, socket, queue)
    }

    #[bisync]
    async fn attempt(addresses: &[SocketAddr], limit: Duration) -> io::Result<SocketAddr> {
        let deadline = Deadline::total(Step::Connect, Some(limit));
        let options = ConnectOptions::default();
        let socket = connect_any(addresses, &deadline, &options).await?;
        socket.peer_addr()
    }

    #[bisync]
    #[twin_test]
    async fn any_address_of_a_name_may_be_the_one_that_listens() {
        let hosts = hosts();
        let (refusing, open) = (hosts.refusing, hosts.open);
        for addresses in [[open, refusing], [refusing, open]] {
            let start = Instant::now();
            assert_eq!(attempt(&addresses, 2 * LONG).await.unwrap(), open);
            // A refusal is not waited out.
            assert!(start.elapsed() < LONG);
        }
    }

    #[bisync]
    #[twin_test]
    async fn a_dead_address_uses_up_its_own_share_only() {
        let hosts = hosts();
        let mut addresses = [hosts.open; 40];
        addresses[0] = hosts.silent;
        let start = Instant::now();
        assert_eq!(attempt(&addresses, LONG).await.unwrap(), hosts.open);
        assert!(start.elapsed() >= LONG / 40);
        assert!(start.elapsed() < LONG / 2);
    }

    #[bisync]
    #[twin_test]
    async fn a_dead_host_is_given_up_in_time() {
        let hosts = hosts();
        let allowed = Duration::from_millis(300);
        let options = ConnectOptions::default().with_connect_timeout(allowed);
        let address = Address::new("127.0.0.1", hosts.silent.port());
        let start = Instant::now();
        let error = connect(&address, &options).await.unwrap_err();
        assert!(start.elapsed() >= allowed);
        assert!(start.elapsed() < LONG);
        assert_eq!(
            error.to_string(),
            format!("gave up on {address} after 300ms of connecting")
        );
        assert!(error.is_timeout() && !error.is_refused());
    }

    #[test]
    fn without_a_limit_of_ours_it_is_the_one_of_the_system_that_passed() {
        let silence = || io::Error::from(ErrorKind::TimedOut);
        let total = |limit| Deadline::total(Step::Connect, limit);
        let error = failed("p".to_owned(), &total(Some(LONG)), silence());
        assert_eq!(error.to_string(), "gave up on p after 20s of connecting");
        for none in [None, Some(Duration::MAX)] {
            let error = failed("p".to_owned(), &total(none), silence());
            assert_eq!(error.to_string(), "cannot connect to p");
            assert!(matches!(error, TransportError::Connect { .. }));
        }
    }

    #[bisync]
    #[twin_test]
    async fn the_failure_that_says_most_is_told() {
        const LIMIT: Duration = Duration::from_secs(2);
        let hosts = hosts();
        let (silent, refusing) = (hosts.silent, hosts.refusing);
        // TCP has no broadcast, so that the system refuses by itself.
        let elsewhere: SocketAddr = "255.255.255.255:9".parse().unwrap();
        for (addresses, kind) in [
            (vec![], ErrorKind::NotFound),
            (vec![refusing, refusing], ErrorKind::ConnectionRefused),
            (vec![refusing, elsewhere], ErrorKind::ConnectionRefused),
            (vec![elsewhere, refusing], ErrorKind::ConnectionRefused),
            (vec![refusing, silent], ErrorKind::TimedOut),
            (vec![silent, refusing], ErrorKind::TimedOut),
        ] {
            let error = attempt(&addresses, LIMIT).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{addresses:?}: {error}");
        }
    }
}

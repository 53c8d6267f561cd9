//! Options of TCP sockets, for both twins.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// What systems take for the time between probes: whole seconds in 15 bits.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(i16::MAX as u64);

/// Has a TCP socket send without delay (each message leaves in one write already), and probes a peer
/// that is silent for as long as `keep_alive`; see [`ConnectOptions`]. What `connect` and
/// `accepted` do by themselves.
///
/// [`ConnectOptions`]: crate::ConnectOptions
///
/// # Errors
/// The system refuses: the peer may be gone already.
pub fn configure<'s>(
    socket: impl Into<SockRef<'s>>,
    keep_alive: Option<Duration>,
) -> io::Result<()> {
    let socket = socket.into();
    socket.set_tcp_nodelay(true)?;
    if let Some(idle) = keep_alive {
        let idle = idle.clamp(SHORTEST, LONGEST);
        let probes = TcpKeepalive::new().with_time(idle).with_interval(idle);
        socket.set_tcp_keepalive(&probes)?;
    }
    Ok(())
}

/// Acknowledges what comes next at once.
///
/// The reference tracker writes length and body of an answer one after the other, and without this
/// the second waits for the delayed acknowledgement of the first, some 40 ms. The kernel turns it off
/// again by itself, so it is set before each wait. It only ever makes things faster, so that it fails
/// (or that there is no such thing but on Linux) is no error.
pub(crate) fn quick_ack(socket: SockRef<'_>) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket.set_tcp_quickack(true);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = socket;
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::ConnectOptions;

    fn socket() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    }

    #[test]
    fn small_messages_do_not_wait_and_idle_peers_are_probed() {
        let stream = socket();
        let socket = SockRef::from(&stream);
        configure(&stream, ConnectOptions::default().keep_alive).unwrap();
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        assert_eq!(
            socket.tcp_keepalive_time().unwrap(),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn no_probes_if_none_are_wanted() {
        let stream = socket();
        let options = ConnectOptions::default().with_keep_alive(None);
        configure(&stream, options.keep_alive).unwrap();
        assert!(!SockRef::from(&stream).keepalive().unwrap());
    }

    #[test]
    fn any_time_between_probes_is_taken() {
        for idle in [Duration::ZERO, Duration::from_millis(1), Duration::MAX] {
            let options = ConnectOptions::default().with_keep_alive(Some(idle));
            configure(&socket(), options.keep_alive).unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn quick_acknowledgement_is_set() {
        let stream = socket();
        let socket = SockRef::from(&stream);
        socket.set_tcp_quickack(false).unwrap();
        quick_ack(SockRef::from(&stream));
        assert!(socket.tcp_quickack().unwrap());
    }
}

//! Options of TCP sockets, for both twins, and the order in which addresses are tried.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

use crate::ConnectOptions;

/// No delay (each message leaves in one write already) and keep-alive.
pub(crate) fn configure(socket: SockRef<'_>, options: &ConnectOptions) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    if let Some(idle) = options.keep_alive {
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

/// The time for each attempt, and what the attempts ended with.
pub(crate) struct Attempts {
    deadline: Instant,
    left: u32,
    failure: Option<io::Error>,
}

impl Attempts {
    pub(crate) fn new(addresses: &[SocketAddr], deadline: Instant) -> Self {
        Self {
            deadline,
            left: u32::try_from(addresses.len()).unwrap_or(u32::MAX),
            failure: None,
        }
    }

    /// An equal share of what is left, so that one dead address does not use up the time of the others.
    pub(crate) fn next_share(&mut self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let share = left / self.left.max(1);
        self.left = self.left.saturating_sub(1);
        // The standard library refuses a limit of no time at all.
        share.max(Duration::from_millis(1))
    }

    /// A refusal only counts when nothing else happened.
    pub(crate) fn failed(&mut self, error: io::Error) {
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if self.failure.is_none() || !refused(&error) {
            self.failure = Some(error);
        }
    }

    pub(crate) fn into_failure(self) -> io::Error {
        let nowhere = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        self.failure.unwrap_or_else(nowhere)
    }
}

use std::io;
use std::net::{self, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tracing::{debug, info, warn};

/// The listener of a service, which goes on accepting whatever happens to single connections and to this
/// machine.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    /// The system had nothing left for a connection the last time. That is told when it begins and when
    /// it is over, and not each time.
    is_short: bool,
}

impl Acceptor {
    /// Takes a listener, for example of [`listen`](crate::listen).
    ///
    /// # Errors
    /// What is given is not a listener, or tokio cannot take it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(listener: net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            is_short: false,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection, as it comes: its socket has no options yet. Nothing is lost when the future
    /// is dropped.
    pub async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        const PAUSE: Duration = Duration::from_millis(100);
        loop {
            match self.listener.accept().await {
                Ok(accepted) => {
                    if std::mem::take(&mut self.is_short) {
                        info!("connections are accepted again");
                    }
                    return accepted;
                }
                // The peer's own doing.
                Err(error)
                    if matches!(
                        error.kind(),
                        ConnectionAborted | ConnectionReset | Interrupted
                    ) =>
                {
                    debug!(%error, "a connection was gone before it was accepted");
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.is_short, true) {
                        warn!(%error, "no connection can be accepted, until others end");
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_come_with_their_addresses() {
        let listener = crate::listen("127.0.0.1", 0..=0).unwrap();
        let mut acceptor = Acceptor::new(listener).unwrap();
        let address = acceptor.local_addr().unwrap();
        for _ in 0..2 {
            let client = net::TcpStream::connect(address).unwrap();
            let (socket, peer) = acceptor.accept().await;
            assert_eq!(peer, client.local_addr().unwrap());
            assert_eq!(socket.local_addr().unwrap(), address);
        }
    }
}

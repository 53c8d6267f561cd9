use super::connect::open_any;
use super::{TcpStream, WebSocket, bisync, receive, send};
use crate::websocket::Upgrade;
use crate::{ConnectOptions, Deadline, Step, TransportError, WebSocketAddress};

#[bisync]
impl WebSocket {
    /// Connects to `address` as a client, and makes a WebSocket of the connection.
    ///
    /// # Errors
    /// The host cannot be reached, it refuses to make a WebSocket or does not know how, or one of the
    /// time limits passes: that for connecting, or that for a handshake.
    pub async fn connect(
        address: &WebSocketAddress,
        options: &ConnectOptions,
    ) -> Result<Self, TransportError> {
        let peer = address.to_string();
        let mut socket = open_any(address.address(), &peer, options).await?;
        let unread = upgrade(&mut socket, address, &peer, options).await?;
        tracing::debug!(peer, "the connection is a WebSocket");
        Ok(Self::opened(socket, &unread))
    }
}

/// Gives what came behind the handshake.
#[bisync]
async fn upgrade(
    socket: &mut TcpStream,
    address: &WebSocketAddress,
    peer: &str,
    options: &ConnectOptions,
) -> Result<Vec<u8>, TransportError> {
    let deadline = Deadline::total(Step::Handshake, Some(options.handshake_timeout));
    let (mut upgrade, request) = Upgrade::new(address);
    send(socket, request.as_bytes(), &deadline, peer).await?;
    let mut input = [0; 1024];
    loop {
        let count = receive(socket, &mut input, &deadline, peer).await?;
        if count == 0 {
            return Err(deadline.closed(peer));
        }
        let progress = upgrade.receive(&input[..count]);
        let done = progress.map_err(|source| TransportError::Upgrade {
            peer: peer.to_owned(),
            source,
        })?;
        if let Some(unread) = done {
            return Ok(unread);
        }
    }
}

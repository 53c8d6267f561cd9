use std::time::Duration;

use rpc_proto::Limits;
use rpc_proto::handshake::Introduction;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::{Deadline, Step, TransportError};

/// Waits until the peer that a listener accepted says who it is, and gives its whole key: `client:KEY`
/// of a client, to be answered with [`put_accept`](rpc_proto::handshake::put_accept) or
/// [`put_refuse`](rpc_proto::handshake::put_refuse). Nothing is read beyond it, so that the socket can
/// be handed on.
///
/// # Errors
/// The peer says something else, closes the connection, or takes longer than `allowed`.
pub async fn introduction(
    socket: &mut TcpStream,
    limits: Limits,
    allowed: Duration,
) -> Result<String, TransportError> {
    let deadline = Deadline::total(Step::Handshake, Some(allowed));
    let peer = match socket.peer_addr() {
        Ok(peer) => peer.to_string(),
        Err(source) => return Err(deadline.lost("a peer", source)),
    };
    match tokio::time::timeout(allowed, read(socket, limits, &deadline, &peer)).await {
        Ok(key) => key,
        Err(_) => Err(deadline.timed_out(&peer)),
    }
}

async fn read(
    socket: &mut TcpStream,
    limits: Limits,
    deadline: &Deadline,
    peer: &str,
) -> Result<String, TransportError> {
    let failed = |source| TransportError::Introduction {
        peer: peer.to_owned(),
        source,
    };
    let mut introduction = Introduction::new(limits);
    let mut input = [0; 512];
    loop {
        let wanted = introduction.needed().min(input.len());
        let came = socket.read(&mut input[..wanted]).await;
        let count = came.map_err(|source| deadline.lost(peer, source))?;
        if count == 0 {
            return Err(match introduction.end() {
                Some(source) => failed(source),
                None => deadline.closed(peer),
            });
        }
        if let Some(key) = introduction.receive(&input[..count]).map_err(failed)? {
            return Ok(key);
        }
    }
}

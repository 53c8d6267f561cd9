use super::{Stream, TcpStream};
use crate::socket::configure;
use crate::{ConnectOptions, Deadline, Step, TransportError};

/// A stream on a socket that a listener accepted, with the options of one that [`connect`] opened.
///
/// [`connect`]: super::super::connect
///
/// # Errors
/// The peer has gone already.
pub fn accepted(socket: TcpStream, options: &ConnectOptions) -> Result<Stream, TransportError> {
    let lost = |source| Deadline::each_wait(Step::Handshake, None).lost("a peer", source);
    let peer = socket.peer_addr().map_err(lost)?.to_string();
    configure(&socket, options.keep_alive).map_err(lost)?;
    Ok(Stream::tcp(socket, peer))
}

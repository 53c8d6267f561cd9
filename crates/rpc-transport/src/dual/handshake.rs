use rpc_proto::handshake::{Accepted, Handshake, HandshakeError};

use super::{Stream, bisync};
use crate::{ConnectOptions, Deadline, Step, TransportError};

/// Introduces us to the server or proxy at the other end of `stream`, with `key` as a
/// [`SessionKey`](rpc_proto::handshake::SessionKey) prints it, and waits for the answer.
/// Nothing is read beyond it. After that the stream has no deadline.
///
/// # Errors
/// The key is too long, the peer refuses it or is no server, the stream fails, or
/// [`ConnectOptions::handshake_timeout`] passes.
#[bisync]
pub async fn handshake(
    stream: &mut Stream,
    key: &str,
    options: &ConnectOptions,
) -> Result<Accepted, TransportError> {
    stream.set_deadline(Deadline::total(
        Step::Handshake,
        Some(options.handshake_timeout),
    ));
    let mut out = Vec::new();
    let started = Handshake::new(key, options.limits, &mut out);
    let mut handshake = started.map_err(|source| TransportError::Key {
        peer: stream.peer().to_owned(),
        source,
    })?;
    match stream.write_all(&out, &[]).await {
        // What the peer said before it closed the connection tells more.
        Err(error) if error.is_reset() => {}
        written => written?,
    }

    let failed = |stream: &Stream, source: HandshakeError| TransportError::Handshake {
        peer: stream.peer().to_owned(),
        source,
    };
    let mut input = [0; 512];
    loop {
        let wanted = handshake.needed().min(input.len());
        let count = match stream.read(&mut input[..wanted]).await {
            // The end of the stream, by a peer that did not read all of our key.
            Err(error) if error.is_reset() => 0,
            read => read?,
        };
        if count == 0 {
            return Err(failed(stream, handshake.end()));
        }
        let progress = handshake.receive(&input[..count]);
        if let Some(accepted) = progress.map_err(|error| failed(stream, error))?.accepted {
            stream.set_deadline(Deadline::each_wait(Step::Reply, None));
            return Ok(accepted);
        }
    }
}

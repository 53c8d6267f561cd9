//! The handshake, with peers that answer anything.

use std::io::Write;
use std::time::Duration;

use rpc_proto::Limits;
use rpc_proto::handshake::{Accepted, HandshakeError};
use rpc_transport::{Step, TransportError};

use super::{bisync, twin, twin_test};
use crate::peer::{
    SHORT, assert_silence, assert_silence_for, chain, drip, options, read_hello, serve,
    wait_for_end,
};

const KEY: &str = "client:x1:0.25";
const ACCEPTED: &[u8] = b"\x71\xf2\x0f\x00\x09\x00\x00\x00server:x1";

/// The handshake with a peer that answers `answer` and closes.
#[bisync]
async fn attempt(answer: &'static [u8]) -> Result<Accepted, TransportError> {
    let (address, peer) = serve(move |mut stream| {
        read_hello(&mut stream, KEY);
        stream.write_all(answer).unwrap();
    });
    let mut stream = twin::connect(&address, &options()).await.unwrap();
    let result = twin::handshake(&mut stream, KEY, &options()).await;
    peer.join().unwrap();
    result
}

#[bisync]
#[twin_test]
async fn nothing_is_read_beyond_the_answer() {
    let (address, peer) = serve(|mut stream| {
        read_hello(&mut stream, KEY);
        stream.write_all(&[ACCEPTED, b"packet"].concat()).unwrap();
    });
    let mut stream = twin::connect(&address, &options()).await.unwrap();
    let accepted = twin::handshake(&mut stream, KEY, &options()).await.unwrap();
    assert_eq!(accepted.key, "server:x1");
    peer.join().unwrap();
    let mut behind = [0; 64];
    let count = stream.read(&mut behind).await.unwrap();
    assert_eq!(&behind[..count], b"packet");
}

#[bisync]
#[twin_test]
async fn an_answer_byte_by_byte_and_a_key_longer_than_any_buffer() {
    let (address, peer) = serve(|mut stream| {
        read_hello(&mut stream, KEY);
        drip(&mut stream, b"\x71\xf2\x0f\x00\xb8\x0b\x00\x00");
        stream.write_all(&[b'k'; 3000]).unwrap();
        drip(&mut stream, b"packet");
        wait_for_end(&mut stream);
    });
    let mut stream = twin::connect(&address, &options()).await.unwrap();
    let accepted = twin::handshake(&mut stream, KEY, &options()).await.unwrap();
    assert_eq!(accepted.key, "k".repeat(3000));
    let mut incoming = twin::Incoming::default();
    let mut reader = super::framing::reader(stream);
    incoming.fill(&mut reader, 6).await.unwrap();
    assert_eq!(incoming.bytes(), b"packet");
    drop(reader);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_peer_that_closes_early() {
    for (sent, told) in [
        (0, "0 of 4"),
        (1, "1 of 4"),
        (3, "3 of 4"),
        (4, "4 of 8"),
        (5, "5 of 8"),
        (7, "7 of 8"),
        (8, "8 of 17"),
        (16, "16 of 17"),
    ] {
        let error = attempt(&ACCEPTED[..sent]).await.unwrap_err();
        let expected = format!(": server closed during handshake ({told} bytes)");
        assert!(chain(&error).ends_with(&expected), "{}", chain(&error));
        assert!(chain(&error).starts_with("no session at 127.0.0.1:"));
    }
}

/// A peer that closes without reading the key resets the connection.
#[bisync]
#[twin_test]
async fn a_peer_that_resets_the_connection() {
    for sent in [0, 3] {
        let (address, peer) = serve(move |mut stream| {
            let mut first = [0; 1];
            std::io::Read::read_exact(&mut stream, &mut first).unwrap();
            stream.write_all(&ACCEPTED[..sent]).unwrap();
        });
        let mut stream = twin::connect(&address, &options()).await.unwrap();
        let error = twin::handshake(&mut stream, KEY, &options())
            .await
            .unwrap_err();
        peer.join().unwrap();
        let TransportError::Handshake {
            source: HandshakeError::Closed { received, needed },
            ..
        } = error
        else {
            panic!("{}", chain(&error));
        };
        // What came before a reset may be lost with it.
        assert!(received <= sent as u64);
        assert_eq!(needed, 4);
    }
}

#[bisync]
#[twin_test]
async fn refusals() {
    let mismatch = attempt(b"\x73\xf2\x0f\x00").await.unwrap_err();
    assert!(
        matches!(
            &mismatch,
            TransportError::Handshake {
                source: HandshakeError::Mismatch,
                ..
            }
        ),
        "{mismatch:?}"
    );
    let duplicate = attempt(b"\x72\xf2\x0f\x00").await.unwrap_err();
    assert!(
        matches!(
            &duplicate,
            TransportError::Handshake {
                source: HandshakeError::Duplicate,
                ..
            }
        ),
        "{duplicate:?}"
    );
}

#[bisync]
#[twin_test]
async fn peers_that_are_no_servers() {
    for (answer, told) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "not a TVM RPC server: answered with bytes 48 54 54 50",
        ),
        (b"\x71\xf2\x02\x00", "this is a tracker"),
        (
            b"SSH-2.0-OpenSSH_9.6\r\n",
            "not a TVM RPC server: answered with bytes 53 53 48 2d",
        ),
        (
            b"\x71\xf2\x0f\x00\xff\xff\xff\xff",
            "the server's answer to the handshake is wrong",
        ),
        (
            b"\x71\xf2\x0f\x00\x01\x10\x00\x00",
            "the server's answer to the handshake is wrong",
        ),
    ] {
        let error = attempt(answer).await.unwrap_err();
        assert!(chain(&error).contains(told), "{}", chain(&error));
        assert!(matches!(error, TransportError::Handshake { .. }));
    }
}

#[bisync]
#[twin_test]
async fn a_silent_peer_is_given_up_in_time() {
    // Silent from the beginning, and in the middle of its answer.
    for sent in [0, 6] {
        let (address, peer) = serve(move |mut stream| {
            read_hello(&mut stream, KEY);
            stream.write_all(&ACCEPTED[..sent]).unwrap();
            wait_for_end(&mut stream);
        });
        let mut stream = twin::connect(&address, &options()).await.unwrap();
        let options = options().with_handshake_timeout(SHORT);
        let error = twin::handshake(&mut stream, KEY, &options)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("gave up on {address} after 100ms of shaking hands")
        );
        assert!(matches!(
            error,
            TransportError::TimedOut {
                step: Step::Handshake,
                allowed: SHORT,
                ..
            }
        ));
        drop(stream);
        peer.join().unwrap();
    }
}

/// The time for a handshake is not that of the session behind it.
#[bisync]
#[twin_test]
async fn the_limit_ends_with_the_handshake() {
    const LIMIT: Duration = Duration::from_secs(3);
    let (address, peer) = serve(|mut stream| {
        read_hello(&mut stream, KEY);
        stream.write_all(ACCEPTED).unwrap();
        assert_silence_for(&mut stream, LIMIT + 5 * SHORT);
        stream.write_all(b"packet").unwrap();
    });
    let options = options().with_handshake_timeout(LIMIT);
    let mut stream = twin::connect(&address, &options).await.unwrap();
    twin::handshake(&mut stream, KEY, &options).await.unwrap();
    let mut packet = [0; 6];
    assert_eq!(stream.read(&mut packet).await.unwrap(), 6);
    drop(stream);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_limit_far_away_is_none() {
    let (address, peer) = serve(|mut stream| {
        read_hello(&mut stream, KEY);
        stream.write_all(ACCEPTED).unwrap();
    });
    let options = options().with_handshake_timeout(Duration::MAX);
    let mut stream = twin::connect(&address, &options).await.unwrap();
    twin::handshake(&mut stream, KEY, &options).await.unwrap();
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_key_over_the_limit_is_not_sent() {
    let (address, peer) = serve(|mut stream| assert_silence(&mut stream));
    let options = options().with_limits(Limits::default().with_key(13));
    let mut stream = twin::connect(&address, &options).await.unwrap();
    let error = twin::handshake(&mut stream, KEY, &options)
        .await
        .unwrap_err();
    assert_eq!(
        chain(&error),
        format!(
            "the key cannot be sent to {address}: length of the key is 14, more than the limit of 13"
        )
    );
    peer.join().unwrap();
}

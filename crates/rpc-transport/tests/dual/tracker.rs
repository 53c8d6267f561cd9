//! A conversation with a tracker.

use std::io::{Read, Write};
use std::net::TcpStream;

use rpc_proto::Limits;
use rpc_proto::tracker::{Reply, Request};
use rpc_transport::{Deadline, Step, TransportError};

use super::{bisync, only_async, only_sync, twin, twin_test};
use crate::mock::Mock;
use crate::peer::{
    LONG, SHORT, assert_silence, chain, drip, options, read_exact, serve, wait_for_end,
};

const MAGIC: &[u8] = b"\x71\xf2\x02\x00";
const PING: &[u8] = b"\x03\x00\x00\x00[1]";
const DONE: &[u8] = b"\x01\x00\x00\x000";

fn deadline() -> Deadline {
    Deadline::total(Step::TrackerAnswer, Some(LONG))
}

/// As the reference's tracker, whose first read has to return the magic and nothing else.
fn greet(stream: &mut TcpStream) {
    let mut first = [0; 64];
    let count = stream.read(&mut first).unwrap();
    assert_eq!(&first[..count], MAGIC);
    assert_silence(stream);
    stream.write_all(MAGIC).unwrap();
}

/// What a tracker that greets and then does `behave` makes of a ping.
#[bisync]
async fn ping(
    behave: impl FnOnce(&mut TcpStream) + Send + 'static,
) -> Result<Reply, TransportError> {
    let (address, peer) = serve(move |mut stream| {
        greet(&mut stream);
        assert_eq!(read_exact(&mut stream, PING.len()), PING);
        behave(&mut stream);
    });
    let mut tracker = twin::TrackerStream::connect(&address, &options())
        .await
        .unwrap();
    assert_eq!(tracker.peer(), address.to_string());
    let reply = tracker.exchange(&Request::Ping, deadline()).await;
    drop(tracker);
    peer.join().unwrap();
    reply
}

#[bisync]
#[twin_test]
async fn replies_in_any_pieces() {
    let whole = ping(|stream| stream.write_all(DONE).unwrap()).await;
    assert_eq!(whole.unwrap(), Reply::Done);
    let bytes = ping(|stream| drip(stream, DONE)).await;
    assert_eq!(bytes.unwrap(), Reply::Done);
    let two_segments = ping(|stream| {
        stream.write_all(&DONE[..4]).unwrap();
        assert_silence(stream);
        stream.write_all(&DONE[4..]).unwrap();
    })
    .await;
    assert_eq!(two_segments.unwrap(), Reply::Done);
}

#[bisync]
#[twin_test]
async fn one_conversation_has_many_requests() {
    let (address, peer) = serve(|mut stream| {
        greet(&mut stream);
        for _ in 0..3 {
            assert_eq!(read_exact(&mut stream, PING.len()), PING);
            stream.write_all(DONE).unwrap();
        }
        wait_for_end(&mut stream);
    });
    let mut tracker = twin::TrackerStream::connect(&address, &options())
        .await
        .unwrap();
    for _ in 0..3 {
        let reply = tracker.exchange(&Request::Ping, deadline()).await;
        assert_eq!(reply.unwrap(), Reply::Done);
    }
    drop(tracker);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn replies_that_are_none() {
    for (answer, told) in [
        (
            &b""[..],
            "closed the connection instead of replying (0 of 4 bytes)",
        ),
        (
            b"\x01\x00",
            "closed the connection instead of replying (2 of 4 bytes)",
        ),
        (
            b"\x08\x00\x00\x00[0, ",
            "closed the connection instead of replying (8 of 12 bytes)",
        ),
        (
            b"\x02\x00\x00\x00}{",
            "the tracker's reply is wrong: not JSON",
        ),
        (b"\x00\x00\x00\x00", "the tracker's reply is wrong: "),
        (b"\xff\xff\xff\xff", "the tracker's reply is wrong: "),
        (b"\x01\x00\x00\x01", "the tracker's reply is wrong: "),
        (b"\x01\x00\x00\x0000", "sent 1 bytes that nobody asked for"),
    ] {
        let reply = ping(move |stream| stream.write_all(answer).unwrap()).await;
        let error = reply.unwrap_err();
        assert!(matches!(error, TransportError::Tracker { .. }), "{error:?}");
        assert!(chain(&error).contains(told), "{}", chain(&error));
        assert!(chain(&error).starts_with("no use of the tracker at 127.0.0.1:"));
    }
}

#[bisync]
#[twin_test]
async fn peers_that_are_no_trackers() {
    for (answer, told) in [
        (
            &b""[..],
            "not an RPC tracker: closed the connection after 0 of the 4 bytes",
        ),
        (
            b"\x71\xf2",
            "not an RPC tracker: closed the connection after 2 of the 4 bytes",
        ),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "not an RPC tracker: answered with bytes 48 54",
        ),
        (b"\x71\xf2\x0f\x00", "this is an RPC server or proxy"),
    ] {
        let (address, peer) = serve(move |mut stream| {
            assert_eq!(read_exact(&mut stream, 4), MAGIC);
            stream.write_all(answer).unwrap();
        });
        let greeted = twin::TrackerStream::connect(&address, &options()).await;
        let error = greeted.unwrap_err();
        assert!(chain(&error).contains(told), "{}", chain(&error));
        peer.join().unwrap();
    }
}

/// A peer that closes with the greeting unread resets the connection.
#[bisync]
#[twin_test]
async fn a_peer_that_resets_the_connection() {
    let (address, peer) = serve(|mut stream| {
        read_exact(&mut stream, 1);
    });
    let greeted = twin::TrackerStream::connect(&address, &options()).await;
    let error = greeted.unwrap_err();
    let told = "not an RPC tracker: closed the connection after 0 of the 4 bytes";
    assert!(chain(&error).contains(told), "{}", chain(&error));
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_silent_tracker_is_given_up_in_time() {
    let (address, peer) = serve(|mut stream| {
        assert_eq!(read_exact(&mut stream, 4), MAGIC);
        wait_for_end(&mut stream);
    });
    let short = options().with_handshake_timeout(SHORT);
    let greeted = twin::TrackerStream::connect(&address, &short).await;
    assert_eq!(
        greeted.unwrap_err().to_string(),
        format!("gave up on {address} after 100ms of shaking hands")
    );
    peer.join().unwrap();

    let (address, peer) = serve(|mut stream| {
        greet(&mut stream);
        wait_for_end(&mut stream);
    });
    let mut tracker = twin::TrackerStream::connect(&address, &options())
        .await
        .unwrap();
    let deadline = Deadline::total(Step::WaitForDevice, Some(SHORT));
    let error = tracker.exchange(&Request::Ping, deadline).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("gave up on {address} after 100ms of waiting for a free device")
    );
    drop(tracker);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_request_over_the_limit_is_not_sent() {
    let mock = Mock::new(&[MAGIC, DONE].concat(), &[4, 5]);
    let small = options().with_limits(Limits::default().with_tracker_frame(3));
    let stream = super::framing::stream(&mock);
    let mut tracker = twin::TrackerStream::greet(stream, &small).await.unwrap();
    let stop_key = "secret".to_owned();
    let error = tracker
        .exchange(&Request::Stop { stop_key }, deadline())
        .await
        .unwrap_err();
    assert!(
        chain(&error).contains("the request cannot be sent"),
        "{}",
        chain(&error)
    );
    assert_eq!(mock.state().writes, [MAGIC]);
    // It is as if it had not been asked for.
    let reply = tracker.exchange(&Request::Ping, deadline()).await;
    assert_eq!(reply.unwrap(), Reply::Done);
    assert_eq!(mock.state().writes, [MAGIC, PING]);
}

#[bisync]
#[twin_test]
async fn a_frame_leaves_in_one_write() {
    let input = [MAGIC, DONE].concat();
    let mock = Mock::new(&input, &[4, 1, 4]);
    let stream = super::framing::stream(&mock);
    let mut tracker = twin::TrackerStream::greet(stream, &options())
        .await
        .unwrap();
    let reply = tracker.exchange(&Request::Ping, deadline()).await;
    assert_eq!(reply.unwrap(), Reply::Done);
    assert_eq!(mock.state().writes, [MAGIC, PING]);
    assert_quick_acks(&mock);
}

/// Before each of the three reads.
#[only_sync]
fn assert_quick_acks(mock: &Mock) {
    assert_eq!(mock.state().quick_acks, 3);
}

/// Only a TCP stream of the async twin has them.
#[only_async]
fn assert_quick_acks(mock: &Mock) {
    assert_eq!(mock.state().quick_acks, 0);
}

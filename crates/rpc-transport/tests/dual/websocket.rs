//! WebSockets to servers of `tungstenite`, and to servers that misbehave.

use std::io::Write;
use std::time::{Duration, Instant};

use rpc_transport::{Deadline, ServerAddress, Step, TransportError};
use tungstenite::Message;

use super::{bisync, twin, twin_test};
use crate::peer::{LONG, SHORT, chain, options, serve, wait_for_end};
use crate::websocket::{read_frame, serve_frames, serve_messages, serve_raw, switch_protocols};

#[bisync]
async fn connect(server: &ServerAddress) -> twin::Stream {
    let connected = twin::connect_server(server, &options()).await;
    connected.unwrap_or_else(|error| panic!("{}", chain(&error)))
}

#[bisync]
async fn refusal(server: &ServerAddress) -> TransportError {
    let connected = twin::connect_server(server, &options()).await;
    connected.map(|_| ()).unwrap_err()
}

#[bisync]
async fn read_all(stream: &mut twin::Stream, bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        let count = stream.read(&mut bytes[filled..]).await.unwrap();
        assert_ne!(count, 0);
        filled += count;
    }
}

/// Says that nothing more is written, and gives what comes after that.
#[super::only_sync]
fn hear_out(mut stream: twin::Stream) -> Vec<u8> {
    stream.shutdown();
    stream.shutdown();
    let mut heard = Vec::new();
    let mut bytes = [0; 100];
    loop {
        match stream.read(&mut bytes).unwrap() {
            0 => break,
            count => heard.extend(&bytes[..count]),
        }
    }
    let error = stream.write_all(b"more", b"").unwrap_err();
    assert!(
        chain(&error).contains("closed for writing"),
        "{}",
        chain(&error)
    );
    heard
}

#[super::only_async]
async fn hear_out(stream: twin::Stream) -> Vec<u8> {
    use tokio::io::AsyncReadExt;

    let (mut reader, mut writer) = stream.into_split();
    writer.shutdown().await.unwrap();
    writer.shutdown().await.unwrap();
    let mut heard = Vec::new();
    reader.read_to_end(&mut heard).await.unwrap();
    let error = writer.write_all(b"more", b"").await.unwrap_err();
    assert!(
        chain(&error).contains("closed for writing"),
        "{}",
        chain(&error)
    );
    heard
}

#[bisync]
#[twin_test]
async fn a_server_by_tcp_is_a_server_too() {
    let (address, peer) = serve(|mut stream| stream.write_all(b"tcp").unwrap());
    let mut stream = connect(&address.clone().into()).await;
    assert_eq!(stream.peer(), address.to_string());
    let mut bytes = [0; 3];
    read_all(&mut stream, &mut bytes).await;
    assert_eq!(&bytes, b"tcp");
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn bytes_go_both_ways_whatever_the_messages() {
    const MUCH: usize = 3 << 20;
    let (server, peer) = serve_messages(|socket| {
        let mut left = 4 + MUCH;
        while left > 0 {
            let Message::Binary(bytes) = socket.read().unwrap() else {
                panic!("expected a binary message");
            };
            // What is written at once is one message, as long as it is short.
            assert!(bytes.len() <= 64 << 10);
            assert_eq!(left > MUCH, bytes.len() == 4);
            left -= bytes.len();
            for piece in bytes.chunks(50_000) {
                socket.send(Message::binary(piece.to_vec())).unwrap();
            }
        }
        assert!(socket.read().unwrap().is_close());
    });
    let mut stream = connect(&server).await;
    assert_eq!(stream.peer(), server.to_string());
    stream.write_all(b"he", b"ad").await.unwrap();
    let mut head = [0; 4];
    read_all(&mut stream, &mut head).await;
    assert_eq!(&head, b"head");
    let large: Vec<u8> = (0..MUCH)
        .map(|index| (index % 251).to_le_bytes()[0])
        .collect();
    let mut back = vec![0; MUCH];
    for (sent, back) in large.chunks(200_000).zip(back.chunks_mut(200_000)) {
        stream.write_all(&sent[..10], &sent[10..]).await.unwrap();
        read_all(&mut stream, back).await;
    }
    assert!(back == large);
    assert_eq!(hear_out(stream).await, b"");
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn who_stops_writing_still_hears_the_peer() {
    let (server, peer) = serve_frames(|stream| {
        assert_eq!(read_frame(stream), (0x82, b"bye".to_vec()));
        assert_eq!(read_frame(stream), (0x88, vec![0x03, 0xe8]));
        stream.write_all(b"\x82\x08one more").unwrap();
        stream.write_all(b"\x88\x02\x03\xe8").unwrap();
        wait_for_end(stream);
    });
    let mut stream = connect(&server).await;
    stream.write_all(b"bye", b"").await.unwrap();
    assert_eq!(hear_out(stream).await, b"one more");
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn the_peer_s_close_is_answered_and_the_end() {
    let (server, peer) = serve_messages(|socket| {
        socket.send(Message::binary(&b"last"[..])).unwrap();
        socket.close(None).unwrap();
        while socket.read().is_ok() {}
        assert!(!socket.can_read(), "the close is answered");
    });
    let mut stream = connect(&server).await;
    let mut bytes = [0; 10];
    assert_eq!(stream.read(&mut bytes).await.unwrap(), 4);
    assert_eq!(stream.read(&mut bytes).await.unwrap(), 0);
    assert_eq!(stream.read(&mut bytes).await.unwrap(), 0);
    drop(stream);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn pings_inside_of_a_message_are_answered() {
    let (server, peer) = serve_frames(|stream| {
        stream
            .write_all(b"\x02\x02on\x89\x06there?\x80\x01e")
            .unwrap();
        assert_eq!(read_frame(stream), (0x8a, b"there?".to_vec()));
        wait_for_end(stream);
    });
    let mut stream = connect(&server).await;
    let mut bytes = [0; 3];
    read_all(&mut stream, &mut bytes).await;
    assert_eq!(&bytes, b"one");
    drop(stream);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_text_message_is_refused() {
    let (server, peer) = serve_messages(|socket| {
        socket.send(Message::text("hello")).unwrap();
        let Message::Close(Some(close)) = socket.read().unwrap() else {
            panic!("expected a close frame with a reason");
        };
        assert_eq!(u16::from(close.code), 1003);
        assert_eq!(
            close.reason,
            "expected binary messages, found a text message"
        );
    });
    let mut stream = connect(&server).await;
    stream.set_deadline(Deadline::each_wait(Step::Reply, Some(LONG)));
    let error = stream.read(&mut [0; 10]).await.unwrap_err();
    assert_eq!(
        chain(&error),
        format!(
            "lost {server} while waiting for a reply: expected binary messages, found a text message"
        )
    );
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_frame_of_a_gib_comes_as_it_comes() {
    let (server, peer) = serve_frames(|stream| {
        let head = [&[0x82, 127][..], &(1_u64 << 30).to_be_bytes()].concat();
        stream.write_all(&head).unwrap();
        stream.write_all(b"the begin").unwrap();
        wait_for_end(stream);
    });
    let mut stream = connect(&server).await;
    let mut bytes = [0; 9];
    read_all(&mut stream, &mut bytes).await;
    assert_eq!(&bytes, b"the begin");
    drop(stream);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn what_comes_with_the_handshake_is_not_lost() {
    let (server, peer) = serve_raw(|mut stream| {
        let answer = switch_protocols(&mut stream);
        let frames = [&b"\x82\x05early\x82\x7e\x27\x10"[..], &[7; 10_000]].concat();
        stream.write_all(&[answer, frames].concat()).unwrap();
        wait_for_end(&mut stream);
    });
    let mut stream = connect(&server).await;
    let mut bytes = [0; 10_005];
    read_all(&mut stream, &mut bytes).await;
    assert_eq!(&bytes[..5], b"early");
    assert!(bytes[5..].iter().all(|&byte| byte == 7));
    drop(stream);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_host_that_makes_no_websocket_is_named_with_what_it_said() {
    for (answer, told) in [
        (
            &b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..],
            "expected the status 101 Switching Protocols, found 404 Not Found",
        ),
        (
            b"\x72\xf2\x0f\x00",
            "expected an answer of HTTP, found \"r\u{fffd}\\u{f}\\0\"",
        ),
    ] {
        let (server, peer) = serve_raw(move |mut stream| {
            switch_protocols(&mut stream);
            stream.write_all(answer).unwrap();
        });
        let error = refusal(&server).await;
        assert!(matches!(error, TransportError::Upgrade { .. }), "{error:?}");
        assert_eq!(chain(&error), format!("no WebSocket at {server}: {told}"));
        peer.join().unwrap();
    }
}

#[bisync]
#[twin_test]
async fn a_host_that_says_nothing_or_leaves_costs_the_time_that_it_may() {
    for allowed in [SHORT, Duration::ZERO] {
        let (server, peer) = serve_raw(|mut stream| wait_for_end(&mut stream));
        let hasty = options().with_handshake_timeout(allowed);
        let connected = twin::connect_server(&server, &hasty).await;
        let error = connected.map(|_| ()).unwrap_err();
        assert_eq!(
            chain(&error),
            format!("gave up on {server} after {allowed:?} of shaking hands")
        );
        peer.join().unwrap();
    }

    let (server, peer) = serve_raw(|mut stream| drop(switch_protocols(&mut stream)));
    let error = refusal(&server).await;
    assert_eq!(
        chain(&error),
        format!("{server} closed the connection while we were shaking hands")
    );
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn nobody_there() {
    let (server, peer) = serve_raw(drop);
    let _ = refusal(&server).await;
    peer.join().unwrap();
    let error = refusal(&server).await;
    assert!(error.is_refused(), "{}", chain(&error));
    assert_eq!(error.to_string(), format!("cannot connect to {server}"));
}

/// A hop on the way may ping on its own, while the peer has long been silent.
#[bisync]
#[twin_test]
async fn pings_do_not_make_time_longer() {
    let (server, peer) = serve_frames(|stream| {
        while stream.write_all(b"\x89\x00").is_ok() {
            std::thread::sleep(SHORT / 4);
        }
    });
    let mut stream = connect(&server).await;
    for deadline in [
        Deadline::each_wait(Step::Reply, Some(SHORT)),
        Deadline::total(Step::Reply, Some(SHORT)),
    ] {
        let start = Instant::now();
        stream.set_deadline(deadline);
        let error = stream.read(&mut [0; 8]).await.unwrap_err();
        assert!(error.is_timeout(), "{}", chain(&error));
        assert!(start.elapsed() < LONG);
    }
    drop(stream);
    peer.join().unwrap();
}

#[bisync]
#[twin_test]
async fn a_peer_that_does_not_read_costs_the_time_that_it_may() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let (server, peer) = serve_frames(move |_| {
        let _ = wait.recv();
    });
    let mut stream = connect(&server).await;
    let large = vec![0; 64 << 20];
    for deadline in [
        Deadline::total(Step::Send, Some(SHORT)),
        Deadline::each_wait(Step::Send, Some(SHORT)),
    ] {
        stream.set_deadline(deadline);
        let error = stream.write_all(b"head", &large).await.unwrap_err();
        assert!(error.is_timeout(), "{}", chain(&error));
    }
    drop(done);
    peer.join().unwrap();
}

/// What is cut short by the end of the connection is for the protocol in the bytes to judge.
#[bisync]
#[twin_test]
async fn a_connection_that_ends_is_the_end_of_the_stream() {
    for wire in [
        &b""[..],
        b"\x82",
        b"\x82\x03",
        b"\x02\x00",
        b"\x82\x7f\0\0\0\0",
    ] {
        let (server, peer) = serve_frames(|stream| stream.write_all(wire).unwrap());
        let mut stream = connect(&server).await;
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        peer.join().unwrap();
    }
    let (server, peer) = serve_frames(|stream| stream.write_all(b"\x82\x05cut").unwrap());
    let mut stream = connect(&server).await;
    let mut bytes = [0; 20_000];
    assert_eq!(stream.read(&mut bytes).await.unwrap(), 3);
    assert_eq!(stream.read(&mut bytes).await.unwrap(), 0);
    peer.join().unwrap();
}

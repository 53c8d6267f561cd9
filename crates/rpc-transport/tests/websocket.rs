//! The async WebSocket on any connection, as server and as client, with the peers of `tokio-tungstenite`
//! and with peers that misbehave.
#![cfg(all(feature = "async", feature = "websocket"))]
#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::time::Duration;

use rpc_transport::asynchronous::WebSocket;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::time::timeout;

/// No test waits as long for something that ought to happen.
const LONG: Duration = Duration::from_secs(20);

/// A server's end, and the raw other end of a connection that holds `room` bytes on their way.
fn accepted(room: usize) -> (WebSocket<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(room);
    (WebSocket::accepted(ours), theirs)
}

/// A short frame as a client sends it, with a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126);
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

async fn expect(raw: &mut DuplexStream, bytes: &[u8]) {
    let mut came = vec![0; bytes.len()];
    let read = raw.read_exact(&mut came);
    timeout(LONG, read).await.unwrap().unwrap();
    assert_eq!(came, bytes);
}

#[tokio::test]
async fn what_is_written_leaves_at_once_without_a_flush() {
    let (mut ours, mut raw) = accepted(1000);
    ours.write_all(b"now").await.unwrap();
    expect(&mut raw, b"\x82\x03now").await;
    raw.write_all(&frame(0x82, b"and back")).await.unwrap();
    let mut bytes = [0; 8];
    ours.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"and back");
}

#[tokio::test]
async fn a_ping_is_answered_while_reading_waits() {
    let (mut ours, mut raw) = accepted(1000);
    let reading = tokio::spawn(async move {
        let mut bytes = [0; 3];
        ours.read_exact(&mut bytes).await.map(|_| bytes)
    });
    raw.write_all(&frame(0x02, b"o")).await.unwrap();
    raw.write_all(&frame(0x89, b"there?")).await.unwrap();
    expect(&mut raw, b"\x8a\x06there?").await;
    raw.write_all(&frame(0x80, b"ne")).await.unwrap();
    assert_eq!(&reading.await.unwrap().unwrap(), b"one");
}

/// Both halves want to send: the one that writes, and the one that reads and answers. Whoever is asked last
/// by the connection must not be the only one that is woken.
#[tokio::test]
async fn a_half_that_answers_a_ping_does_not_keep_the_other_from_writing() {
    const MUCH: usize = 300_000;
    for pings in [1, 50] {
        let (ours, mut raw) = accepted(64);
        let (mut reader, mut writer) = split(ours);
        let writing = tokio::spawn(async move {
            writer.write_all(&vec![7; MUCH]).await.unwrap();
            writer.flush().await.unwrap();
            writer
        });
        let reading = tokio::spawn(async move {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).await.unwrap();
            bytes
        });
        // The connection is full of what is written by now.
        for _ in 0..pings {
            raw.write_all(&frame(0x89, b"there?")).await.unwrap();
        }
        raw.write_all(&frame(0x82, b"data")).await.unwrap();
        tokio::task::yield_now().await;
        let mut payload = 0;
        let mut answered = false;
        while payload < MUCH || !answered {
            let mut head = [0; 2];
            timeout(LONG, raw.read_exact(&mut head))
                .await
                .unwrap()
                .unwrap();
            let mut length = usize::from(head[1]);
            if length == 126 {
                length = usize::from(raw.read_u16().await.unwrap());
            } else if length == 127 {
                length = usize::try_from(raw.read_u64().await.unwrap()).unwrap();
            }
            let mut bytes = vec![0; length];
            timeout(LONG, raw.read_exact(&mut bytes))
                .await
                .unwrap()
                .unwrap();
            match head[0] {
                0x82 => payload += length,
                first => {
                    assert_eq!((first, &bytes[..]), (0x8a, &b"there?"[..]));
                    answered = true;
                }
            }
        }
        let _writer = timeout(LONG, writing).await.unwrap().unwrap();
        drop(raw);
        let came = timeout(LONG, reading).await.unwrap().unwrap();
        assert_eq!(came, b"data");
    }
}

/// What the connection did not take, a half that reads sends when it can.
#[tokio::test]
async fn reading_sends_what_writing_left() {
    let (ours, mut raw) = accepted(10);
    let (mut reader, mut writer) = split(ours);
    let reading = tokio::spawn(async move { reader.read_u8().await });
    tokio::task::yield_now().await;
    writer.write_all(b"more than ten bytes").await.unwrap();
    expect(&mut raw, b"\x82\x13more than ten bytes").await;
    raw.write_all(&frame(0x82, b"x")).await.unwrap();
    assert_eq!(reading.await.unwrap().unwrap(), b'x');
}

/// Whoever floods us with pings and reads no answer costs no memory, and stops nobody from reading.
#[tokio::test]
async fn answers_that_nobody_reads_keep_no_one() {
    let (mut ours, mut raw) = accepted(100);
    let flooding = tokio::spawn(async move {
        for _ in 0..10_000 {
            raw.write_all(&frame(0x89, &[1; 125])).await.unwrap();
        }
        raw.write_all(&frame(0x82, b"x")).await.unwrap();
        raw
    });
    let came = timeout(LONG, ours.read_u8()).await.unwrap();
    assert_eq!(came.unwrap(), b'x');
    flooding.await.unwrap();
}

#[tokio::test]
async fn a_peer_that_does_not_read_stops_the_writer() {
    let (mut ours, _raw) = accepted(100);
    let mut written = 0;
    // Much more than one frame is not taken.
    while let Ok(count) = timeout(Duration::from_millis(20), ours.write(&[0; 50_000])).await {
        written += count.unwrap();
        assert!(written < 200_000);
    }
    assert!(written > 0);
}

#[tokio::test]
async fn a_close_frame_is_answered_and_the_end() {
    let (mut ours, mut raw) = accepted(1000);
    raw.write_all(&frame(0x82, b"last")).await.unwrap();
    raw.write_all(&frame(0x88, &[0x03, 0xe9])).await.unwrap();
    let mut bytes = Vec::new();
    timeout(LONG, ours.read_to_end(&mut bytes))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(bytes, b"last");
    expect(&mut raw, &[0x88, 2, 0x03, 0xe9]).await;
    let error = ours.write_all(b"more").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    // Both are done, so that the connection can end.
    ours.shutdown().await.unwrap();
    let mut rest = Vec::new();
    timeout(LONG, raw.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn who_shuts_down_can_still_read() {
    let (mut ours, mut raw) = accepted(1000);
    ours.write_all(b"bye").await.unwrap();
    ours.shutdown().await.unwrap();
    ours.shutdown().await.unwrap();
    expect(&mut raw, b"\x82\x03bye\x88\x02\x03\xe8").await;
    raw.write_all(&frame(0x82, b"one more")).await.unwrap();
    raw.write_all(&frame(0x88, &[0x03, 0xe8])).await.unwrap();
    let mut bytes = Vec::new();
    timeout(LONG, ours.read_to_end(&mut bytes))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(bytes, b"one more");
    drop(ours);
    // There is one close frame of ours, however often it was wanted.
    let mut rest = Vec::new();
    raw.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_text_message_is_an_error_and_the_peer_is_told() {
    let (mut ours, mut raw) = accepted(1000);
    raw.write_all(&frame(0x81, b"hello")).await.unwrap();
    for _ in 0..2 {
        let error = ours.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let told = "expected binary messages, found a text message";
        assert_eq!(error.to_string(), told);
    }
    let told = [
        &b"\x88\x30\x03\xeb"[..],
        b"expected binary messages, found a text message",
    ];
    expect(&mut raw, &told.concat()).await;
}

#[tokio::test]
async fn a_read_that_is_dropped_loses_nothing() {
    let (mut ours, mut raw) = accepted(1000);
    let wire = [
        frame(0x02, b"on"),
        frame(0x89, b"there?"),
        frame(0x80, b"etwo"),
    ];
    let mut came: Vec<u8> = Vec::new();
    for byte in wire.concat() {
        raw.write_u8(byte).await.unwrap();
        let mut bytes = [0; 10];
        // Each read but those that find payload is dropped.
        tokio::select! {
            biased;
            read = ours.read(&mut bytes) => came.extend(&bytes[..read.unwrap()]),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(came, b"onetwo");
    expect(&mut raw, b"\x8a\x06there?").await;
}

#[tokio::test]
async fn another_websocket_goes_on_where_one_stops() {
    let wire = [
        frame(0x02, b"one"),
        frame(0x00, b"two"),
        frame(0x80, b"three"),
    ];
    let wire = wire.concat();
    for cut in 1..wire.len() {
        let (mut ours, mut raw) = accepted(1000);
        raw.write_all(&wire[..cut]).await.unwrap();
        let mut came: Vec<u8> = Vec::new();
        let mut byte = [0];
        tokio::select! {
            biased;
            read = ours.read(&mut byte) => came.extend(&byte[..read.unwrap()]),
            () = tokio::task::yield_now() => {}
        }
        // As in another process: the peer is a client, so what was unread is written to a new connection.
        let (_, unread) = ours.into_parts().await.unwrap();
        let (mut ours, mut raw) = accepted(1000);
        raw.write_all(&unread).await.unwrap();
        raw.write_all(&wire[cut..]).await.unwrap();
        drop(raw);
        ours.read_to_end(&mut came).await.unwrap();
        assert_eq!(came, b"onetwothree", "handed over at {cut}");
    }
}

//! Bytes in any portions.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::peer::{GREETING, Peer, Service, frame, within};

fn conversation() -> Vec<u8> {
    let requests = [
        "[1]",
        r#"[3, "k", [9090, "k:0.5"], null]"#,
        "[7]",
        r#"[4, "k", "", 1]"#,
    ];
    let frames = requests.iter().flat_map(|text| frame(text));
    GREETING.iter().copied().chain(frames).collect()
}

async fn is_answered(peer: &mut Peer) {
    assert_eq!(peer.receive(4).await, GREETING);
    for reply in [
        "0",
        "0",
        r#"["k:0.5"]"#,
        r#"[0, ["127.0.0.1", 9090, "k:0.5"]]"#,
    ] {
        assert_eq!(peer.hear().await, reply);
    }
}

#[tokio::test]
async fn a_conversation_may_come_in_one_segment() {
    let service = Service::start().await;
    let mut peer = Peer::connect(service.addr).await;
    peer.send(&conversation()).await;
    is_answered(&mut peer).await;
}

#[tokio::test]
async fn a_conversation_may_be_cut_anywhere() {
    let service = Service::start().await;
    let bytes = conversation();
    for cut in 1..bytes.len() {
        let mut peer = Peer::connect(service.addr).await;
        let (first, second) = bytes.split_at(cut);
        peer.send(first).await;
        // Gives the tracker the chance to see the first part alone.
        tokio::task::yield_now().await;
        peer.send(second).await;
        is_answered(&mut peer).await;
    }
}

#[tokio::test]
async fn a_greeting_may_come_byte_by_byte() {
    let service = Service::start().await;
    let mut peer = Peer::connect(service.addr).await;
    for byte in conversation().chunks(1) {
        peer.send(byte).await;
        tokio::task::yield_now().await;
    }
    is_answered(&mut peer).await;
}

#[tokio::test]
async fn a_frame_may_be_as_large_as_its_limit() {
    let service = Service::start().await;
    let mut peer = service.peer().await;
    let (open, close) = ("[2, \"", "\"]");
    let key = "x".repeat((1 << 20) - open.len() - close.len());
    assert_eq!(peer.ask(&format!("{open}{key}{close}")).await, "-1");
    peer.ping().await;
}

#[tokio::test]
async fn many_requests_may_come_at_once() {
    const COUNT: usize = 20_000;
    let service = Service::start().await;
    let mut peer = service.peer().await;
    let pings = frame("[1]").repeat(COUNT);
    let mut answers = vec![0; frame("0").len() * COUNT];
    let (mut reader, mut writer) = peer.stream.split();
    let exchange =
        async { tokio::try_join!(writer.write_all(&pings), reader.read_exact(&mut answers)) };
    within("all answers", exchange).await.unwrap();
    assert_eq!(answers, frame("0").repeat(COUNT));
}

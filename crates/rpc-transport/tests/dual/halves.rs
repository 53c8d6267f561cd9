//! The halves of a stream, for those who take any reader or writer.

use std::io::IoSlice;

use rpc_transport::{Deadline, Step};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::twin;
use crate::mock::Mock;
use crate::peer::{SHORT, address, chain};

#[tokio::test]
async fn a_reader_reads_what_comes() {
    let mock = Mock::new(b"one two three", &[1, 0, 4]);
    let (mut reader, _writer) = mock.async_stream().into_split();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, b"one two three");
    reader.set_deadline(Deadline::each_wait(Step::Request, None));
    assert_eq!(
        reader.closed().to_string(),
        "mock closed the connection while we were waiting for a request"
    );
    assert_eq!(
        chain(&reader.failed(std::io::Error::other("torn"))),
        "lost mock while waiting for a request: torn"
    );
}

#[tokio::test]
async fn a_writer_writes_some_or_all_and_flushes() {
    let mock = Mock::taking(3);
    let (_reader, mut writer) = mock.async_stream().into_split();
    assert!(AsyncWrite::is_write_vectored(&writer));
    let slices = [IoSlice::new(b"ab"), IoSlice::new(b"cd")];
    assert_eq!(writer.write_vectored(&slices).await.unwrap(), 3);
    AsyncWriteExt::write_all(&mut writer, b"defgh")
        .await
        .unwrap();
    assert_eq!(mock.state().writes, [&b"abc"[..], b"def", b"gh"]);
    writer.set_deadline(Deadline::each_wait(Step::Answer, None));
    assert_eq!(
        chain(&writer.failed(std::io::Error::other("torn"))),
        "lost mock while sending an answer: torn"
    );

    let mock = Mock::buffering(&[], &[1]);
    let (_reader, mut writer) = mock.async_stream().into_split();
    AsyncWriteExt::write_all(&mut writer, b"kept")
        .await
        .unwrap();
    assert!(mock.state().writes.is_empty());
    AsyncWriteExt::flush(&mut writer).await.unwrap();
    assert_eq!(mock.state().writes, [b"kept"]);
}

#[tokio::test]
async fn halves_of_a_socket_do_both_and_end_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = address(listener.local_addr().unwrap());
    let stream = twin::connect(&at, &crate::peer::options()).await.unwrap();
    let (mut peer, _) = listener.accept().await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    assert!(AsyncWrite::is_write_vectored(&writer));
    AsyncWriteExt::write_all(&mut writer, b"there")
        .await
        .unwrap();
    AsyncWriteExt::shutdown(&mut writer).await.unwrap();
    let mut bytes = Vec::new();
    peer.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, b"there");
    // Nothing more is written, but what comes can be read; without a limit.
    reader.set_deadline(Deadline::each_wait(Step::Reply, Some(SHORT)));
    let mut back = [0; 4];
    let answering = async {
        tokio::time::sleep(2 * SHORT).await;
        peer.write_all(b"back").await.unwrap();
    };
    let reading = async {
        AsyncReadExt::read_exact(&mut reader, &mut back)
            .await
            .unwrap()
    };
    tokio::join!(answering, reading);
    assert_eq!(&back, b"back");
}

//! What a stream makes of writes that take less than they were given.

use rpc_transport::{Deadline, Step, TransportError};

use super::{bisync, only_async, only_sync, twin, twin_test};
use crate::mock::Mock;
use crate::peer::{LONG, chain};

#[only_async]
pub(crate) fn stream(mock: &Mock) -> twin::Stream {
    mock.async_stream()
}

#[only_sync]
pub(crate) fn stream(mock: &Mock) -> twin::Stream {
    mock.blocking_stream()
}

/// The half that reads.
#[only_async]
pub(crate) fn reader(stream: twin::Stream) -> twin::Reader {
    stream.into_split().0
}

/// The half that reads, which is the whole.
#[only_sync]
pub(crate) fn reader(stream: twin::Stream) -> twin::Reader {
    stream
}

#[bisync]
#[twin_test]
async fn head_and_payload_leave_in_one_write() {
    for (head, payload) in [
        (&b"head"[..], &b"payload"[..]),
        (b"head", b""),
        (b"", b"payload"),
    ] {
        let mock = Mock::taking(usize::MAX);
        stream(&mock).write_all(head, payload).await.unwrap();
        assert_eq!(mock.state().writes, [[head, payload].concat()]);
    }
}

#[bisync]
#[twin_test]
async fn a_stream_with_a_buffer_is_flushed() {
    let mock = Mock::buffering(&[], &[1]);
    stream(&mock).write_all(b"head", b"payload").await.unwrap();
    assert_eq!(mock.state().writes, [b"headpayload"]);
}

/// For those who write in steps.
#[only_async]
#[tokio::test]
async fn a_writer_flushes_when_it_is_told() {
    let mock = Mock::buffering(&[], &[1]);
    let (_, mut writer) = stream(&mock).into_split();
    assert_eq!(writer.write(b"head", b"payload").await.unwrap(), 11);
    assert!(mock.state().writes.is_empty());
    writer.flush().await.unwrap();
    assert_eq!(mock.state().writes, [b"headpayload"]);
}

#[bisync]
#[twin_test]
async fn nothing_to_write_is_no_write() {
    let mock = Mock::taking(0);
    stream(&mock).write_all(&[], &[]).await.unwrap();
    assert!(mock.state().writes.is_empty());
}

#[bisync]
#[twin_test]
async fn a_write_may_end_anywhere() {
    for (head, payload) in [
        (&b"head"[..], &b"payload"[..]),
        (b"head", b""),
        (b"", b"payload"),
        (b"h", b"p"),
    ] {
        let whole = [head, payload].concat();
        for takes in 1..=whole.len() {
            let mock = Mock::taking(takes);
            stream(&mock).write_all(head, payload).await.unwrap();
            let pieces: Vec<_> = whole.chunks(takes).collect();
            assert_eq!(mock.state().writes, pieces, "{takes} at a time");
        }
    }
}

#[bisync]
#[twin_test]
async fn a_stream_that_takes_nothing_is_lost() {
    let mock = Mock::taking(0);
    let mut stream = stream(&mock);
    stream.set_deadline(Deadline::total(Step::Send, Some(LONG)));
    let error = stream.write_all(b"head", b"payload").await.unwrap_err();
    let TransportError::Io { peer, step, source } = error else {
        panic!("{}", chain(&error));
    };
    assert_eq!((peer.as_str(), step), ("mock", Step::Send));
    assert_eq!(source.kind(), std::io::ErrorKind::WriteZero);
}

#[bisync]
#[twin_test]
async fn the_end_of_a_stream_is_no_error() {
    let mock = Mock::new(b"abc", &[2, 0]);
    let mut stream = stream(&mock);
    let mut target = [0; 8];
    assert_eq!(stream.read(&mut target).await.unwrap(), 2);
    assert_eq!(&target[..2], b"ab");
    assert_eq!(stream.read(&mut target).await.unwrap(), 1);
    assert_eq!(stream.read(&mut target).await.unwrap(), 0);
}

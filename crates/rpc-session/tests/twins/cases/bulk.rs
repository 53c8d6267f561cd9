//! Large results of calls.

use rpc_proto::Returned;

use super::session::{finish, open};
use super::{Output, bisync, twin_test};
use crate::support::Server;
use crate::support::talk::encoded_returned;

const FUNCTION: u64 = 10;
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn bytes(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}

fn text(count: usize) -> String {
    "abcdefghijklmnopqrstuvwxyz+"
        .chars()
        .cycle()
        .take(count)
        .collect()
}

/// Results of `sizes`, as text and as bytes, in pieces of `chunk` bytes, several at once.
#[bisync]
async fn come_whole(sizes: &'static [usize], chunk: usize) {
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        talk.chunk = chunk;
        for &size in sizes {
            talk.called(FUNCTION, []);
            talk.value(text(size));
            talk.called(FUNCTION, []);
            talk.value(bytes(size));
        }
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    for &size in sizes {
        let Output::Str(received) = function.call(&[]).await.unwrap() else {
            panic!("no text");
        };
        assert!(received == text(size), "{size}");
        let Output::Bytes(received) = function.call(&[]).await.unwrap() else {
            panic!("no bytes");
        };
        assert!(received == bytes(size), "{size}");
    }
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn results_of_any_size_come_whole() {
    // At 64 KiB a result becomes a payload; the head takes some bytes of that.
    const SIZES: &[usize] = &[
        0,
        1,
        64 * KIB - 45,
        64 * KIB - 44,
        64 * KIB - 43,
        64 * KIB - 40,
        64 * KIB - 36,
        64 * KIB,
        64 * KIB + 1,
        256 * KIB + 1,
        MIB,
        5 * MIB,
    ];
    come_whole(SIZES, 0).await;
    come_whole(SIZES, 1000).await;
}

#[bisync]
#[twin_test]
async fn results_come_whole_byte_by_byte() {
    come_whole(&[3, 64 * KIB - 44, 64 * KIB + 1], 1).await;
}

#[bisync]
#[twin_test]
async fn what_comes_together_with_a_large_result_is_not_lost() {
    // Reply to the first call and reply to the second in one segment, the second before its request.
    let server = Server::start(move |talk| {
        talk.function("f", FUNCTION);
        talk.called(FUNCTION, []);
        let large = encoded_returned(&Returned::Value(bytes(100_000).into()));
        // The empty packet behind it is part of the same write.
        talk.send(&[&large[..], &[0; 8]].concat());
        talk.called(FUNCTION, []);
        talk.value(7);
        talk.goodbye();
    });
    let session = open(&server).await;
    let function = session.function("f").await.unwrap();
    let large: Vec<u8> = function.call(&[]).await.unwrap().try_into().unwrap();
    assert!(large == bytes(100_000));
    let small: i64 = function.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(small, 7);
    session.close().await;
    finish(server).await;
}

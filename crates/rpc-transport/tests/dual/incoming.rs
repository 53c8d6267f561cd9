//! Packets as they come in.

use rpc_transport::{Deadline, Step, TransportError};

use super::framing::{reader, stream};
use super::{bisync, twin, twin_test};
use crate::mock::Mock;
use crate::peer::chain;

/// Bytes of which each place has its own, as far as a byte can.
fn bytes(count: usize) -> Vec<u8> {
    (0..count)
        .map(|at| u8::try_from((at * 7 + at / 251) % 251).unwrap())
        .collect()
}

/// Pieces of one byte, of the sizes of nothing in particular (0 is an interruption), and all at once.
const PIECES: [&[usize]; 3] = [
    &[1],
    &[3, 1, 0, 700, 13, 2, 5000, 0, 0, 1, 89],
    &[usize::MAX],
];

fn assert_closed(error: &TransportError) {
    let TransportError::Closed { peer, step } = error else {
        panic!("{}", chain(error));
    };
    assert_eq!((peer.as_str(), *step), ("mock", Step::Reply));
}

/// Small packets, payloads taken and payloads skipped, in turns.
#[bisync]
#[twin_test]
async fn all_arrives_in_order_in_any_pieces() {
    let input = bytes(100_000);
    for pieces in PIECES {
        let mock = Mock::new(&input, pieces);
        let mut reader = reader(stream(&mock));
        let mut incoming = twin::Incoming::default();
        let mut rest = &input[..];
        for size in (0..).map(|turn| [1, 8, 200, 4000, 20_000, 0][turn % 6]) {
            if rest.len() < 3 * size {
                break;
            }
            incoming.fill(&mut reader, size).await.unwrap();
            assert!(incoming.bytes().len() >= size);
            assert_eq!(incoming.bytes()[..size], rest[..size]);
            incoming.consume(size);
            let mut target = vec![0; size];
            incoming
                .read_payload(&mut reader, &mut target)
                .await
                .unwrap();
            assert_eq!(target, rest[size..2 * size]);
            incoming
                .skip_payload(&mut reader, size as u64)
                .await
                .unwrap();
            rest = &rest[3 * size..];
        }
        incoming.fill(&mut reader, rest.len()).await.unwrap();
        assert_eq!(incoming.bytes(), rest);
    }
}

#[bisync]
#[twin_test]
async fn what_is_there_already_is_not_read_again() {
    let mock = Mock::new(b"onetwo", &[6]);
    let mut reader = reader(stream(&mock));
    let mut incoming = twin::Incoming::default();
    incoming.fill(&mut reader, 3).await.unwrap();
    incoming.consume(3);
    incoming.fill(&mut reader, 3).await.unwrap();
    assert_eq!(incoming.bytes(), b"two");
    incoming.fill(&mut reader, 0).await.unwrap();
    assert_eq!(mock.state().targets.len(), 1);
}

#[bisync]
#[twin_test]
async fn a_payload_goes_straight_to_its_target() {
    const HEAD: usize = 8;
    const SIZE: usize = 1 << 20;
    let input = bytes(HEAD + SIZE);
    // With the head come three bytes of the payload.
    let mock = Mock::new(&input, &[HEAD + 3, usize::MAX]);
    let mut reader = reader(stream(&mock));
    let mut incoming = twin::Incoming::default();
    incoming.fill(&mut reader, HEAD).await.unwrap();
    incoming.consume(HEAD);
    let mut target = vec![0; SIZE];
    incoming
        .read_payload(&mut reader, &mut target)
        .await
        .unwrap();
    assert_eq!(target, input[HEAD..]);
    assert_eq!(mock.state().targets, [16 << 10, SIZE - 3]);
}

#[bisync]
#[twin_test]
async fn the_buffer_shrinks_after_a_big_packet() {
    const BIG: usize = 1 << 20;
    let mock = Mock::new(&bytes(BIG + 2), &[usize::MAX]);
    let mut reader = reader(stream(&mock));
    let mut incoming = twin::Incoming::default();
    incoming.fill(&mut reader, BIG).await.unwrap();
    incoming.consume(BIG);
    incoming.fill(&mut reader, 1).await.unwrap();
    assert_eq!(incoming.bytes(), &bytes(BIG + 2)[BIG..]);
    assert_eq!(mock.state().targets.last(), Some(&(16 << 10)));
}

/// A peer may announce as much as it likes.
#[bisync]
#[twin_test]
async fn no_more_is_read_into_than_came_already() {
    let mock = Mock::new(&bytes(100_000), &[usize::MAX]);
    let mut incoming = twin::Incoming::default();
    let filled = incoming.fill(&mut reader(stream(&mock)), 16 << 20).await;
    assert_closed(&filled.unwrap_err());
    let kib = [16, 16, 32, 64].map(|kib| kib << 10);
    assert_eq!(mock.state().targets[..4], kib);
}

#[bisync]
#[twin_test]
async fn some_of_a_payload_is_what_is_there() {
    let mock = Mock::new(b"headpayload", &[6, 2, 3]);
    let mut reader = reader(stream(&mock));
    let mut incoming = twin::Incoming::default();
    incoming.fill(&mut reader, 4).await.unwrap();
    incoming.consume(4);
    let mut target = [0; 64];
    assert_eq!(incoming.read_some(&mut reader, &mut []).await.unwrap(), 0);
    // The rest of a small target stays where it is; the stream is not read for what is buffered.
    for (room, expected) in [
        (1, &b"p"[..]),
        (64, b"a"),
        (0, b""),
        (64, b"yl"),
        (64, b"oad"),
    ] {
        let target = &mut target[..room];
        let count = incoming.read_some(&mut reader, target).await.unwrap();
        assert_eq!(&target[..count], expected);
    }
    let error = incoming.read_some(&mut reader, &mut target).await;
    assert_closed(&error.unwrap_err());
}

/// What was being done is what the deadline says.
#[bisync]
#[twin_test]
async fn the_end_names_the_step() {
    let mut reader = reader(stream(&Mock::new(b"", &[1])));
    reader.set_deadline(Deadline::each_wait(Step::Handshake, None));
    let mut incoming = twin::Incoming::default();
    for error in [
        incoming.fill(&mut reader, 1).await.unwrap_err(),
        incoming.read_some(&mut reader, &mut [0]).await.unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "mock closed the connection while we were shaking hands"
        );
    }
}

#[bisync]
#[twin_test]
async fn a_payload_of_any_size_is_skipped_in_pieces() {
    let mock = Mock::new(&bytes(100_000), &[usize::MAX]);
    let mut reader = reader(stream(&mock));
    let mut incoming = twin::Incoming::default();
    incoming.skip_payload(&mut reader, 99_999).await.unwrap();
    assert_eq!(incoming.bytes(), &bytes(100_000)[99_999..]);
    assert!(
        mock.state()
            .targets
            .iter()
            .all(|&length| length <= 16 << 10)
    );
    let error = incoming
        .skip_payload(&mut reader, u64::MAX)
        .await
        .unwrap_err();
    assert_closed(&error);
}

#[bisync]
#[twin_test]
async fn the_end_in_the_middle() {
    for there in [0, 1, 7] {
        for pieces in PIECES {
            let mock = Mock::new(&bytes(there), pieces);
            let mut incoming = twin::Incoming::default();
            let filled = incoming.fill(&mut reader(stream(&mock)), 8).await;
            assert_closed(&filled.unwrap_err());
            assert_eq!(incoming.bytes(), bytes(there));

            let mock = Mock::new(&bytes(there), pieces);
            let mut incoming = twin::Incoming::default();
            let mut target = [0; 8];
            let read = incoming
                .read_payload(&mut reader(stream(&mock)), &mut target)
                .await;
            assert_closed(&read.unwrap_err());

            let mock = Mock::new(&bytes(there), pieces);
            let mut incoming = twin::Incoming::default();
            let skipped = incoming.skip_payload(&mut reader(stream(&mock)), 8).await;
            assert_closed(&skipped.unwrap_err());
        }
    }
}

//! Copies of all sizes, to and fro and inside a session.

use rpc_proto::{DataType, TensorView};

use super::client::{Client, refused, view};
use super::{Session as _, bisync, twin_test};

const BYTE: DataType = DataType::UINT8;

/// Bytes that differ from place to place and from copy to copy.
fn pattern(nbytes: usize, seed: usize) -> Vec<u8> {
    (0..nbytes)
        .map(|index| ((index * 31) ^ (index >> 8) ^ seed).to_le_bytes()[0])
        .collect()
}

#[bisync]
#[twin_test]
async fn copies_of_any_size_are_exact() {
    let mut client = Client::test();
    // The last is a tensor of 5041 by 720 floats; large and small ones in turn.
    let sizes = [
        0,
        14_518_080,
        1,
        4095,
        14_518_080,
        4096,
        4097,
        1 << 20,
        (1 << 20) + 1,
        3,
        65_536,
    ];
    for (round, size) in sizes.into_iter().enumerate() {
        let there = client.tensor(&[size], BYTE).await;
        let sent = pattern(usize::try_from(size).unwrap(), round);
        client.write(&there, &sent).await.unwrap();
        assert!(client.read_all(&there).await == sent, "{size} bytes differ");
        client
            .session
            .free_data(there.device, there.data)
            .await
            .unwrap();
    }
    assert_eq!(client.session.memory(), 0);
}

#[bisync]
#[twin_test]
async fn parts_are_copied_where_they_are() {
    let mut client = Client::test();
    let there = client.tensor(&[10_000], BYTE).await;
    let mut expected = vec![0; 10_000];
    for (offset, nbytes) in [
        (0, 1),
        (1, 4095),
        (4095, 4097),
        (4096, 1),
        (9_999, 1),
        (17, 0),
        (3, 9_000),
    ] {
        let sent = pattern(nbytes, offset);
        let part = TensorView {
            byte_offset: offset as u64,
            ..there.clone()
        };
        client.write(&part, &sent).await.unwrap();
        expected[offset..offset + nbytes].copy_from_slice(&sent);
        assert_eq!(client.read(&part, nbytes as u64).await.unwrap(), sent);
        // By an address inside, too.
        let inside = view(
            there.data + offset as u64,
            &[nbytes.try_into().unwrap()],
            BYTE,
        );
        assert_eq!(client.read_all(&inside).await, sent);
    }
    assert!(client.read_all(&there).await == expected);
}

#[bisync]
#[twin_test]
async fn more_than_the_tensor_is_not_copied() {
    let mut client = Client::test();
    let there = client.tensor(&[100], BYTE).await;
    let part = view(there.data, &[10], BYTE);
    refused(client.write(&part, &[1; 11]).await, &["11 bytes", "has 10"]);
    refused(client.read(&part, 11).await, &["11 bytes", "has 10"]);
    assert_eq!(client.read_all(&there).await, [0; 100]);
}

#[bisync]
#[twin_test]
async fn data_that_ends_too_early_is_an_exception() {
    let mut client = Client::test();
    let there = client.tensor(&[100], BYTE).await;
    let mut data = &[1; 99][..];
    let short = client.session.copy_to(&there, 100, &mut data).await;
    refused(short, &["100 bytes"]);
    assert_eq!(client.read(&there, 1).await.unwrap(), [1]);
}

#[bisync]
#[twin_test]
async fn copies_inside_a_session() {
    let mut client = Client::test();
    let a = client.tensor(&[1000], BYTE).await;
    let b = client.tensor(&[10, 100], BYTE).await;
    let sent = pattern(1000, 5);
    client.write(&a, &sent).await.unwrap();
    client.session.copy_among(&a, &b, 0).await.unwrap();
    assert_eq!(client.read_all(&b).await, sent);
    client.session.copy_among(&b, &a, 0).await.unwrap();
    client.session.copy_among(&a, &a, 0).await.unwrap();
    assert_eq!(client.read_all(&a).await, sent);

    // Another type of as many bytes.
    let floats = client.tensor(&[125], DataType::FLOAT64).await;
    client.session.copy_among(&a, &floats, 0).await.unwrap();
    assert_eq!(client.read_all(&floats).await, sent);
    let half = client.tensor(&[500], BYTE).await;
    refused(
        client.session.copy_among(&a, &half, 0).await,
        &["1000 bytes", "500"],
    );

    // Where source and target overlap.
    let part = |byte_offset| TensorView {
        byte_offset,
        ..view(a.data, &[900], BYTE)
    };
    for (from, to) in [(0, 100), (100, 0), (1, 0), (0, 1), (50, 50)] {
        client.write(&a, &sent).await.unwrap();
        client
            .session
            .copy_among(&part(from), &part(to), 0)
            .await
            .unwrap();
        let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
        let mut expected = sent.clone();
        expected.copy_within(from..from + 900, to);
        assert_eq!(client.read_all(&a).await, expected);
    }
}

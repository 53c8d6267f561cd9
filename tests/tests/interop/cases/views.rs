//! Views with an offset into the memory of a tensor. The reference's own client reads and writes them
//! at offset 0.

use rpc_proto::DataType;
use rpc_session::{SessionError, args};

use super::bench::{describe, open};
use super::{RemoteSession, Tensor, bisync, case};

/// Eight integers, from 0 to 7.
#[bisync]
async fn eight(session: &RemoteSession) -> Tensor {
    let elements: Vec<i32> = (0..8).collect();
    session.cpu(0).tensor(&[8], &elements).await.unwrap()
}

#[bisync]
#[case]
async fn a_view_reads_its_own_bytes() {
    let session = open().await;
    let whole = eight(&session).await;
    let view = whole.view(&[3], DataType::INT32, 8).unwrap();
    assert_eq!((view.byte_offset(), view.nbytes()), (8, 12));
    assert_eq!(view.to_vec::<i32>().await.unwrap(), [2, 3, 4]);

    let of_view = view.view(&[1, 2], DataType::INT32, 4).unwrap();
    assert_eq!(of_view.byte_offset(), 12);
    assert_eq!(of_view.to_vec::<i32>().await.unwrap(), [3, 4]);

    let bytes = whole.view(&[5], DataType::UINT8, 4).unwrap();
    assert_eq!(bytes.to_vec::<u8>().await.unwrap(), [1, 0, 0, 0, 2]);
}

#[bisync]
#[case]
async fn a_view_writes_its_own_bytes() {
    let session = open().await;
    let whole = eight(&session).await;
    let view = whole.view(&[2], DataType::INT32, 20).unwrap();
    view.copy_from(&[50, 60]).await.unwrap();
    assert_eq!(
        whole.to_vec::<i32>().await.unwrap(),
        [0, 1, 2, 3, 4, 50, 60, 7]
    );
}

#[bisync]
#[case]
async fn a_view_is_an_argument_of_its_own() {
    let session = open().await;
    let whole = eight(&session).await;
    let view = whole.view(&[2, 2], DataType::INT32, 12).unwrap();
    assert_eq!(
        describe(&session, args![&view, &whole]).await,
        "tensor int32 [2, 2] [3, 4, 5, 6]; tensor int32 [8] [0, 1, 2, 3, 4, 5, 6, 7]"
    );
}

#[bisync]
#[case]
async fn views_are_copied_at_the_server() {
    let session = open().await;
    let whole = eight(&session).await;
    let other = session.cpu(0).tensor(&[8], &[-1_i32; 8]).await.unwrap();
    let from = whole.view(&[3], DataType::INT32, 4).unwrap();
    let to = other.view(&[3], DataType::INT32, 16).unwrap();
    from.copy_to(&to).await.unwrap();
    assert_eq!(
        other.to_vec::<i32>().await.unwrap(),
        [-1, -1, -1, -1, 1, 2, 3, -1]
    );
}

#[bisync]
#[case]
async fn a_view_keeps_the_memory() {
    let session = open().await;
    let whole = eight(&session).await;
    let view = whole.view(&[1], DataType::INT32, 28).unwrap();
    drop(whole);
    // Would take the memory of a tensor that was freed.
    let _other = session.cpu(0).tensor(&[8], &[-1_i32; 8]).await.unwrap();
    assert_eq!(view.to_vec::<i32>().await.unwrap(), [7]);
}

#[bisync]
#[case]
async fn a_view_stays_within_the_memory() {
    let session = open().await;
    let whole = eight(&session).await;
    assert!(whole.view(&[8], DataType::INT32, 0).is_ok());
    assert!(whole.view(&[0], DataType::INT32, 32).is_ok());
    for (count, offset) in [(9, 0), (8, 1), (1, 29), (0, 33), (1, u64::MAX), (-1, 0)] {
        let error = whole.view(&[count], DataType::INT32, offset).unwrap_err();
        assert!(matches!(error, SessionError::BadTensor(_)), "{error:?}");
    }
}

//! Tensors from and into arrays.

use ndarray::{Array2, Array3, ArrayD, IxDyn, array, s};
use rpc_proto::{DataType, Packet, Syscall};
use rpc_session::SessionError;

use super::session::{finish, open};
use super::{bisync, twin_test};
use crate::support::{Server, Talk};

/// Holds one tensor, and says what came into it.
fn hold(talk: &mut Talk) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let request = talk.request();
        match request.packet() {
            Packet::Syscall(Syscall::GetGlobalFunc { .. }) => talk.pointer(0),
            Packet::Syscall(Syscall::AllocDataWithScope { .. }) => talk.pointer(0x1000),
            Packet::CopyTo { .. } => {
                data = request.payload().to_vec();
                talk.done();
            }
            Packet::CopyFrom { .. } => {
                let answer = data.clone();
                talk.copy_ack(&answer);
            }
            Packet::Shutdown => return data,
            other => panic!("{other:?}"),
        }
    }
}

#[bisync]
#[twin_test]
async fn arrays_of_any_order_go_there_and_back() {
    let server = Server::start(hold);
    let session = open(&server).await;
    let array = array![[0, 1, 2], [10, 11, 12]];
    let tensor = session.cpu(0).from_ndarray(&array).await.unwrap();
    assert_eq!(tensor.shape(), [2, 3]);
    assert_eq!(tensor.dtype(), DataType::INT32);
    assert_eq!(tensor.to_vec::<i32>().await.unwrap(), [0, 1, 2, 10, 11, 12]);
    assert_eq!(
        tensor.to_ndarray::<i32>().await.unwrap(),
        array.clone().into_dyn()
    );

    // Column by column in memory, and with gaps.
    let wide = array![[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]];
    let transposed = wide.t();
    let part = transposed.slice(s![1..3, ..]);
    tensor.copy_from_ndarray(&part).await.unwrap();
    assert_eq!(
        tensor.to_vec::<i32>().await.unwrap(),
        [1, 11, 21, 2, 12, 22]
    );

    let mut target = ArrayD::<i32>::zeros(IxDyn(&[2, 3]));
    tensor.copy_into_ndarray(target.view_mut()).await.unwrap();
    assert_eq!(target, part.into_dyn());
    let mut target = Array3::<i32>::zeros((2, 3, 2));
    let view = target.slice_mut(s![.., .., 1]).into_dyn();
    tensor.copy_into_ndarray(view).await.unwrap();
    assert_eq!(target.slice(s![.., .., 1]), part);
    assert_eq!(target.slice(s![.., .., 0]), Array2::<i32>::zeros((2, 3)));
    session.close().await;
    finish(server).await;
}

#[bisync]
#[twin_test]
async fn arrays_of_another_shape_or_type_are_refused() {
    let server = Server::start(hold);
    let session = open(&server).await;
    let tensor = session
        .cpu(0)
        .empty(&[2, 3], DataType::INT32)
        .await
        .unwrap();
    let error = tensor
        .copy_from_ndarray(&Array2::<i32>::zeros((3, 2)))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tensor holds the shape [2, 3], but the data is of the shape [3, 2]"
    );
    for error in [
        tensor
            .copy_from_ndarray(&Array2::<f32>::zeros((2, 3)))
            .await,
        tensor
            .copy_into_ndarray(ArrayD::<i32>::zeros(IxDyn(&[6])).view_mut())
            .await,
        tensor.to_ndarray::<i64>().await.map(|_| ()),
    ] {
        assert!(
            matches!(error, Err(SessionError::Mismatch { .. })),
            "{error:?}"
        );
    }
    session.close().await;
    assert!(finish(server).await.is_empty());
}

#[bisync]
#[twin_test]
async fn arrays_of_no_elements_and_of_no_dimensions() {
    let server = Server::start(hold);
    let session = open(&server).await;
    let cpu = session.cpu(0);
    let scalar = cpu.from_ndarray(&ndarray::arr0(7_i64)).await.unwrap();
    assert_eq!(scalar.shape(), [0_i64; 0]);
    assert_eq!(
        scalar.to_ndarray::<i64>().await.unwrap(),
        ndarray::arr0(7).into_dyn()
    );
    let empty = cpu
        .from_ndarray(&Array2::<f64>::zeros((0, 3)))
        .await
        .unwrap();
    assert_eq!(empty.to_ndarray::<f64>().await.unwrap().shape(), [0, 3]);
    session.close().await;
    finish(server).await;
}

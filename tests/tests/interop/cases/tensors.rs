//! Copies to and from tensors of every type, shape and size.

use rpc_proto::DataType;
use rpc_session::{Element, SessionError, args};

use super::bench::{describe, open};
use super::{RemoteSession, bisync, case};
use crate::support::{message, pattern};

/// Copies `nbytes` bytes into a tensor and back, and compares.
#[bisync]
async fn assert_exact(session: &RemoteSession, shape: &[i64], dtype: DataType, bytes: &[u8]) {
    let tensor = session.cpu(0).empty(shape, dtype).await.unwrap();
    assert_eq!(tensor.nbytes(), bytes.len() as u64, "{shape:?} of {dtype}");
    tensor.copy_from_bytes(bytes).await.unwrap();
    let mut back = vec![0; bytes.len()];
    tensor.copy_into_bytes(&mut back).await.unwrap();
    assert!(back == bytes, "{shape:?} of {dtype} came back changed");
}

#[bisync]
async fn assert_exact_elements<T: Element + PartialEq>(session: &RemoteSession, elements: &[T]) {
    let shape = [i64::try_from(elements.len()).unwrap()];
    let tensor = session.cpu(0).tensor(&shape, elements).await.unwrap();
    assert_eq!(tensor.dtype(), T::DTYPE);
    let back: Vec<T> = tensor.to_vec().await.unwrap();
    assert!(back == elements, "{} came back changed", T::DTYPE);
}

#[bisync]
#[case]
async fn bytes_of_every_type_are_copied_exactly() {
    let session = open().await;
    for (dtype, nbytes) in [
        ("int8", 6),
        ("int16", 12),
        ("int32", 24),
        ("int64", 48),
        ("uint8", 6),
        ("uint16", 12),
        ("uint32", 24),
        ("uint64", 48),
        ("float16", 12),
        ("float32", 24),
        ("float64", 48),
        ("bfloat16", 12),
        ("float8_e4m3fn", 6),
        ("float8_e5m2", 6),
        ("float32x4", 96),
        ("int8x16", 96),
        // Packed, two to a byte.
        ("int4", 3),
        ("float4_e2m1fn", 3),
    ] {
        let bytes = pattern(nbytes, 3);
        assert_exact(&session, &[2, 3], dtype.parse().unwrap(), &bytes).await;
    }
    assert_exact(&session, &[6], DataType::BOOL, &[1, 0, 0, 1, 1, 0]).await;
}

#[bisync]
#[case]
async fn elements_are_copied_exactly() {
    let session = open().await;
    assert_exact_elements(&session, &[i8::MIN, -1, 0, i8::MAX]).await;
    assert_exact_elements(&session, &[i16::MIN, -1, 0, i16::MAX]).await;
    assert_exact_elements(&session, &[i32::MIN, -1, 0, i32::MAX]).await;
    assert_exact_elements(&session, &[i64::MIN, -1, 0, i64::MAX]).await;
    assert_exact_elements(&session, &[0, u8::MAX]).await;
    assert_exact_elements(&session, &[0, u16::MAX]).await;
    assert_exact_elements(&session, &[0, u32::MAX]).await;
    assert_exact_elements(&session, &[0, u64::MAX]).await;
    assert_exact_elements(&session, &[f32::MIN, -0.0, 0.1, f32::INFINITY]).await;
    assert_exact_elements(&session, &[f64::MIN, -0.0, 0.1, f64::INFINITY]).await;
}

/// The bytes mean the same at the server.
#[bisync]
#[case]
async fn the_server_reads_the_elements_that_were_written() {
    let session = open().await;
    for (dtype, bytes, expected) in [
        ("bool", &[1, 0][..], "tensor bool [2] [True, False]"),
        ("int16", &[1, 0, 0, 0x80], "tensor int16 [2] [1, -32768]"),
        ("uint16", &[1, 0, 0, 0x80], "tensor uint16 [2] [1, 32768]"),
        (
            "float16",
            &[0, 0x3c, 0, 0xc0],
            "tensor float16 [2] [1.0, -2.0]",
        ),
        (
            "bfloat16",
            &[0x80, 0x3f, 0, 0xc0],
            "tensor bfloat16 [2] [1.0, -2.0]",
        ),
        (
            "float8_e4m3fn",
            &[0x38, 0xc0],
            "tensor float8_e4m3fn [2] [1.0, -2.0]",
        ),
    ] {
        let dtype = dtype.parse().unwrap();
        let tensor = session.cpu(0).empty(&[2], dtype).await.unwrap();
        tensor.copy_from_bytes(bytes).await.unwrap();
        assert_eq!(describe(&session, args![&tensor]).await, expected);
    }
    let lanes = "float32x4".parse().unwrap();
    let tensor = session.cpu(0).empty(&[1], lanes).await.unwrap();
    let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0]
        .iter()
        .flat_map(|lane| lane.to_le_bytes())
        .collect();
    tensor.copy_from_bytes(&bytes).await.unwrap();
    assert_eq!(
        describe(&session, args![&tensor]).await,
        "tensor float32 [1, 4] [1.0, 2.0, 3.0, 4.0]"
    );
}

#[bisync]
#[case]
async fn every_shape_arrives() {
    let session = open().await;
    for (shape, len, expected) in [
        (&[][..], 1, "tensor int32 [] [0]"),
        (&[1], 1, "tensor int32 [1] [0]"),
        (&[0], 0, "tensor int32 [0] []"),
        (&[2, 0, 3], 0, "tensor int32 [2, 0, 3] []"),
        (&[2, 2], 4, "tensor int32 [2, 2] [0, 1, 2, 3]"),
        (&[1, 2, 2], 4, "tensor int32 [1, 2, 2] [0, 1, 2, 3]"),
        (&[2, 1, 2, 1], 4, "tensor int32 [2, 1, 2, 1] [0, 1, 2, 3]"),
        (
            &[1, 2, 1, 1, 2],
            4,
            "tensor int32 [1, 2, 1, 1, 2] [0, 1, 2, 3]",
        ),
    ] {
        let elements: Vec<i32> = (0..len).collect();
        let tensor = session.cpu(0).tensor(shape, &elements).await.unwrap();
        assert_eq!(describe(&session, args![&tensor]).await, expected);
        let back: Vec<i32> = tensor.to_vec().await.unwrap();
        assert_eq!(back, elements);
    }
}

#[bisync]
#[case]
async fn every_size_is_copied_exactly_large_and_small_in_turn() {
    const MIB: usize = 1 << 20;
    let session = open().await;
    for (round, nbytes) in [
        100 * MIB,
        1,
        29 * MIB / 2,
        4095,
        100 * MIB,
        4096,
        29 * MIB / 2,
        4097,
        64 << 10,
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = pattern(nbytes, round as u64);
        let shape = [i64::try_from(nbytes).unwrap()];
        assert_exact(&session, &shape, DataType::UINT8, &bytes).await;
    }
    for round in 0..200 {
        let nbytes = [1, 64 << 10, 4095, 4096, 65, 4097][round % 6];
        let bytes = pattern(nbytes, round as u64);
        let shape = [i64::try_from(nbytes).unwrap()];
        assert_exact(&session, &shape, DataType::UINT8, &bytes).await;
    }
}

/// The array that made the reference's buffer overflow once.
#[bisync]
#[case]
async fn an_array_of_5041_times_720_floats_is_copied_exactly() {
    let session = open().await;
    let bytes = pattern(5041 * 720 * 4, 9);
    assert_exact(&session, &[5041, 720], DataType::FLOAT32, &bytes).await;
}

#[bisync]
#[case]
async fn tensors_are_copied_at_the_server() {
    let session = open().await;
    let from = session
        .cpu(0)
        .tensor(&[4], &[1_i32, 2, 3, 4])
        .await
        .unwrap();
    let to = session.cpu(0).tensor(&[2, 2], &[0_i32; 4]).await.unwrap();
    from.copy_to(&to).await.unwrap();
    assert_eq!(to.to_vec::<i32>().await.unwrap(), [1, 2, 3, 4]);

    let nothing = session.cpu(0).empty(&[0], DataType::INT32).await.unwrap();
    nothing.copy_to(&nothing).await.unwrap();

    let short = session.cpu(0).tensor(&[3], &[0_i32; 3]).await.unwrap();
    let error = from.copy_to(&short).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tensor holds 3 elements of int32, but the data is 16 bytes instead of 12"
    );
    assert_eq!(short.to_vec::<i32>().await.unwrap(), [0; 3]);
}

#[bisync]
#[case]
async fn data_that_does_not_fit_is_refused_here() {
    let session = open().await;
    let tensor = session.cpu(0).tensor(&[3], &[1_i32, 2, 3]).await.unwrap();

    let error = tensor.copy_from(&[0_i32; 4]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tensor holds 3 elements of int32, but the data is 4 elements of int32"
    );
    let error = tensor.copy_from(&[0.0_f32; 3]).await.unwrap_err();
    assert!(matches!(error, SessionError::Mismatch { .. }));
    let error = tensor.copy_into(&mut [0_i32; 2]).await.unwrap_err();
    assert!(matches!(error, SessionError::Mismatch { .. }));
    let error = tensor.to_vec::<u32>().await.unwrap_err();
    assert!(matches!(error, SessionError::Mismatch { .. }));
    let error = tensor.copy_from_bytes(&[0; 11]).await.unwrap_err();
    assert!(matches!(error, SessionError::Mismatch { .. }));
    let error = tensor.copy_into_bytes(&mut [0; 13]).await.unwrap_err();
    assert!(matches!(error, SessionError::Mismatch { .. }));

    let error = session
        .cpu(0)
        .empty(&[2, -1], DataType::INT8)
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::BadTensor(_)), "{error:?}");
    let error = session
        .cpu(0)
        .empty(&[i64::MAX, i64::MAX], DataType::INT8)
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::BadTensor(_)), "{error:?}");

    assert_eq!(tensor.to_vec::<i32>().await.unwrap(), [1, 2, 3]);
}

#[bisync]
#[case]
async fn memory_has_a_scope() {
    let session = open().await;
    let cpu = session.cpu(0);
    for scope in ["", "global"] {
        let tensor = cpu
            .empty_in_scope(&[2], DataType::INT32, scope)
            .await
            .unwrap();
        tensor.copy_from(&[1_i32, 2]).await.unwrap();
        assert_eq!(tensor.to_vec::<i32>().await.unwrap(), [1, 2]);
    }
    let error = cpu
        .empty_in_scope(&[2], DataType::INT32, "global.texture")
        .await
        .unwrap_err();
    assert_eq!(
        message(&error),
        "Device does not support allocate data space with specified memory scope: global.texture"
    );
}

//! Recorded work on devices: memory, copies, streams, attributes.

use rpc_proto::{DataType, Device, DeviceAttr};
use rpc_session::{Element, args};

use super::session::Played;
use super::{bisync, twin_test};

/// A tensor of these elements, there and back.
#[bisync]
async fn there_and_back<T: Element + PartialEq>(played: &Played, shape: &[i64], elements: &[T]) {
    let tensor = played.session.cpu(0).tensor(shape, elements).await.unwrap();
    assert!(tensor.to_vec::<T>().await.unwrap() == elements);
}

#[bisync]
async fn bytes_there_and_back(played: &Played, shape: &[i64], dtype: DataType, bytes: &[u8]) {
    let tensor = played.session.cpu(0).empty(shape, dtype).await.unwrap();
    tensor.copy_from_bytes(bytes).await.unwrap();
    let mut back = vec![0; bytes.len()];
    tensor.copy_into_bytes(&mut back).await.unwrap();
    assert_eq!(back, bytes);
}

#[bisync]
#[twin_test]
async fn tensor_copy() {
    let played = Played::open("session_tensor_copy").await;
    let cpu = played.session.cpu(0);
    there_and_back(&played, &[2, 3], &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]).await;
    there_and_back(&played, &[4], &[0_i8, 1, 2, 3]).await;
    there_and_back(&played, &[], &[7_i64]).await;
    there_and_back::<f64>(&played, &[0, 3], &[]).await;
    bytes_there_and_back(&played, &[3], DataType::BOOL, &[1, 0, 1]).await;
    let halves = [0x00, 0x00, 0x00, 0x3c, 0x00, 0x40];
    bytes_there_and_back(&played, &[3], DataType::FLOAT16, &halves).await;
    there_and_back(&played, &[2], &[0_u64, 1]).await;
    let numbers: Vec<i16> = (0..24).collect();
    there_and_back(&played, &[2, 3, 4], &numbers).await;

    let a = cpu.empty(&[4], DataType::FLOAT32).await.unwrap();
    let b = cpu.empty(&[4], DataType::FLOAT32).await.unwrap();
    a.copy_from(&[1.0_f32, 2.0, 3.0, 4.0]).await.unwrap();
    a.copy_to(&b).await.unwrap();
    for tensor in [&b, &a] {
        assert_eq!(tensor.to_vec::<f32>().await.unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
    let view = a.view(&[2], DataType::FLOAT32, 8).unwrap();
    // What the server was asked for in the recording: the offset was lost.
    assert_eq!(view.to_vec::<f32>().await.unwrap(), [1.0, 2.0]);
    view.copy_from(&[9.0_f32, 8.0]).await.unwrap();
    assert_eq!(a.to_vec::<f32>().await.unwrap(), [9.0, 8.0, 3.0, 4.0]);
    // As an argument, the view has its offset in the recording, too.
    let describe = played.function("golden.describe").await;
    let text = describe.call(args![&view]).await.unwrap();
    assert_eq!(
        String::try_from(text).unwrap(),
        "1:Tensor(float32,[2],[3.0, 4.0])"
    );
    let fill = played.function("golden.fill").await;
    fill.call(args![&a, 5]).await.unwrap();
    assert_eq!(a.to_vec::<f32>().await.unwrap(), [5.0; 4]);

    let vectors = (0..8_u8).flat_map(|number| f32::from(number).to_le_bytes());
    let vectors: Vec<u8> = vectors.collect();
    bytes_there_and_back(&played, &[2], "float32x4".parse().unwrap(), &vectors).await;
    let int4 = cpu.empty(&[4], "int4".parse().unwrap()).await.unwrap();
    assert_eq!(int4.nbytes(), 2);
    let cuda = played.session.device("cuda:0".parse().unwrap());
    let error = cuda.empty(&[4], DataType::FLOAT32).await.unwrap_err();
    let step = "empty on missing device cuda";
    assert_eq!(error.remote().unwrap().text(), played.recording.error(step));
    played.close().await;
}

#[bisync]
#[twin_test]
async fn chunked_copy() {
    let played = Played::open("session_chunked_copy").await;
    let numbers: Vec<f32> = (0..30_u8).map(f32::from).collect();
    there_and_back(&played, &[30], &numbers).await;
    played.close().await;
}

#[bisync]
#[twin_test]
async fn alloc_scope() {
    let played = Played::open("session_alloc_scope").await;
    let cpu = played.session.cpu(0);
    drop(cpu.empty(&[4], DataType::FLOAT32).await.unwrap());
    for scope in ["", "global"] {
        let tensor = cpu.empty_in_scope(&[4], DataType::FLOAT32, scope).await;
        drop(tensor.unwrap());
    }
    let texture = cpu.empty_in_scope(&[4], DataType::FLOAT32, "global.texture");
    let error = texture.await.unwrap_err();
    let recorded = played.recording.error("empty mem_scope='global.texture'");
    assert_eq!(error.remote().unwrap().text(), recorded);
    played.close().await;
}

#[bisync]
#[twin_test]
async fn streams() {
    let played = Played::open("session_streams").await;
    let cpu = played.session.cpu(0);
    cpu.sync().await.unwrap();
    let stream = cpu.create_stream().await.unwrap();
    // Processors have the default stream alone.
    assert!(stream.is(&cpu.default_stream()));
    stream.make_current().await.unwrap();
    stream.sync().await.unwrap();
    drop(stream);
    let cuda = played.session.device("cuda:0".parse().unwrap());
    for (step, error) in [
        (
            "cuda.sync() (missing device)",
            cuda.sync().await.unwrap_err(),
        ),
        (
            "cuda.create_raw_stream (missing)",
            cuda.create_stream().await.unwrap_err(),
        ),
    ] {
        assert_eq!(error.remote().unwrap().text(), played.recording.error(step));
    }
    played.close().await;
}

#[bisync]
#[twin_test]
async fn get_current_stream() {
    let played = Played::open("session_get_current_stream").await;
    let cpu = played.session.cpu(0);
    let current = cpu.current_stream().await.unwrap();
    assert!(current.is(&cpu.default_stream()));
    played.close().await;
}

#[bisync]
#[twin_test]
async fn device_attrs() {
    let played = Played::open("session_device_attrs").await;
    let cpu = played.session.cpu(0);
    // The reference's client does not ask whether there is a processor.
    for attr in [1, 2, 4, 5, 8] {
        let value = cpu.attr(DeviceAttr(attr)).await.unwrap();
        assert_eq!(value, rpc_proto::Value::None);
    }
    let memory = cpu.attr(DeviceAttr(14)).await.unwrap();
    assert_eq!(memory, rpc_proto::Value::Int(25_276_510_208));
    for name in ["cuda", "opencl"] {
        let device: Device = format!("{name}:0").parse().unwrap();
        let device = played.session.device(device);
        assert!(!device.exists().await.unwrap());
        let error = device.attr(DeviceAttr(5)).await.unwrap_err();
        let step = format!("{name}.device_name");
        assert_eq!(
            error.remote().unwrap().text(),
            played.recording.error(&step)
        );
    }
    played.close().await;
}

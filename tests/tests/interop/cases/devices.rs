//! Attributes and streams of devices.

use rpc_proto::{DataType, Device, DeviceAttr, DeviceType, Value};

use super::bench::open;
use super::{bisync, case};
use crate::support::message;

#[bisync]
#[case]
async fn a_server_says_which_devices_it_has() {
    let session = open().await;
    assert!(session.cpu(0).exists().await.unwrap());
    for kind in ["cuda", "opencl", "vulkan", "rocm", "metal"] {
        let device = session.device(kind.parse().unwrap());
        assert!(!device.exists().await.unwrap(), "{kind}");
    }
}

#[bisync]
#[case]
async fn a_processor_has_few_attributes() {
    let session = open().await;
    let cpu = session.cpu(0);
    for attr in [
        DeviceAttr::MAX_THREADS_PER_BLOCK,
        "warp_size".parse().unwrap(),
        "device_name".parse().unwrap(),
        // One that nobody has.
        DeviceAttr(1000),
    ] {
        assert_eq!(cpu.attr(attr).await.unwrap(), Value::None, "{attr:?}");
    }
    const TOTAL_GLOBAL_MEMORY: DeviceAttr = DeviceAttr(14);
    let memory = cpu.attr(TOTAL_GLOBAL_MEMORY).await.unwrap();
    assert!(
        matches!(memory, Value::Int(nbytes) if nbytes > 1 << 20),
        "{memory:?}"
    );
}

#[bisync]
#[case]
async fn what_a_missing_device_cannot_do_is_said_in_the_servers_words() {
    let session = open().await;
    let cuda = session.device("cuda".parse().unwrap());
    let disabled = "Check failed: (allow_missing) is false: Device API cuda is not enabled.";

    let error = cuda
        .attr(DeviceAttr::MAX_THREADS_PER_BLOCK)
        .await
        .unwrap_err();
    assert_eq!(message(&error), disabled);
    let error = cuda.empty(&[1], DataType::INT8).await.unwrap_err();
    assert_eq!(message(&error), disabled);
    let error = cuda.create_stream().await.unwrap_err();
    assert_eq!(message(&error), disabled);

    let unknown = session.device(Device::new(DeviceType(20), 0));
    let error = unknown.exists().await.unwrap_err();
    assert_eq!(message(&error), "unknown type = 20");
    assert!(session.cpu(0).exists().await.unwrap());
}

#[bisync]
#[case]
async fn a_processor_has_the_default_stream_alone() {
    let session = open().await;
    let cpu = session.cpu(0);
    cpu.make_current().await.unwrap();
    cpu.sync().await.unwrap();

    let created = cpu.create_stream().await.unwrap();
    assert!(created.is(&cpu.default_stream()));
    created.make_current().await.unwrap();
    created.sync().await.unwrap();
    assert!(cpu.current_stream().await.unwrap().is(&created));
    drop(created);

    cpu.default_stream().make_current().await.unwrap();
    cpu.sync().await.unwrap();
}

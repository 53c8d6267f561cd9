//! Devices, what they are asked, and their streams.

use rpc_proto::{DataType, Device, DeviceAttr, DeviceType, Value};

use super::client::{Client, refused, view};
use super::{Session as _, bisync, twin_test};

#[bisync]
#[twin_test]
async fn processors_are_there() {
    let mut client = Client::test();
    for id in [0, 5, i32::MAX, -1] {
        let cpu = Device::cpu(id);
        let there = client.session.attr(cpu, DeviceAttr::EXIST).await.unwrap();
        assert_eq!(there, Value::Int(1));
        client.session.set_device(cpu).await.unwrap();
        assert_eq!(client.session.create_stream(cpu).await.unwrap(), 0);
        assert_eq!(client.session.current_stream(cpu).await.unwrap(), 0);
        client.session.set_stream(cpu, 0).await.unwrap();
        client.session.sync_stream(cpu, 0).await.unwrap();
        client.session.free_stream(cpu, 0).await.unwrap();
    }
    for number in [-1, 1, 2, 5, 13, 15, 16, 17, 77, i32::MAX, i32::MIN] {
        let attr = client
            .session
            .attr(Device::cpu(0), DeviceAttr(number))
            .await;
        assert_eq!(attr.unwrap(), Value::None, "{number}");
    }
    let memory = client
        .session
        .attr(Device::cpu(0), DeviceAttr::TOTAL_GLOBAL_MEMORY)
        .await;
    assert!(matches!(memory.unwrap(), Value::Int(1..)));
}

#[bisync]
#[twin_test]
async fn other_devices_are_not() {
    let mut client = Client::test();
    let cpu = client.tensor(&[4], DataType::INT8).await;
    for (number, message) in [
        (2, "Device API cuda is not enabled"),
        (4, "Device API opencl is not enabled"),
        (18, "Device API trn is not enabled"),
        (0, "unknown device type 0"),
        (99, "unknown device type 99"),
        (-1, "unknown device type -1"),
        (i32::MIN, "unknown device type"),
    ] {
        let device = Device::new(DeviceType(number), 0);
        let message = &[message];
        let there = client
            .session
            .attr(device, DeviceAttr::EXIST)
            .await
            .unwrap();
        assert_eq!(there, Value::Int(0));
        refused(
            client.session.attr(device, DeviceAttr::WARP_SIZE).await,
            message,
        );
        refused(client.session.set_device(device).await, message);
        refused(client.session.create_stream(device).await, message);
        refused(client.session.free_stream(device, 0).await, message);
        refused(client.session.set_stream(device, 0).await, message);
        refused(client.session.current_stream(device).await, message);
        refused(client.session.sync_stream(device, 0).await, message);
        refused(
            client.session.allocate(device, 1, 1, DataType::INT8).await,
            message,
        );
        refused(client.session.free_data(device, cpu.data).await, message);
        let mut there = view(cpu.data, &[4], DataType::INT8);
        there.device = device;
        refused(client.session.allocate_tensor(&there, None).await, message);
        refused(client.write(&there, &[1; 4]).await, message);
        refused(client.read(&there, 4).await, message);
        refused(client.session.copy_among(&cpu, &there, 0).await, message);
        refused(client.session.copy_among(&there, &cpu, 0).await, message);
        let echo = client
            .call_named("testing.echo", &[Value::Tensor(there)])
            .await;
        refused(echo, message);
    }
}

#[bisync]
#[twin_test]
async fn a_processor_has_one_stream() {
    let mut client = Client::test();
    let cpu = Device::cpu(0);
    let there = client.tensor(&[4], DataType::INT8).await;
    for stream in [1, there.data, u64::MAX] {
        let message = &["cpu:0 has no stream 0x"];
        refused(client.session.free_stream(cpu, stream).await, message);
        refused(client.session.set_stream(cpu, stream).await, message);
        refused(client.session.sync_stream(cpu, stream).await, message);
        refused(
            client.session.copy_among(&there, &there, stream).await,
            message,
        );
    }
}

//! The devices of a local session: processors, as many as one likes, all with the same memory.

use rpc_proto::{Device, DeviceAttr, DeviceType, OwnedValue, Value};

use crate::Exception;

pub(super) fn check(device: Device) -> Result<(), Exception> {
    if device.device_type == DeviceType::CPU {
        return Ok(());
    }
    Err(match device.device_type.name() {
        // Clients of the reference know these words.
        Some(name) => Exception::runtime(format!(
            "Device API {name} is not enabled: this session has nothing but cpu"
        )),
        None => Exception::runtime(format!(
            "unknown device type {}: this session has nothing but cpu",
            device.device_type.0
        )),
    })
}

/// A processor has one stream, the default one.
pub(super) fn check_stream(device: Device, stream: u64) -> Result<(), Exception> {
    check(device)?;
    if stream == 0 {
        return Ok(());
    }
    Err(Exception::new(
        "ValueError",
        format!("{device} has no stream {stream:#x}, only the default one"),
    ))
}

/// `memory` is the limit of the session.
pub(super) fn attr(device: Device, attr: DeviceAttr, memory: u64) -> Result<OwnedValue, Exception> {
    let there = device.device_type == DeviceType::CPU;
    if attr == DeviceAttr::EXIST {
        return Ok(Value::Int(there.into()));
    }
    check(device)?;
    Ok(match attr {
        DeviceAttr::TOTAL_GLOBAL_MEMORY => {
            let memory = installed_memory().map_or(memory, |installed| memory.min(installed));
            Value::Int(i64::try_from(memory).unwrap_or(i64::MAX))
        }
        _ => Value::None,
    })
}

/// Bytes of this machine's memory, where the system tells in a file.
fn installed_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

//! This machine's processor, and memory of this process.

use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use rpc_proto::{DataType, Device, DeviceAttr, DeviceType, OwnedValue, TensorView, Value};

use super::{Backend, DeviceMemory, Exception, LocalFunction, LocalTensor, WorkDir};

/// Memory of this process.
pub(super) struct HostMemory {
    /// Words, so that the system provides it page by page when it is used.
    words: RwLock<Box<[u64]>>,
    /// Bytes of the words ahead of the memory, so that it is aligned.
    ahead: usize,
    nbytes: usize,
}

/// What compiled modules expect of each tensor, in bytes.
const ALIGNMENT: u64 = 64;

impl HostMemory {
    /// Memory full of zeros.
    pub(super) fn zeroed(nbytes: u64, alignment: u64) -> Result<Self, Exception> {
        let none = || no_memory(nbytes);
        let alignment = usize::try_from(alignment.max(ALIGNMENT)).map_err(|_| none())?;
        let len = usize::try_from(nbytes).map_err(|_| none())?;
        let whole = len.checked_add(alignment).ok_or_else(none)?;
        let words: Box<[u64]> =
            bytemuck::try_zeroed_slice_box(whole.div_ceil(8)).map_err(|()| none())?;
        let beyond = words.as_ptr().addr() % alignment;
        Ok(Self {
            ahead: (alignment - beyond) % alignment,
            words: RwLock::new(words),
            nbytes: len,
        })
    }

    fn inside(&self, range: &Range<usize>) -> Range<usize> {
        range.start + self.ahead..range.end + self.ahead
    }
}

impl DeviceMemory for HostMemory {
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn device(&self) -> Device {
        Device::cpu(0)
    }

    fn read(&self, range: Range<usize>, reader: &mut dyn FnMut(&[u8])) -> Result<(), Exception> {
        let words = self.words.read().unwrap_or_else(PoisonError::into_inner);
        reader(&bytemuck::cast_slice(&words)[self.inside(&range)]);
        Ok(())
    }

    fn write(
        &self,
        range: Range<usize>,
        writer: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Exception> {
        let mut words = self.words.write().unwrap_or_else(PoisonError::into_inner);
        writer(&mut bytemuck::cast_slice_mut(&mut words)[self.inside(&range)]);
        Ok(())
    }
}

pub(super) fn no_memory(nbytes: u64) -> Exception {
    Exception::new(
        "MemoryError",
        format!("there are no {nbytes} bytes of memory"),
    )
}

/// Processors, as many as one likes, all with the same memory.
pub(super) struct Host;

impl Backend for Host {
    fn function(&self, _: &str, _: Option<&WorkDir>) -> Option<LocalFunction> {
        None
    }

    fn check_device(&self, device: Device) -> Result<(), Exception> {
        if device.device_type == DeviceType::CPU {
            return Ok(());
        }
        Err(Exception::no_device(
            device,
            "this session has nothing but cpu",
        ))
    }

    fn attr(&self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        if attr == DeviceAttr::EXIST {
            let there = device.device_type == DeviceType::CPU;
            return Ok(Value::Int(there.into()));
        }
        self.check_device(device)?;
        Ok(match attr {
            DeviceAttr::TOTAL_GLOBAL_MEMORY => {
                let memory = installed_memory().and_then(|bytes| i64::try_from(bytes).ok());
                Value::Int(memory.unwrap_or(i64::MAX))
            }
            _ => Value::None,
        })
    }

    fn allocate(
        &self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        _: DataType,
    ) -> Result<Box<dyn DeviceMemory>, Exception> {
        self.check_device(device)?;
        Ok(Box::new(HostMemory::zeroed(nbytes, alignment)?))
    }

    fn allocate_tensor(
        &self,
        tensor: &TensorView,
        scope: Option<&str>,
    ) -> Result<Box<dyn DeviceMemory>, Exception> {
        match scope {
            None | Some("" | "global") => {
                let nbytes = tensor.nbytes().unwrap_or(u64::MAX);
                self.allocate(tensor.device, nbytes, 0, tensor.dtype)
            }
            Some(other) => Err(Exception::new(
                "ValueError",
                format!(
                    "{} has no memory scope {other:?}, only \"global\"",
                    tensor.device
                ),
            )),
        }
    }

    fn copy(&self, from: &LocalTensor, to: &LocalTensor, stream: u64) -> Result<(), Exception> {
        check_stream(from.device(), stream)?;
        from.copy_to(to)
    }

    fn create_stream(&self, device: Device) -> Result<u64, Exception> {
        self.current_stream(device)
    }

    fn free_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.sync_stream(device, stream)
    }

    fn set_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.sync_stream(device, stream)
    }

    fn current_stream(&self, device: Device) -> Result<u64, Exception> {
        self.check_device(device).map(|()| 0)
    }

    fn sync_stream(&self, device: Device, stream: u64) -> Result<(), Exception> {
        self.check_device(device)?;
        check_stream(device, stream)
    }
}

/// A processor has one stream, the default one.
fn check_stream(device: Device, stream: u64) -> Result<(), Exception> {
    if stream == 0 {
        return Ok(());
    }
    Err(Exception::new(
        "ValueError",
        format!("{device} has no stream {stream:#x}, only the default one"),
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_as_long_as_asked() {
        for (nbytes, alignment) in [(0, 0), (1, 8), (63, 64), (4096, 128), (100, 4096)] {
            let memory = HostMemory::zeroed(nbytes, alignment).unwrap();
            let len = usize::try_from(nbytes).unwrap();
            let mut seen = 0;
            let mut look = |bytes: &mut [u8]| {
                seen = bytes.len();
                let expected = usize::try_from(alignment.max(64)).unwrap();
                assert_eq!(bytes.as_ptr().addr() % expected, 0);
                bytes.fill(7);
            };
            memory.write(0..len, &mut look).unwrap();
            assert_eq!(seen, len);
            let mut sum = 0;
            let mut add = |bytes: &[u8]| sum = bytes.iter().map(|&byte| usize::from(byte)).sum();
            memory.read(0..len, &mut add).unwrap();
            assert_eq!(sum, 7 * len);
        }
    }

    #[test]
    fn memory_that_there_is_not_is_an_exception() {
        for nbytes in [u64::MAX, u64::MAX - 4096, u64::MAX / 2, 1 << 60] {
            let error = HostMemory::zeroed(nbytes, 0).err().unwrap();
            assert_eq!(error.kind(), "MemoryError");
        }
    }
}

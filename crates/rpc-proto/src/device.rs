//! Devices and what can be asked about them.

use std::fmt;
use std::str::FromStr;

use crate::codes::open_code;

open_code! {
    /// The kind of a device, numbered as DLPack numbers them.
    DeviceType(i32) {
        /// The processor, with ordinary memory.
        CPU = 1, "cpu";
        /// An NVIDIA GPU.
        CUDA = 2, "cuda";
        /// Host memory that CUDA has pinned.
        CUDA_HOST = 3, "cuda_host";
        /// An OpenCL device.
        OPENCL = 4, "opencl";
        /// A Vulkan device.
        VULKAN = 7, "vulkan";
        /// An Apple GPU.
        METAL = 8, "metal";
        /// Memory of a Verilog simulator.
        VPI = 9, "vpi";
        /// An AMD GPU.
        ROCM = 10, "rocm";
        /// Host memory that ROCm has pinned.
        ROCM_HOST = 11, "rocm_host";
        /// An accelerator of a vendor, by extension.
        EXT_DEV = 12, "ext_dev";
        /// Memory that CUDA moves by itself.
        CUDA_MANAGED = 13, "cuda_managed";
        /// A oneAPI device.
        ONE_API = 14, "one_api";
        /// A GPU through WebGPU.
        WEBGPU = 15, "webgpu";
        /// A Hexagon DSP.
        HEXAGON = 16, "hexagon";
        /// A MAIA accelerator.
        MAIA = 17, "maia";
        /// A Trainium accelerator.
        TRN = 18, "trn";
    }
}

/// A device of the peer: its kind and its number among those of its kind.
///
/// ```
/// use rpc_proto::Device;
///
/// assert_eq!("cpu".parse(), Ok(Device::cpu(0)));
/// assert_eq!("opencl:1".parse::<Device>()?.to_string(), "opencl:1");
/// # Ok::<(), rpc_proto::ParseDeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// The kind.
    pub device_type: DeviceType,
    /// The number, from 0.
    pub id: i32,
}

impl Device {
    /// A device of a kind by its number.
    #[must_use]
    pub const fn new(device_type: DeviceType, id: i32) -> Self {
        Self { device_type, id }
    }

    /// A processor by its number.
    #[must_use]
    pub const fn cpu(id: i32) -> Self {
        Self::new(DeviceType::CPU, id)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device_type.name() {
            Some(name) => write!(f, "{name}:{}", self.id),
            None => write!(f, "{}:{}", self.device_type.0, self.id),
        }
    }
}

/// A text that is no [`Device`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a device; expected a kind and perhaps a number, for example cpu, cuda:1 or opencl:0"
)]
pub struct ParseDeviceError(String);

impl FromStr for Device {
    type Err = ParseDeviceError;

    /// Reads `KIND` or `KIND:ID`; the kind is a name or its number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, id) = text.split_once(':').unwrap_or((text, "0"));
        let device_type = known_kind(kind).or_else(|| kind.parse().ok().map(DeviceType));
        match (device_type, id.parse()) {
            (Some(device_type), Ok(id)) => Ok(Self { device_type, id }),
            _ => Err(ParseDeviceError(text.to_owned())),
        }
    }
}

fn known_kind(name: &str) -> Option<DeviceType> {
    (0..=DeviceType::TRN.0)
        .map(DeviceType)
        .find(|kind| kind.name() == Some(name))
}

open_code! {
    /// A question about a device.
    DeviceAttr(i32) {
        /// Is it there? An integer, 0 or 1.
        EXIST = 0, "exist";
        /// Most threads of a block.
        MAX_THREADS_PER_BLOCK = 1, "max_threads_per_block";
        /// Threads that run in step.
        WARP_SIZE = 2, "warp_size";
        /// Bytes of shared memory of a block.
        MAX_SHARED_MEMORY_PER_BLOCK = 3, "max_shared_memory_per_block";
        /// Version of the instruction set, a text.
        COMPUTE_VERSION = 4, "compute_version";
        /// Name, a text.
        DEVICE_NAME = 5, "device_name";
        /// Highest clock rate in kHz.
        MAX_CLOCK_RATE = 6, "max_clock_rate";
        /// Multiprocessors.
        MULTI_PROCESSOR_COUNT = 7, "multi_processor_count";
        /// Most threads of a block in each dimension, a text of a list.
        MAX_THREAD_DIMENSIONS = 8, "max_thread_dimensions";
        /// Registers of a block.
        MAX_REGISTERS_PER_BLOCK = 9, "max_registers_per_block";
        /// Name of an AMD architecture, a text.
        GCN_ARCH = 10, "gcn_arch";
        /// Version of the device's API.
        API_VERSION = 11, "api_version";
        /// Version of the driver.
        DRIVER_VERSION = 12, "driver_version";
        /// Bytes of the second-level cache.
        L2_CACHE_SIZE_BYTES = 13, "l2_cache_size_bytes";
        /// Bytes of memory.
        TOTAL_GLOBAL_MEMORY = 14, "total_global_memory";
        /// Bytes of memory that are free.
        AVAILABLE_GLOBAL_MEMORY = 15, "available_global_memory";
        /// Alignment of a row of an image, in pixels.
        IMAGE_PITCH_ALIGNMENT = 16, "image_pitch_alignment";
    }
}

/// A text that is no [`DeviceAttr`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an attribute of a device; expected for example exist or max_threads_per_block"
)]
pub struct ParseDeviceAttrError(String);

impl FromStr for DeviceAttr {
    type Err = ParseDeviceAttrError;

    /// Reads the name of a known attribute.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        (0..=Self::IMAGE_PITCH_ALIGNMENT.0)
            .map(Self)
            .find(|attr| attr.name() == Some(text))
            .ok_or_else(|| ParseDeviceAttrError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_the_reference() {
        // As apache-tvm 0.27.0.post1 numbers them.
        for (name, number) in [
            ("cpu", 1),
            ("opencl", 4),
            ("vulkan", 7),
            ("metal", 8),
            ("vpi", 9),
            ("rocm", 10),
            ("ext_dev", 12),
            ("webgpu", 15),
            ("hexagon", 16),
            ("maia", 17),
            ("trn", 18),
        ] {
            assert_eq!(
                name.parse(),
                Ok(Device::new(DeviceType(number), 0)),
                "{name}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_device() {
        for text in [
            "",
            ":",
            "cpu:",
            "cpu:x",
            ":0",
            "gpus",
            "cpu:0:0",
            "cpu:99999999999",
        ] {
            assert!(text.parse::<Device>().is_err(), "{text:?} was read");
        }
    }

    proptest! {
        #[test]
        fn every_device_survives_its_text(kind: i32, id: i32) {
            let device = Device::new(DeviceType(kind), id);
            prop_assert_eq!(device.to_string().parse(), Ok(device));
        }
    }
}

//! Tensors in the memory of this side.

use anyhow::{Context, Result};
use rpc_proto::DataType;
use rpc_session::blocking::{RemoteDevice, Tensor};

use crate::argspec::{self, Source};
use crate::element::{ElementType, Number};
use crate::npy;

/// A dense tensor in row-major order, its bytes as they are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalTensor {
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<i64>,
    pub(crate) bytes: Vec<u8>,
}

impl LocalTensor {
    /// The tensor that an argument describes.
    pub(crate) fn make(
        dtype: DataType,
        shape: &[i64],
        source: &Source,
        rng: &mut fastrand::Rng,
    ) -> Result<Self> {
        if let Source::File(path) = source {
            return npy::read_expected(path, dtype, shape);
        }
        let nbytes = size(dtype, shape)?;
        let mut bytes = allocate(nbytes)?;
        match source {
            Source::Zeros | Source::File(_) => bytes.resize(nbytes, 0),
            Source::Constant(number) => fill(dtype, nbytes, &mut bytes, |_, _| *number)?,
            Source::Random => fill(dtype, nbytes, &mut bytes, |element, _| element.random(rng))?,
            Source::Arange => fill(dtype, nbytes, &mut bytes, |_, index| Number::Int(index))?,
        }
        Ok(Self {
            dtype,
            shape: shape.to_vec(),
            bytes,
        })
    }

    /// Copies it to a new tensor of the device.
    pub(crate) fn send(&self, device: &RemoteDevice) -> Result<Tensor> {
        let tensor = device.empty(&self.shape, self.dtype)?;
        tensor.copy_from_bytes(&self.bytes)?;
        Ok(tensor)
    }

    /// Copies a tensor of a device.
    pub(crate) fn fetch(tensor: &Tensor) -> Result<Self> {
        let nbytes = size(tensor.dtype(), tensor.shape())?;
        let mut bytes = allocate(nbytes)?;
        bytes.resize(nbytes, 0);
        tensor.copy_into_bytes(&mut bytes)?;
        Ok(Self {
            dtype: tensor.dtype(),
            shape: tensor.shape().to_vec(),
            bytes,
        })
    }

    /// Its numbers, if its type has some.
    pub(crate) fn numbers(&self) -> Option<impl Iterator<Item = Number>> {
        Some(ElementType::of(self.dtype)?.numbers(&self.bytes))
    }
}

fn size(dtype: DataType, shape: &[i64]) -> Result<usize> {
    argspec::nbytes(dtype, shape)
        .with_context(|| format!("no tensor of {dtype} has the shape {shape:?}"))
}

/// Room for a tensor. Sizes come from users and servers, so that there may be too little memory.
fn allocate(nbytes: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(nbytes)
        .with_context(|| format!("no memory for {nbytes} bytes of a tensor"))?;
    Ok(bytes)
}

fn fill(
    dtype: DataType,
    nbytes: usize,
    bytes: &mut Vec<u8>,
    mut number: impl FnMut(ElementType, i128) -> Number,
) -> Result<()> {
    let element =
        ElementType::of(dtype).with_context(|| format!("there are no numbers for {dtype}"))?;
    for index in 0.. {
        if bytes.len() >= nbytes {
            break;
        }
        let number = number(element, index);
        if !element.push(number, bytes) {
            anyhow::bail!("element {index}: {number} is no number of {dtype}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(dtype: &str, shape: &[i64], source: &Source, seed: u64) -> Result<Vec<u8>> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let tensor = LocalTensor::make(dtype.parse()?, shape, source, &mut rng)?;
        assert_eq!(tensor.shape, shape);
        Ok(tensor.bytes)
    }

    #[test]
    fn sources_fill_the_whole_tensor() {
        let ones = Source::Constant(Number::Int(1));
        assert_eq!(make("int16", &[2], &ones, 0).unwrap(), [1, 0, 1, 0]);
        assert_eq!(
            make("int8", &[2, 2], &Source::Arange, 0).unwrap(),
            [0, 1, 2, 3]
        );
        assert_eq!(make("float32", &[], &ones, 0).unwrap(), 1_f32.to_le_bytes());
        assert_eq!(make("float32x4", &[2], &Source::Zeros, 0).unwrap(), [0; 32]);
        assert!(
            make("float32", &[0, 3], &Source::Random, 0)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn random_numbers_depend_on_the_seed_alone() {
        let random = |seed| make("float32", &[8], &Source::Random, seed).unwrap();
        assert_eq!(random(0), random(0));
        assert_ne!(random(0), random(1));
    }

    #[test]
    fn a_range_that_does_not_fit_is_an_error() {
        let error = make("int8", &[129], &Source::Arange, 0).unwrap_err();
        assert_eq!(error.to_string(), "element 128: 128 is no number of int8");
    }

    #[test]
    fn a_tensor_that_no_memory_holds_is_an_error() {
        let error = make("int8", &[i64::MAX], &Source::Zeros, 0).unwrap_err();
        assert!(error.to_string().starts_with("no memory for "), "{error}");
    }
}

//! Tensors from and into `ndarray` arrays.

use ndarray::{ArrayBase, ArrayD, ArrayViewMutD, Data, Dimension, IxDyn};

use super::bisync;
use super::device::RemoteDevice;
use super::tensor::Tensor;
use crate::{Element, SessionError};

#[bisync]
impl RemoteDevice {
    /// A tensor of the array's shape and elements. An array that is not in row-major order is copied
    /// into it first.
    ///
    /// # Errors
    /// As [`RemoteDevice::tensor`].
    pub async fn from_ndarray<T: Element, S: Data<Elem = T>, D: Dimension>(
        &self,
        array: &ArrayBase<S, D>,
    ) -> Result<Tensor, SessionError> {
        let tensor = self.empty(&sizes(array.shape())?, T::DTYPE).await?;
        tensor.copy_from_ndarray(array).await?;
        Ok(tensor)
    }
}

#[bisync]
impl Tensor {
    /// Copies an array of the same shape into the tensor. An array that is not in row-major order is
    /// copied into it first.
    ///
    /// # Errors
    /// [`SessionError::Mismatch`] when type or shape do not fit; the server or the connection fails.
    pub async fn copy_from_ndarray<T: Element, S: Data<Elem = T>, D: Dimension>(
        &self,
        array: &ArrayBase<S, D>,
    ) -> Result<(), SessionError> {
        self.check_shape(array.shape())?;
        let array = array.as_standard_layout();
        match array.as_slice() {
            Some(elements) => self.copy_from(elements).await,
            None => unreachable!("an array in standard layout is a slice"),
        }
    }

    /// Copies the tensor into an array of the same shape, of whatever order.
    ///
    /// # Errors
    /// As [`Tensor::copy_from_ndarray`].
    pub async fn copy_into_ndarray<T: Element>(
        &self,
        mut array: ArrayViewMutD<'_, T>,
    ) -> Result<(), SessionError> {
        self.check_shape(array.shape())?;
        if let Some(elements) = array.as_slice_mut() {
            return self.copy_into(elements).await;
        }
        array.assign(&self.to_ndarray().await?);
        Ok(())
    }

    /// The elements, as an array of the tensor's shape.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    pub async fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>, SessionError> {
        let elements = self.to_vec().await?;
        let sizes = self.shape().iter().map(|&size| usize::try_from(size));
        let shaped = sizes
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .and_then(|sizes| ArrayD::from_shape_vec(IxDyn(&sizes), elements).ok());
        shaped.ok_or_else(|| {
            SessionError::BadTensor(format!("no array has the shape {:?}", self.shape()))
        })
    }
}

impl Tensor {
    fn check_shape(&self, shape: &[usize]) -> Result<(), SessionError> {
        if *self.shape() == *sizes(shape)? {
            return Ok(());
        }
        Err(SessionError::Mismatch {
            tensor: format!("the shape {:?}", self.shape()),
            data: format!("of the shape {shape:?}"),
        })
    }
}

fn sizes(shape: &[usize]) -> Result<Vec<i64>, SessionError> {
    let sizes = shape.iter().map(|&size| i64::try_from(size));
    sizes
        .collect::<Result<_, _>>()
        .map_err(|_| SessionError::BadTensor(format!("no tensor has the shape {shape:?}")))
}

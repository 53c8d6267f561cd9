use std::sync::Arc;

use rpc_proto::{DataType, Device, DeviceAttr, OwnedValue, Syscall, Value};

use super::bisync;
use super::context::Context;
use super::tensor::Tensor;
use crate::freed::Freed;
use crate::{Element, SessionError};

/// A device of the server.
#[derive(Debug, Clone)]
pub struct RemoteDevice {
    context: Arc<Context>,
    device: Device,
}

impl RemoteDevice {
    pub(in super::super) fn new(context: &Arc<Context>, device: Device) -> Self {
        Self {
            context: Arc::clone(context),
            device,
        }
    }

    /// Which one it is; also how a function takes it as an argument.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }
}

#[bisync]
impl RemoteDevice {
    /// Is there such a device?
    ///
    /// # Errors
    /// The server knows no devices of this kind at all, or it or the connection fails.
    pub async fn exists(&self) -> Result<bool, SessionError> {
        Ok(self.attr(DeviceAttr::EXIST).await? == Value::Int(1))
    }

    /// An attribute: nothing (the device has no such attribute), an integer or a text.
    ///
    /// ```no_run
    /// # #[cfg(feature = "sync")]
    /// # fn f(device: rpc_session::blocking::RemoteDevice) -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = device.attr("max_threads_per_block".parse()?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The device is not there, or the server or the connection fails.
    pub async fn attr(&self, attr: DeviceAttr) -> Result<OwnedValue, SessionError> {
        let device = self.device;
        self.context.attr(Syscall::GetAttr { device, attr }).await
    }

    /// A tensor whose elements are not initialized.
    ///
    /// # Errors
    /// [`SessionError::BadTensor`], the server has not enough memory, or the connection fails.
    pub async fn empty(&self, shape: &[i64], dtype: DataType) -> Result<Tensor, SessionError> {
        Tensor::allocate(&self.context, self.device, shape, dtype, None).await
    }

    /// As [`RemoteDevice::empty`], in a memory scope (`global`, `global.texture`, …).
    ///
    /// # Errors
    /// As [`RemoteDevice::empty`], and the device has no such scope.
    pub async fn empty_in_scope(
        &self,
        shape: &[i64],
        dtype: DataType,
        scope: &str,
    ) -> Result<Tensor, SessionError> {
        Tensor::allocate(&self.context, self.device, shape, dtype, Some(scope)).await
    }

    /// A tensor of these elements.
    ///
    /// # Errors
    /// As [`RemoteDevice::empty`] and [`Tensor::copy_from`].
    pub async fn tensor<T: Element>(
        &self,
        shape: &[i64],
        data: &[T],
    ) -> Result<Tensor, SessionError> {
        let tensor = self.empty(shape, T::DTYPE).await?;
        tensor.copy_from(data).await?;
        Ok(tensor)
    }

    /// Makes it the device that functions use which name none.
    ///
    /// # Errors
    /// The device is not there, or the server or the connection fails.
    pub async fn make_current(&self) -> Result<(), SessionError> {
        let device = self.device;
        self.context.syscall(Syscall::SetDevice { device }).await
    }

    /// A new stream of work. Devices without streams give the default one.
    ///
    /// # Errors
    /// The device is not there, or the server or the connection fails.
    pub async fn create_stream(&self) -> Result<Stream, SessionError> {
        let device = self.device;
        let raw = self
            .context
            .pointer(Syscall::CreateStream { device })
            .await?;
        Ok(Stream::new(self, raw, raw != 0))
    }

    /// The default stream.
    #[must_use]
    pub fn default_stream(&self) -> Stream {
        Stream::new(self, 0, false)
    }

    /// The stream that work goes to.
    ///
    /// # Errors
    /// The server is of an age without this request, or it or the connection fails.
    pub async fn current_stream(&self) -> Result<Stream, SessionError> {
        let device = self.device;
        let raw = self
            .context
            .pointer(Syscall::GetCurrentStream { device })
            .await?;
        Ok(Stream::new(self, raw, false))
    }

    /// Waits until the default stream is idle.
    ///
    /// # Errors
    /// As [`Stream::sync`].
    pub async fn sync(&self) -> Result<(), SessionError> {
        self.default_stream().sync().await
    }
}

/// A stream of work on a device. One that was created is freed at the server when the last clone is
/// dropped.
#[derive(Debug, Clone)]
pub struct Stream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    context: Arc<Context>,
    device: Device,
    raw: u64,
    owned: bool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.owned {
            self.context.link.free(Freed::Stream {
                device: self.device,
                stream: self.raw,
            });
        }
    }
}

impl Stream {
    fn new(device: &RemoteDevice, raw: u64, owned: bool) -> Self {
        let inner = Inner {
            context: Arc::clone(&device.context),
            device: device.device,
            raw,
            owned,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Is it the same stream of the same device?
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let (one, other) = (&self.inner, &other.inner);
        Arc::ptr_eq(&one.context, &other.context)
            && (one.device, one.raw) == (other.device, other.raw)
    }
}

#[bisync]
impl Stream {
    /// Makes it the stream that work goes to.
    ///
    /// # Errors
    /// The server or the connection fails.
    pub async fn make_current(&self) -> Result<(), SessionError> {
        let Inner {
            device,
            raw: stream,
            ..
        } = *self.inner;
        self.inner
            .context
            .syscall(Syscall::SetStream { device, stream })
            .await
    }

    /// Waits until it is idle.
    ///
    /// # Errors
    /// The work on it failed, or the server or the connection fails.
    pub async fn sync(&self) -> Result<(), SessionError> {
        let Inner {
            device,
            raw: stream,
            ..
        } = *self.inner;
        self.inner
            .context
            .syscall(Syscall::StreamSync { device, stream })
            .await
    }
}

//! A session on another server, served to a client of ours: one hop of a chain.

use rpc_proto::codes::{SESSION_LOST_PREFIX, SESSION_TIMEOUT_PREFIX};
use rpc_proto::{
    Bulk, DataType, Device, DeviceAttr, OwnedValue, Packet, Returned, Syscall, TensorView, Value,
};

use super::super::payload::{Sink, Source};
use super::super::session::RemoteSession;
use super::super::{DynRead, DynWrite, bisync, dyn_trait};
use super::session::{BulkArgument, CallResult, Session};
use crate::answer::Answer;
use crate::{Exception, SessionError};

/// What the reference's servers say before the words of the server behind them.
const HOP: &str = "RPCError: Error caught from RPC call:\n";

/// The failure of the next server, for the client.
fn forwarded(error: SessionError) -> Exception {
    match error {
        SessionError::Remote(error) => Exception::runtime(format!("{HOP}{}", error.text())),
        // At the start, where clients look for it.
        SessionError::TimedOut { message } => {
            Exception::runtime(format!("{SESSION_TIMEOUT_PREFIX}{message}"))
        }
        SessionError::Lost { message } => {
            Exception::runtime(format!("{SESSION_LOST_PREFIX}{message}"))
        }
        error => error.into(),
    }
}

#[bisync]
impl RemoteSession {
    async fn forward(
        &self,
        packet: &Packet<'_>,
        source: Source<'_>,
        sink: Sink<'_>,
    ) -> Result<Answer, Exception> {
        let answer = self.context().link.exchange(packet, source, sink).await;
        answer.map_err(forwarded)
    }

    async fn forward_syscall(&self, syscall: Syscall<'_>) -> Result<Answer, Exception> {
        let packet = Packet::Syscall(syscall);
        self.forward(&packet, Source::Memory(&[]), Sink::Answer)
            .await
    }
}

/// Handles and addresses pass through as they are: they are those of the last server.
#[bisync]
#[dyn_trait]
impl Session for RemoteSession {
    async fn get_function(&mut self, name: &str) -> Result<Option<u64>, Exception> {
        let name = name.into();
        let answer = self
            .forward_syscall(Syscall::GetGlobalFunc { name })
            .await?;
        Ok(Some(answer.into_pointer()).filter(|&handle| handle != 0))
    }

    async fn call(
        &mut self,
        function: u64,
        args: &[Value<'_>],
        bulk: Option<BulkArgument<'_>>,
    ) -> Result<CallResult, Exception> {
        let packet = Packet::Call {
            function,
            args: args.iter().map(Value::as_borrowed).collect(),
            bulk: bulk.as_ref().map(|bulk| Bulk {
                kind: bulk.kind,
                nbytes: bulk.nbytes,
            }),
        };
        let progress = &mut |_, _| ();
        let source = match bulk {
            Some(BulkArgument { data, .. }) => Source::Reader {
                reader: data,
                progress,
            },
            None => Source::Memory(&[]),
        };
        let answer = self.forward(&packet, source, Sink::Answer).await?;
        let returned: Returned<'static> = answer.into_returned();
        Ok(CallResult::Value(returned))
    }

    async fn free(&mut self, handle: u64) -> Result<(), Exception> {
        let kind = None;
        self.forward_syscall(Syscall::FreeHandle { handle, kind })
            .await
            .map(drop)
    }

    async fn attr(&mut self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        let answer = self
            .forward_syscall(Syscall::GetAttr { device, attr })
            .await;
        Ok(answer?.into_attr())
    }

    async fn allocate(
        &mut self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        dtype: DataType,
    ) -> Result<u64, Exception> {
        let answer = self.forward_syscall(Syscall::AllocData {
            device,
            nbytes,
            alignment,
            dtype,
        });
        Ok(answer.await?.into_pointer())
    }

    async fn allocate_tensor(
        &mut self,
        tensor: &TensorView,
        scope: Option<&str>,
    ) -> Result<u64, Exception> {
        let answer = self.forward_syscall(Syscall::AllocDataWithScope {
            tensor: tensor.clone(),
            scope: scope.map(Into::into),
        });
        Ok(answer.await?.into_pointer())
    }

    async fn free_data(&mut self, device: Device, data: u64) -> Result<(), Exception> {
        self.forward_syscall(Syscall::FreeData { device, data })
            .await
            .map(drop)
    }

    async fn copy_to(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        data: &mut DynRead<'_>,
    ) -> Result<(), Exception> {
        let packet = Packet::CopyTo {
            tensor: tensor.clone(),
            nbytes,
        };
        let source = Source::Reader {
            reader: data,
            progress: &mut |_, _| (),
        };
        self.forward(&packet, source, Sink::Answer).await.map(drop)
    }

    async fn copy_from(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        target: &mut DynWrite<'_>,
    ) -> Result<(), Exception> {
        let packet = Packet::CopyFrom {
            tensor: tensor.clone(),
            nbytes,
        };
        let sink = Sink::Writer {
            writer: target,
            progress: &mut |_, _| (),
        };
        self.forward(&packet, Source::Memory(&[]), sink)
            .await
            .map(drop)
    }

    async fn copy_among(
        &mut self,
        from: &TensorView,
        to: &TensorView,
        stream: u64,
    ) -> Result<(), Exception> {
        let answer = self.forward_syscall(Syscall::CopyAmong {
            from: from.clone(),
            to: to.clone(),
            stream,
        });
        answer.await.map(drop)
    }

    async fn set_device(&mut self, device: Device) -> Result<(), Exception> {
        self.forward_syscall(Syscall::SetDevice { device })
            .await
            .map(drop)
    }

    async fn create_stream(&mut self, device: Device) -> Result<u64, Exception> {
        let answer = self.forward_syscall(Syscall::CreateStream { device }).await;
        Ok(answer?.into_pointer())
    }

    async fn free_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.forward_syscall(Syscall::FreeStream { device, stream })
            .await
            .map(drop)
    }

    async fn set_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.forward_syscall(Syscall::SetStream { device, stream })
            .await
            .map(drop)
    }

    async fn current_stream(&mut self, device: Device) -> Result<u64, Exception> {
        let answer = self.forward_syscall(Syscall::GetCurrentStream { device });
        Ok(answer.await?.into_pointer())
    }

    async fn sync_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.forward_syscall(Syscall::StreamSync { device, stream })
            .await
            .map(drop)
    }

    async fn shutdown(&mut self) {
        self.close().await;
    }
}

//! A session that does what a [`Stage`] says.

use std::time::Duration;

use rpc_proto::{DataType, Device, DeviceAttr, OwnedValue, Returned, TensorView, Value};
use rpc_session::Exception;

use super::{
    BulkArgument, CallResult, Construct, DynRead, DynWrite, Session, bisync, dyn_trait, pause,
};
#[super::only_async]
use super::{ReadExt as _, WriteExt as _};
use crate::support::{Act, Stage, pattern};

/// What look-ups and allocations give by themselves.
pub(super) const ADDRESS: u64 = 0x70;

pub(super) struct Mock(pub(super) Stage);

/// Constructs mocks of one stage.
pub(super) struct Mocks(pub(super) Stage);

#[bisync]
#[dyn_trait]
impl Construct for Mocks {
    async fn construct(&self, args: &[Value<'_>]) -> Result<Box<dyn Session>, Exception> {
        let args = args.iter().cloned().map(Value::into_owned).collect();
        self.0.construct(args)?;
        Ok(Box::new(Mock(self.0.clone())))
    }
}

#[bisync]
impl Mock {
    /// Notes the call, and gives what there is to do.
    async fn act(&self, call: String) -> Result<Option<Act>, Exception> {
        match self.0.begin(call) {
            Some(Act::Fail(why)) => Err(Exception::new("ValueError", why)),
            Some(Act::Wait(gate)) => {
                while !gate.is_open() {
                    pause(Duration::from_millis(2)).await;
                }
                Ok(None)
            }
            act => Ok(act),
        }
    }

    async fn action(&self, call: String) -> Result<(), Exception> {
        match self.act(call).await? {
            None => Ok(()),
            Some(_) => panic!("an action has no result"),
        }
    }

    async fn pointer(&self, call: String) -> Result<u64, Exception> {
        match self.act(call).await? {
            None => Ok(ADDRESS),
            Some(Act::Pointer(address)) => Ok(address),
            Some(_) => panic!("the result is an address"),
        }
    }

    /// Reads the payload.
    async fn take(&self, act: Option<Act>, data: &mut DynRead<'_>) -> Result<(), Exception> {
        let (most, outcome) = match act {
            None => (usize::MAX, Ok(())),
            Some(Act::Take(most, outcome)) => (most, outcome),
            Some(_) => panic!("a payload is read"),
        };
        let mut taken = Vec::new();
        let mut piece = vec![0; 100_000];
        while taken.len() < most {
            let wanted = piece.len().min(most - taken.len());
            let count = data.read(&mut piece[..wanted]).await?;
            if count == 0 {
                break;
            }
            taken.extend_from_slice(&piece[..count]);
        }
        self.0.keep_payload(taken);
        outcome.map_err(Exception::runtime)
    }
}

#[bisync]
#[dyn_trait]
impl Session for Mock {
    async fn get_function(&mut self, name: &str) -> Result<Option<u64>, Exception> {
        match self.act(format!("get_function({name:?})")).await? {
            None => Ok(Some(ADDRESS)),
            Some(Act::Found(found)) => Ok(found),
            Some(_) => panic!("the result is a function"),
        }
    }

    async fn call(
        &mut self,
        function: u64,
        args: &[Value<'_>],
        bulk: Option<BulkArgument<'_>>,
    ) -> Result<CallResult, Exception> {
        let what = match &bulk {
            None => format!("call({function}, {args:?})"),
            Some(bulk) => {
                format!(
                    "call({function}, {args:?}, {} {:?})",
                    bulk.nbytes, bulk.kind
                )
            }
        };
        let mut act = self.act(what).await?;
        if let Some(bulk) = bulk {
            self.take(act.take(), bulk.data).await?;
        }
        match act {
            None => Ok(CallResult::Value(Returned::Value(Value::None))),
            Some(Act::Return(returned)) => Ok(CallResult::Value(returned)),
            Some(Act::ReturnBulk { kind, nbytes, has }) => Ok(CallResult::Bulk {
                kind,
                nbytes,
                data: Box::new(std::io::Cursor::new(has)),
            }),
            Some(_) => panic!("the result is that of a call"),
        }
    }

    async fn free(&mut self, handle: u64) -> Result<(), Exception> {
        self.action(format!("free({handle})")).await
    }

    async fn attr(&mut self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        match self.act(format!("attr({device}, {})", attr.0)).await? {
            None => Ok(Value::None),
            Some(Act::Attr(value)) => Ok(value),
            Some(_) => panic!("the result is an attribute"),
        }
    }

    async fn allocate(
        &mut self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        dtype: DataType,
    ) -> Result<u64, Exception> {
        self.pointer(format!(
            "allocate({device}, {nbytes}, {alignment}, {dtype})"
        ))
        .await
    }

    async fn allocate_tensor(
        &mut self,
        tensor: &TensorView,
        scope: Option<&str>,
    ) -> Result<u64, Exception> {
        self.pointer(format!("allocate_tensor({tensor:?}, {scope:?})"))
            .await
    }

    async fn free_data(&mut self, device: Device, data: u64) -> Result<(), Exception> {
        self.action(format!("free_data({device}, {data})")).await
    }

    async fn copy_to(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        data: &mut DynRead<'_>,
    ) -> Result<(), Exception> {
        let act = self.act(format!("copy_to({tensor:?}, {nbytes})")).await?;
        self.take(act, data).await
    }

    async fn copy_from(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        target: &mut DynWrite<'_>,
    ) -> Result<(), Exception> {
        let act = self.act(format!("copy_from({tensor:?}, {nbytes})")).await?;
        let (pieces, outcome) = match act {
            None => (vec![pattern(usize::try_from(nbytes)?)], Ok(())),
            Some(Act::Give(pieces, outcome)) => (pieces, outcome),
            Some(_) => panic!("the result is data"),
        };
        for piece in pieces {
            // Also of no bytes, which `write_all` leaves out.
            let count = target.write(&piece).await?;
            target.write_all(&piece[count..]).await?;
        }
        outcome.map_err(Exception::runtime)
    }

    async fn copy_among(
        &mut self,
        from: &TensorView,
        to: &TensorView,
        stream: u64,
    ) -> Result<(), Exception> {
        self.action(format!("copy_among({from:?}, {to:?}, {stream})"))
            .await
    }

    async fn set_device(&mut self, device: Device) -> Result<(), Exception> {
        self.action(format!("set_device({device})")).await
    }

    async fn create_stream(&mut self, device: Device) -> Result<u64, Exception> {
        self.pointer(format!("create_stream({device})")).await
    }

    async fn free_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.action(format!("free_stream({device}, {stream})"))
            .await
    }

    async fn set_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.action(format!("set_stream({device}, {stream})")).await
    }

    async fn current_stream(&mut self, device: Device) -> Result<u64, Exception> {
        self.pointer(format!("current_stream({device})")).await
    }

    async fn sync_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.action(format!("sync_stream({device}, {stream})"))
            .await
    }

    async fn shutdown(&mut self) {
        self.0.shut_down();
    }
}

//! What a session and all that came out of it share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rpc_proto::{Bulk, HandleKind, OwnedValue, Packet, Syscall, TensorView, Values};

use super::payload::{Sink, Source};
use super::value::{Argument, Output, pack};
use super::{Link, bisync};
use crate::freed::Freed;
use crate::{SessionError, names};

/// Bytes of a last argument from which on it is sent from where it lies, instead of being copied into
/// the packet first. Below, one small copy is quicker than a second slice for the system.
const BORROW: usize = 4 << 10;

/// One session. It ends when the last holder lets go of it.
#[derive(Debug)]
pub(in super::super) struct Context {
    pub(in super::super) link: Link,
    /// Handles of the server's functions that were used already; they live as long as the session.
    functions: Mutex<HashMap<&'static str, u64>>,
    max_packet: OnceLock<Option<u64>>,
    log_requests: bool,
}

impl Context {
    pub(in super::super) fn new(link: Link, log_requests: bool) -> Arc<Self> {
        Arc::new(Self {
            link,
            functions: Mutex::default(),
            max_packet: OnceLock::new(),
            log_requests,
        })
    }

    fn log(&self, packet: &Packet<'_>) {
        let (peer, request) = (self.link.peer(), packet.code());
        if self.log_requests {
            tracing::info!(peer, %request);
        } else {
            tracing::trace!(peer, %request);
        }
    }
}

#[bisync]
impl Context {
    /// A request with the payload that it announces, whose answer is nothing.
    pub(in super::super) async fn send(
        &self,
        packet: &Packet<'_>,
        payload: &[u8],
    ) -> Result<(), SessionError> {
        self.log(packet);
        let answer = self
            .link
            .exchange(packet, Source::Memory(payload), Sink::Answer);
        answer.await.map(|_| ())
    }

    /// Reads the bytes of a tensor into `target`.
    pub(in super::super) async fn fetch(
        &self,
        tensor: TensorView,
        target: &mut [u8],
    ) -> Result<(), SessionError> {
        let nbytes = target.len() as u64;
        let packet = Packet::CopyFrom { tensor, nbytes };
        self.log(&packet);
        let answer = self
            .link
            .exchange(&packet, Source::Memory(&[]), Sink::Memory(target));
        answer.await.map(|_| ())
    }

    /// A syscall whose answer is nothing.
    pub(in super::super) async fn syscall(&self, syscall: Syscall<'_>) -> Result<(), SessionError> {
        self.send(&Packet::Syscall(syscall), &[]).await
    }

    /// A syscall whose answer is an address; 0 is null.
    pub(in super::super) async fn pointer(
        &self,
        syscall: Syscall<'_>,
    ) -> Result<u64, SessionError> {
        let packet = Packet::Syscall(syscall);
        self.log(&packet);
        let answer = self
            .link
            .exchange(&packet, Source::Memory(&[]), Sink::Answer);
        Ok(answer.await?.into_pointer())
    }

    /// A syscall whose answer is an attribute.
    pub(in super::super) async fn attr(
        &self,
        syscall: Syscall<'_>,
    ) -> Result<OwnedValue, SessionError> {
        let packet = Packet::Syscall(syscall);
        self.log(&packet);
        let answer = self
            .link
            .exchange(&packet, Source::Memory(&[]), Sink::Answer);
        Ok(answer.await?.into_attr())
    }

    /// Calls a function by its handle.
    pub(in super::super) async fn call(
        self: &Arc<Self>,
        function: u64,
        args: &[Argument<'_>],
    ) -> Result<Output, SessionError> {
        let (args, payload) = match args.split_last() {
            Some((Argument::Value(rpc_proto::Value::Bytes(bytes)), args))
                if bytes.len() >= BORROW =>
            {
                (args, Some(&**bytes))
            }
            _ => (args, None),
        };
        let packet = Packet::Call {
            function,
            args: pack(self, args)?,
            bulk: payload.map(|payload| Bulk::bytes(payload.len() as u64)),
        };
        self.log(&packet);
        let payload = Source::Memory(payload.unwrap_or_default());
        let answer = self.link.exchange(&packet, payload, Sink::Answer).await?;
        Ok(Output::new(self, answer.into_returned()))
    }

    /// Calls a function of the server's own by its name.
    pub(in super::super) async fn call_server(
        self: &Arc<Self>,
        name: &'static str,
        args: &[Argument<'_>],
    ) -> Result<Output, SessionError> {
        let function = self.server_function(name).await?;
        self.call(function, args).await
    }

    /// The handle of a function of the server's own; looked up once in a session.
    pub(in super::super) async fn server_function(
        &self,
        name: &'static str,
    ) -> Result<u64, SessionError> {
        let known = self.functions().get(name).copied();
        if let Some(handle) = known {
            return Ok(handle);
        }
        let handle = self.look_up(name).await?;
        if handle == 0 {
            return Err(SessionError::NoFunction {
                name: name.to_owned(),
                hint: names::hint(name),
            });
        }
        // Two callers may have asked at once; the second handle goes back.
        let first = *self.functions().entry(name).or_insert(handle);
        if first != handle {
            self.link.free(Freed::Handle {
                handle,
                kind: HandleKind::Function,
            });
        }
        Ok(first)
    }

    /// The handle of a global function, 0 if there is none.
    pub(in super::super) async fn look_up(&self, name: &str) -> Result<u64, SessionError> {
        let name = name.into();
        self.pointer(Syscall::GetGlobalFunc { name }).await
    }

    /// Most bytes of a packet that the server takes, if it says so; asked once in a session.
    pub(in super::super) async fn max_packet(
        self: &Arc<Self>,
    ) -> Result<Option<u64>, SessionError> {
        if let Some(known) = self.max_packet.get() {
            return Ok(*known);
        }
        let limit = match self.server_function(names::MAX_PACKET_SIZE).await {
            Ok(function) => {
                let limit: i64 = self.call(function, &[]).await?.try_into()?;
                u64::try_from(limit).ok()
            }
            Err(SessionError::NoFunction { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(*self.max_packet.get_or_init(|| limit))
    }

    /// Constructs the session at the server.
    pub(in super::super) async fn init(
        &self,
        constructor: &[OwnedValue],
    ) -> Result<(), SessionError> {
        let constructor = constructor.iter().map(OwnedValue::as_borrowed);
        self.send(&Packet::init(Values::from_iter(constructor)), &[])
            .await
            .map_err(|error| match error {
                SessionError::Answer(source) => SessionError::Opening(source),
                other => other,
            })
    }
}

impl Context {
    fn functions(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, u64>> {
        self.functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

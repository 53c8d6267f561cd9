//! The endpoint: reads requests, has a session do them, and answers.

use std::time::Duration;

use rpc_proto::endpoint::{Asked, EndpointError};
use rpc_proto::{Bulk, OwnedValue, Packet, ServerEndpoint, Syscall, TensorView, Value, Values};
use rpc_transport::{Deadline, Step, TransportError};

#[super::super::only_async]
use super::super::WriteExt as _;
use super::super::payload::{PIECE, read_piece};
use super::super::wire::{DataWriter, PayloadReader, Wire};
use super::super::{DynRead, DynWrite, Incoming, bisync};
use super::constructor::Constructors;
use super::session::{BulkArgument, CallResult, Session};
use crate::serving::broken_packets;
use crate::{Exception, ServeError, ServeOptions};

/// One connection that is being served.
pub(in super::super::super) struct Serving {
    pub(in super::super::super) wire: Wire,
    incoming: Incoming,
    endpoint: ServerEndpoint,
    session: Option<Box<dyn Session>>,
    /// The head of the answer that is being written.
    out: Vec<u8>,
}

/// What a request led to.
enum Reply {
    Void,
    Pointer(u64),
    Attr(OwnedValue),
    Call(CallResult),
}

/// What came of the client.
enum Next {
    /// A request that is done, but not answered yet.
    Done(Result<Reply, Exception>),
    /// A request whose payload follows. It borrows nothing, since its bytes have to make room for those.
    WithPayload(Packet<'static>),
    /// A request for data.
    Data(TensorView, u64),
    /// A request that is refused, and bytes to skip.
    Refused(String, u64),
    /// A whole packet has yet to come.
    Nothing {
        needed: u64,
    },
    Ended,
}

impl Serving {
    pub(in super::super::super) fn new(wire: Wire, options: &ServeOptions) -> Self {
        Self {
            wire,
            incoming: Incoming::default(),
            endpoint: options.endpoint(),
            session: None,
            out: Vec::new(),
        }
    }
}

#[bisync]
impl Serving {
    /// Serves until the client says goodbye or goes.
    pub(in super::super::super) async fn run(
        &mut self,
        constructors: &Constructors,
    ) -> Result<(), ServeError> {
        loop {
            match self.next(constructors).await {
                Ok(Next::Nothing { needed }) => {
                    if !self.fill(needed).await? {
                        return Ok(());
                    }
                }
                Ok(Next::Done(reply)) => self.answer(reply).await?,
                Ok(Next::WithPayload(packet)) => self.request_with_payload(packet).await?,
                Ok(Next::Data(tensor, nbytes)) => self.data(&tensor, nbytes).await?,
                Ok(Next::Refused(why, payload)) => {
                    self.skip(payload).await?;
                    self.answer(Err(Exception::runtime(why))).await?;
                }
                Ok(Next::Ended) => return Ok(()),
                Err(source) => {
                    self.turn_away(&source).await;
                    return Err(ServeError::Protocol {
                        peer: self.wire.peer().to_owned(),
                        source,
                    });
                }
            }
        }
    }

    /// The client is gone, or has to go: frees what it held.
    pub(in super::super::super) async fn finish(&mut self) {
        if let Some(session) = &mut self.session {
            session.shutdown().await;
        }
    }

    /// Looks at what came, and does what needs no more of it.
    async fn next(&mut self, constructors: &Constructors) -> Result<Next, EndpointError> {
        let (consumed, next) = match self.endpoint.receive(self.incoming.bytes())? {
            Asked::Incomplete { consumed, needed } => (consumed, Next::Nothing { needed }),
            Asked::Refused {
                consumed,
                payload,
                refusal,
            } => (consumed, Next::Refused(refusal.to_string(), payload)),
            Asked::Request { consumed, packet } => {
                tracing::trace!(peer = self.wire.peer(), request = %packet.code());
                let next = match packet {
                    Packet::CopyFrom { tensor, nbytes } => Next::Data(tensor, nbytes),
                    packet if packet.payload() > 0 => Next::WithPayload(packet.into_owned()),
                    Packet::Init { constructor, .. } => {
                        let made = constructors.construct(&constructor).await;
                        Next::Done(made.map(|session| {
                            self.session = Some(session);
                            self.endpoint.open();
                            Reply::Void
                        }))
                    }
                    packet => Next::Done(match &mut self.session {
                        Some(session) => perform(session.as_mut(), packet).await,
                        None => Err(no_session()),
                    }),
                };
                (consumed, next)
            }
            _ => return Ok(Next::Ended),
        };
        self.incoming.consume(consumed);
        Ok(next)
    }

    /// Reads on until `needed` bytes are there. False at the end of the stream between two packets.
    async fn fill(&mut self, needed: u64) -> Result<bool, ServeError> {
        let between = self.incoming.bytes().is_empty();
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        // As a rule one read brings all of it, and the time limit of the stream stays the same.
        let needed = if between { 1 } else { needed };
        match self.incoming.fill(self.wire.reader(between), needed).await {
            Ok(()) => Ok(true),
            Err(TransportError::Closed { .. }) if between => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn skip(&mut self, payload: u64) -> Result<(), ServeError> {
        let reader = self.wire.reader(false);
        Ok(self.incoming.skip_payload(reader, payload).await?)
    }

    async fn request_with_payload(&mut self, packet: Packet<'static>) -> Result<(), ServeError> {
        let payload = packet.payload();
        let mut reader = PayloadReader::new(&mut self.incoming, &mut self.wire, payload);
        let reply = match &mut self.session {
            Some(session) => perform_with(session.as_mut(), packet, &mut reader).await,
            None => Err(no_session()),
        };
        let left = reader.finish()?;
        self.skip(left).await?;
        self.answer(reply).await
    }

    /// Answers with the bytes of a tensor.
    async fn data(&mut self, tensor: &TensorView, nbytes: u64) -> Result<(), ServeError> {
        let Some(session) = &mut self.session else {
            return self.answer(Err(no_session())).await;
        };
        self.out.clear();
        let ack = Packet::CopyAck { nbytes };
        if let Err(over) = self.endpoint.answer(&ack, &mut self.out) {
            return self.answer(Err(over.into())).await;
        }
        let mut writer = DataWriter::new(&mut self.wire, &self.out, nbytes);
        let copied = session.copy_from(tensor, nbytes, &mut writer).await;
        let sent = writer.finish()?;
        self.complete(sent, copied).await
    }

    /// Answers with large text or bytes.
    async fn bulk(&mut self, nbytes: u64, data: &mut DynRead<'_>) -> Result<(), ServeError> {
        let mut writer = DataWriter::new(&mut self.wire, &self.out, nbytes);
        let copied = pump(data, nbytes, &mut writer).await;
        let sent = writer.finish()?;
        self.complete(sent, copied).await
    }

    /// After an answer in pieces: whether any were sent, and how many bytes are missing.
    async fn complete(
        &mut self,
        sent: (bool, u64),
        copied: Result<(), Exception>,
    ) -> Result<(), ServeError> {
        match (sent, copied) {
            ((true, 0), _) => self.wire.complete().await,
            ((false, 0), Ok(())) => self.wire.answer(&self.out, &[]).await,
            ((false, _), copied) => {
                let error = copied.err().unwrap_or_else(data_missing);
                self.answer_exception(&error).await
            }
            // The length was announced, and nothing else can stand in its place.
            ((true, _), copied) => Err(ServeError::Interrupted {
                peer: self.wire.peer().to_owned(),
                message: copied.err().unwrap_or_else(data_missing).to_string(),
            }),
        }
    }

    async fn answer(&mut self, reply: Result<Reply, Exception>) -> Result<(), ServeError> {
        self.out.clear();
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return self.answer_exception(&error).await,
        };
        let (endpoint, out) = (&self.endpoint, &mut self.out);
        let none: &[u8] = &[];
        let encoded = match &reply {
            Reply::Void => endpoint.answer(&Packet::void(), out).map(|()| none),
            Reply::Pointer(address) => endpoint
                .answer(&single(Value::Pointer(*address)), out)
                .map(|()| none),
            Reply::Attr(value) => endpoint
                .answer(&single(value.as_borrowed()), out)
                .map(|()| none),
            Reply::Call(CallResult::Value(returned)) => endpoint.answer_call(returned, out),
            &Reply::Call(CallResult::Bulk { kind, nbytes, .. }) => endpoint
                .answer(&Packet::BulkReturn { kind, nbytes }, out)
                .map(|()| none),
        };
        match encoded {
            Ok(payload) => match reply {
                Reply::Call(CallResult::Bulk {
                    nbytes, mut data, ..
                }) => self.bulk(nbytes, &mut *data).await,
                _ => self.wire.answer(&self.out, payload).await,
            },
            Err(over) => self.answer_exception(&over.into()).await,
        }
    }

    async fn answer_exception(&mut self, error: &Exception) -> Result<(), ServeError> {
        let traceback = error.traceback();
        tracing::debug!(peer = self.wire.peer(), %error, traceback, "exception");
        self.out.clear();
        self.endpoint
            .answer_exception(error.message(), &mut self.out);
        self.wire.answer(&self.out, &[]).await
    }

    /// Tells a client that broke the protocol so.
    async fn turn_away(&mut self, error: &EndpointError) {
        const MOMENT: Duration = Duration::from_secs(1);
        let told = broken_packets(&self.endpoint, error);
        if self.wire.answer(&told, &[]).await.is_ok() {
            self.wire.shutdown().await;
            self.hear_out(MOMENT).await;
        }
    }

    /// Behind the last words: gives the client a moment to close the connection. One that is closed with
    /// bytes unread takes back what was said last.
    pub(in super::super::super) async fn hear_out(&mut self, moment: Duration) {
        const MOST: u64 = 16 << 20;
        let reader = self.wire.reader(false);
        reader.set_deadline(Deadline::total(Step::Request, Some(moment)));
        // It ends at the latest when the moment is over.
        let _: Result<(), TransportError> = self.incoming.skip_payload(reader, MOST).await;
    }
}

/// Does a request that is there as a whole.
#[bisync]
async fn perform(session: &mut dyn Session, packet: Packet<'_>) -> Result<Reply, Exception> {
    match packet {
        Packet::Call { function, args, .. } => {
            session.call(function, &args, None).await.map(Reply::Call)
        }
        Packet::CopyTo { tensor, nbytes } => {
            let mut nothing: &[u8] = &[];
            session.copy_to(&tensor, nbytes, &mut nothing).await?;
            Ok(Reply::Void)
        }
        Packet::Syscall(syscall) => perform_syscall(session, syscall).await,
        packet => unreachable!("the endpoint lets no {} packet through", packet.code()),
    }
}

/// Does a request whose payload is on its way.
#[bisync]
async fn perform_with(
    session: &mut dyn Session,
    packet: Packet<'static>,
    data: &mut PayloadReader<'_>,
) -> Result<Reply, Exception> {
    match packet {
        Packet::Call {
            function,
            args,
            bulk: Some(Bulk { kind, nbytes }),
        } => {
            let bulk = BulkArgument { kind, nbytes, data };
            session
                .call(function, &args, Some(bulk))
                .await
                .map(Reply::Call)
        }
        Packet::CopyTo { tensor, nbytes } => {
            session.copy_to(&tensor, nbytes, data).await?;
            Ok(Reply::Void)
        }
        packet => unreachable!("a {} packet has no payload", packet.code()),
    }
}

#[bisync]
async fn perform_syscall(
    session: &mut dyn Session,
    syscall: Syscall<'_>,
) -> Result<Reply, Exception> {
    let pointer = match syscall {
        Syscall::GetGlobalFunc { name } => session.get_function(&name).await?.unwrap_or(0),
        Syscall::AllocData {
            device,
            nbytes,
            alignment,
            dtype,
        } => session.allocate(device, nbytes, alignment, dtype).await?,
        Syscall::AllocDataWithScope { tensor, scope } => {
            session.allocate_tensor(&tensor, scope.as_deref()).await?
        }
        Syscall::CreateStream { device } => session.create_stream(device).await?,
        Syscall::GetCurrentStream { device } => session.current_stream(device).await?,
        Syscall::GetAttr { device, attr } => {
            return session.attr(device, attr).await.map(Reply::Attr);
        }
        other => {
            perform_action(session, other).await?;
            return Ok(Reply::Void);
        }
    };
    Ok(Reply::Pointer(pointer))
}

/// The syscalls that are answered by nothing.
#[bisync]
async fn perform_action(session: &mut dyn Session, syscall: Syscall<'_>) -> Result<(), Exception> {
    match syscall {
        Syscall::FreeHandle { handle, .. } => session.free(handle).await,
        Syscall::SetDevice { device } => session.set_device(device).await,
        Syscall::FreeData { device, data } => session.free_data(device, data).await,
        Syscall::StreamSync { device, stream } => session.sync_stream(device, stream).await,
        Syscall::CopyAmong { from, to, stream } => session.copy_among(&from, &to, stream).await,
        Syscall::FreeStream { device, stream } => session.free_stream(device, stream).await,
        Syscall::SetStream { device, stream } => session.set_stream(device, stream).await,
        other => Err(Exception::runtime(format!(
            "this server does not know the syscall {}",
            other.code()
        ))),
    }
}

/// Copies `nbytes` bytes in pieces.
#[bisync]
async fn pump(
    data: &mut DynRead<'_>,
    nbytes: u64,
    target: &mut DynWrite<'_>,
) -> Result<(), Exception> {
    let mut piece = vec![0; PIECE];
    let mut left = nbytes;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        if read_piece(data, &mut piece[..count]).await? < count {
            return Err(data_missing());
        }
        target.write_all(&piece[..count]).await?;
        left -= count as u64;
    }
    Ok(())
}

fn single(value: Value<'_>) -> Packet<'_> {
    Packet::Return(Values::from_iter([value]))
}

fn no_session() -> Exception {
    Exception::runtime("there is no session yet")
}

fn data_missing() -> Exception {
    Exception::runtime("the session has less data than was asked for")
}

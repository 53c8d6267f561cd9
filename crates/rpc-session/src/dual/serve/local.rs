//! A session of this process: functions in Rust, and its memory.

use std::io;
use std::ops::Range;
use std::sync::Arc;
#[super::super::only_async]
use std::task::Poll;

use rpc_proto::{BulkKind, DataType, Device, DeviceAttr, OwnedValue, TensorView, Value};

#[super::super::only_async]
use super::super::WriteExt as _;
use super::super::payload::{PIECE, ended_early, read_piece};
use super::super::{DynRead, DynWrite, bisync, dyn_trait};
use super::constructor::Construct;
use super::files::call_file_function;
use super::session::{BulkArgument, CallResult, Session};
use crate::local::{Callee, Span, State};
use crate::{Backend, Exception, Functions, LocalOptions, LocalValue, WorkDir};

/// A session whose functions are Rust functions, and whose device `cpu` is this process's memory.
///
/// Functions run where the session is served, one after the other, and until they return: in the async
/// twin, too. Where they take long, serve each session on a thread of its own.
pub struct LocalSession {
    state: State,
}

impl LocalSession {
    /// A session with these functions. Without a work directory it has no files.
    #[must_use]
    pub fn new(functions: &Functions, files: Option<WorkDir>, options: LocalOptions) -> Self {
        Self {
            state: State::new(functions, files, options),
        }
    }

    /// What it runs on, in place of the processor and functions in Rust alone.
    #[must_use]
    pub fn with_backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.state.set_backend(backend);
        self
    }

    /// How many handles the client holds now.
    #[must_use]
    pub fn handles(&self) -> usize {
        self.state.usage().handles
    }

    /// How many bytes of memory the client takes now.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.state.usage().memory
    }
}

impl std::fmt::Debug for LocalSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalSession")
            .field("usage", &self.state.usage())
            .field("files", &self.state.files())
            .finish_non_exhaustive()
    }
}

/// Makes a [`LocalSession`] for each client, all with the same functions and files.
///
/// ```
/// # #[cfg(feature = "sync")] {
/// use rpc_session::blocking::{Constructors, LocalSessions};
/// use rpc_session::{LocalOptions, WorkDir, test_functions};
///
/// let files = WorkDir::temporary()?;
/// let sessions = LocalSessions::new(test_functions(), Some(files), LocalOptions::default());
/// // What `serve` is given.
/// let constructors = Constructors::new(sessions);
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct LocalSessions {
    functions: Functions,
    files: Option<WorkDir>,
    options: LocalOptions,
    backend: Option<Arc<dyn Backend>>,
}

impl LocalSessions {
    /// Sessions as [`LocalSession::new`] makes them.
    #[must_use]
    pub fn new(functions: Functions, files: Option<WorkDir>, options: LocalOptions) -> Self {
        Self {
            functions,
            files,
            options,
            backend: None,
        }
    }

    /// What they run on, in place of the processor and functions in Rust alone.
    #[must_use]
    pub fn with_backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }
}

impl std::fmt::Debug for LocalSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalSessions")
            .field("functions", &self.functions)
            .field("files", &self.files)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[bisync]
#[dyn_trait]
impl Construct for LocalSessions {
    async fn construct(&self, args: &[Value<'_>]) -> Result<Box<dyn Session>, Exception> {
        if !args.is_empty() {
            return Err(Exception::new(
                "TypeError",
                format!("a local session takes no arguments, not {}", args.len()),
            ));
        }
        let (files, options) = (self.files.clone(), self.options.clone());
        let session = LocalSession::new(&self.functions, files, options);
        Ok(Box::new(match &self.backend {
            Some(backend) => session.with_backend(Arc::clone(backend)),
            None => session,
        }))
    }
}

#[bisync]
#[dyn_trait]
impl Session for LocalSession {
    async fn get_function(&mut self, name: &str) -> Result<Option<u64>, Exception> {
        self.state.get_function(name)
    }

    async fn call(
        &mut self,
        function: u64,
        args: &[Value<'_>],
        bulk: Option<BulkArgument<'_>>,
    ) -> Result<CallResult, Exception> {
        let function = match (self.state.callee(function)?, self.state.files()) {
            (Callee::Function(function), _) => function,
            (Callee::File(function), Some(files)) => {
                return call_file_function(function, files, args, bulk).await;
            }
            (Callee::File(_), None) => {
                return Err(Exception::runtime("this session has no files"));
            }
        };
        let Some(bulk) = bulk else {
            return self
                .state
                .call(&function, args, None)
                .map(CallResult::Value);
        };
        // Until the function returns.
        let _charge = self.state.charge(bulk.nbytes)?;
        let last = collected(bulk).await?;
        let returned = self.state.call(&function, args, Some(&last))?;
        Ok(CallResult::Value(returned))
    }

    async fn free(&mut self, handle: u64) -> Result<(), Exception> {
        self.state.free(handle)
    }

    async fn attr(&mut self, device: Device, attr: DeviceAttr) -> Result<OwnedValue, Exception> {
        self.state.attr(device, attr)
    }

    async fn allocate(
        &mut self,
        device: Device,
        nbytes: u64,
        alignment: u64,
        dtype: DataType,
    ) -> Result<u64, Exception> {
        self.state.allocate(device, nbytes, alignment, dtype)
    }

    async fn allocate_tensor(
        &mut self,
        tensor: &TensorView,
        scope: Option<&str>,
    ) -> Result<u64, Exception> {
        self.state.allocate_tensor(tensor, scope)
    }

    async fn free_data(&mut self, device: Device, data: u64) -> Result<(), Exception> {
        self.state.free_data(device, data)
    }

    async fn copy_to(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        data: &mut DynRead<'_>,
    ) -> Result<(), Exception> {
        let span = self.state.span(tensor, nbytes)?;
        let mut left = span.range.clone();
        while !left.is_empty() {
            match receive_some(&span, next_piece(&left), data).await? {
                Ok(0) => return Err(ended_early(nbytes).into()),
                Ok(count) => left.start += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn copy_from(
        &mut self,
        tensor: &TensorView,
        nbytes: u64,
        target: &mut DynWrite<'_>,
    ) -> Result<(), Exception> {
        let span = self.state.span(tensor, nbytes)?;
        let mut left = span.range.clone();
        while !left.is_empty() {
            match send_some(&span, next_piece(&left), target).await? {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(count) => left.start += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn copy_among(
        &mut self,
        from: &TensorView,
        to: &TensorView,
        stream: u64,
    ) -> Result<(), Exception> {
        self.state.copy_among(from, to, stream)
    }

    async fn set_device(&mut self, device: Device) -> Result<(), Exception> {
        self.state.backend().set_device(device)
    }

    async fn create_stream(&mut self, device: Device) -> Result<u64, Exception> {
        self.state.backend().create_stream(device)
    }

    async fn free_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.state.backend().free_stream(device, stream)
    }

    async fn set_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.state.backend().set_stream(device, stream)
    }

    async fn current_stream(&mut self, device: Device) -> Result<u64, Exception> {
        self.state.backend().current_stream(device)
    }

    async fn sync_stream(&mut self, device: Device, stream: u64) -> Result<(), Exception> {
        self.state.backend().sync_stream(device, stream)
    }

    async fn shutdown(&mut self) {
        self.state.clear();
    }
}

/// What is read or written in one go, while others wait for the memory.
fn next_piece(left: &Range<usize>) -> Range<usize> {
    const MOST: usize = 1 << 20;
    left.start..left.end.min(left.start + MOST)
}

/// Reads from the connection right into the memory, which is not locked while it waits; or by way of a
/// piece if it is not this machine's.
#[super::super::only_async]
async fn receive_some(
    span: &Span,
    range: Range<usize>,
    data: &mut DynRead<'_>,
) -> Result<io::Result<usize>, Exception> {
    if !span.is_host() {
        return receive_piece(span, range, data).await;
    }
    let read = std::future::poll_fn(|context| {
        let read = span.buffer.write(range.clone(), |bytes| {
            let mut target = tokio::io::ReadBuf::new(bytes);
            let read = std::pin::Pin::new(&mut *data).poll_read(context, &mut target);
            read.map_ok(|()| target.filled().len())
        });
        polled(read)
    });
    read.await
}

/// Reads from the connection right into the memory; or by way of a piece if others use the memory too (they
/// must not wait for this client), or it is not this machine's.
#[super::super::only_sync]
fn receive_some(
    span: &Span,
    range: Range<usize>,
    data: &mut DynRead<'_>,
) -> Result<io::Result<usize>, Exception> {
    if !span.is_private() {
        return receive_piece(span, range, data);
    }
    span.buffer.write(range, |bytes| data.read(bytes))
}

#[bisync]
async fn receive_piece(
    span: &Span,
    range: Range<usize>,
    data: &mut DynRead<'_>,
) -> Result<io::Result<usize>, Exception> {
    let mut piece = vec![0; range.len().min(PIECE)];
    let count = read_piece(data, &mut piece).await?;
    let came = range.start..range.start + count;
    let copy = |bytes: &mut [u8]| bytes.copy_from_slice(&piece[..count]);
    span.buffer.write(came, copy)?;
    Ok(Ok(count))
}

/// Writes from the memory right to the connection, which is not locked while it waits; or by way of a piece
/// if it is not this machine's.
#[super::super::only_async]
async fn send_some(
    span: &Span,
    range: Range<usize>,
    target: &mut DynWrite<'_>,
) -> Result<io::Result<usize>, Exception> {
    if !span.is_host() {
        return send_piece(span, range, target).await;
    }
    let written = std::future::poll_fn(|context| {
        let write = |bytes: &[u8]| std::pin::Pin::new(&mut *target).poll_write(context, bytes);
        polled(span.buffer.read(range.clone(), write))
    });
    written.await
}

/// What was polled while the memory was lent; that it was not lent is ready too.
#[super::super::only_async]
fn polled<T>(lent: Result<Poll<T>, Exception>) -> Poll<Result<T, Exception>> {
    match lent {
        Ok(polled) => polled.map(Ok),
        Err(error) => Poll::Ready(Err(error)),
    }
}

/// Writes from the memory right to the connection; or by way of a piece if others use the memory too, or it
/// is not this machine's.
#[super::super::only_sync]
fn send_some(
    span: &Span,
    range: Range<usize>,
    target: &mut DynWrite<'_>,
) -> Result<io::Result<usize>, Exception> {
    if !span.is_private() {
        return send_piece(span, range, target);
    }
    span.buffer.read(range, |bytes| target.write(bytes))
}

#[bisync]
async fn send_piece(
    span: &Span,
    range: Range<usize>,
    target: &mut DynWrite<'_>,
) -> Result<io::Result<usize>, Exception> {
    let part = range.start..range.end.min(range.start + PIECE);
    let piece = span.buffer.read(part, <[u8]>::to_vec)?;
    Ok(target.write_all(&piece).await.map(|()| piece.len()))
}

/// A large argument as a value.
#[bisync]
async fn collected(bulk: BulkArgument<'_>) -> Result<LocalValue, Exception> {
    let BulkArgument { kind, nbytes, data } = bulk;
    let none = || {
        Exception::new(
            "MemoryError",
            format!("there are no {nbytes} bytes of memory"),
        )
    };
    let len = usize::try_from(nbytes).map_err(|_| none())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| none())?;
    while bytes.len() < len {
        let filled = bytes.len();
        bytes.resize(len.min(filled + PIECE), 0);
        if read_piece(data, &mut bytes[filled..]).await? < bytes.len() - filled {
            return Err(ended_early(nbytes).into());
        }
    }
    match kind {
        BulkKind::Text => match String::from_utf8(bytes) {
            Ok(text) => Ok(LocalValue::Str(text)),
            Err(_) => Err(Exception::new("TypeError", "a text that is not UTF-8")),
        },
        BulkKind::Bytes => Ok(LocalValue::Bytes(bytes)),
    }
}

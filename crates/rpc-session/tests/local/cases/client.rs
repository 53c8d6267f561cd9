//! What an endpoint does with a session, in short.

use rpc_proto::{BulkKind, DataType, Device, Returned, Shape, TensorView, Value};
use rpc_session::{Exception, Functions, LocalOptions, WorkDir};

use super::{BulkArgument, CallResult, DynRead, LocalSession, ReadExt as _, Session as _, bisync};

pub(super) struct Client {
    pub(super) session: LocalSession,
}

impl Client {
    pub(super) fn new(functions: &Functions) -> Self {
        Self::with(functions, None, LocalOptions::default())
    }

    pub(super) fn with(
        functions: &Functions,
        files: Option<WorkDir>,
        options: LocalOptions,
    ) -> Self {
        Self {
            session: LocalSession::new(functions, files, options),
        }
    }

    /// With the functions of the reference's tests.
    pub(super) fn test() -> Self {
        Self::new(&rpc_session::test_functions())
    }
}

#[bisync]
impl Client {
    pub(super) async fn function(&mut self, name: &str) -> u64 {
        let found = self.session.get_function(name).await.unwrap();
        found.unwrap_or_else(|| panic!("there is no {name}"))
    }

    pub(super) async fn call(
        &mut self,
        function: u64,
        args: &[Value<'_>],
    ) -> Result<Returned<'static>, Exception> {
        let result = self.session.call(function, args, None).await?;
        Ok(received(result).await)
    }

    /// Calls a global function by its name.
    pub(super) async fn call_named(
        &mut self,
        name: &str,
        args: &[Value<'_>],
    ) -> Result<Returned<'static>, Exception> {
        let function = self.function(name).await;
        let result = self.call(function, args).await;
        self.session.free(function).await.unwrap();
        result
    }

    /// As `call_named`, with one more argument, which travels behind the others.
    pub(super) async fn call_bulk<'d>(
        &mut self,
        name: &str,
        args: &[Value<'_>],
        kind: BulkKind,
        nbytes: u64,
        data: &'d mut DynRead<'d>,
    ) -> Result<Returned<'static>, Exception> {
        let function = self.function(name).await;
        let bulk = BulkArgument { kind, nbytes, data };
        let result = self.session.call(function, args, Some(bulk)).await;
        self.session.free(function).await.unwrap();
        match result {
            Ok(result) => Ok(received(result).await),
            Err(error) => Err(error),
        }
    }

    /// A tensor in memory of its own.
    pub(super) async fn tensor(&mut self, shape: &[i64], dtype: DataType) -> TensorView {
        let mut view = view(0, shape, dtype);
        view.data = self.session.allocate_tensor(&view, None).await.unwrap();
        view
    }

    pub(super) async fn write(
        &mut self,
        view: &TensorView,
        mut bytes: &[u8],
    ) -> Result<(), Exception> {
        let nbytes = bytes.len() as u64;
        self.session.copy_to(view, nbytes, &mut bytes).await
    }

    pub(super) async fn read(
        &mut self,
        view: &TensorView,
        nbytes: u64,
    ) -> Result<Vec<u8>, Exception> {
        let mut bytes = Vec::new();
        self.session.copy_from(view, nbytes, &mut bytes).await?;
        Ok(bytes)
    }

    pub(super) async fn read_all(&mut self, view: &TensorView) -> Vec<u8> {
        self.read(view, view.nbytes().unwrap()).await.unwrap()
    }
}

/// A result, once all of it has come.
#[bisync]
async fn received(result: CallResult) -> Returned<'static> {
    match result {
        CallResult::Value(returned) => returned,
        CallResult::Bulk {
            kind,
            nbytes,
            mut data,
        } => {
            assert_eq!(kind, BulkKind::Bytes);
            let mut bytes = Vec::new();
            data.read_to_end(&mut bytes).await.unwrap();
            assert_eq!(bytes.len() as u64, nbytes);
            Returned::Value(bytes.into())
        }
    }
}

pub(super) fn view(data: u64, shape: &[i64], dtype: DataType) -> TensorView {
    TensorView {
        data,
        device: Device::cpu(0),
        dtype,
        shape: Shape::from(shape),
        byte_offset: 0,
    }
}

pub(super) fn value(returned: Returned<'static>) -> Value<'static> {
    match returned {
        Returned::Value(value) => value,
        other => panic!("expected a plain value, found {other:?}"),
    }
}

pub(super) fn tensor(returned: Returned<'static>) -> (TensorView, u64) {
    match returned {
        Returned::Tensor { tensor, handle } => (tensor, handle),
        other => panic!("expected a tensor, found {other:?}"),
    }
}

pub(super) fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// The message of an exception, which has all of `parts` in it.
#[track_caller]
pub(super) fn refused<T>(result: Result<T, Exception>, parts: &[&str]) {
    let Err(error) = result else {
        panic!("nothing was refused; expected {parts:?}");
    };
    for part in parts {
        assert!(
            error.to_string().contains(part),
            "{part:?} is not in {error}"
        );
    }
}

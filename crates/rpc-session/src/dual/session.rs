use std::sync::Arc;

use rpc_proto::handshake::SessionKey;
use rpc_proto::{Device, HandleKind};
use rpc_transport::{Address, ServerAddress};

use super::context::Context;
use super::device::RemoteDevice;
use super::files::Files;
use super::function::{Function, TimeEvaluator};
use super::module::{Module, time_evaluator};
use super::value::Handle;
use super::{Carrier, Link, bisync, connect_server, handshake};
use crate::{SessionError, SessionOptions, TimeEvaluatorOptions, names};

/// A session on a server.
///
/// Clones are the same session. It ends when it is [closed](RemoteSession::close), or when the last
/// clone and all that came out of it (functions, modules, tensors, …) are dropped.
#[derive(Debug, Clone)]
pub struct RemoteSession {
    context: Arc<Context>,
}

#[bisync]
impl RemoteSession {
    /// Opens a session on the server (or proxy) at `address`, which expects `key`: the match key that
    /// a tracker gave, or the server's own key (may be empty) if it has no tracker.
    ///
    /// # Errors
    /// As [`RemoteSession::connect_server`].
    pub async fn connect(
        address: &Address,
        key: &str,
        options: &SessionOptions,
    ) -> Result<Self, SessionError> {
        Self::connect_server(&address.clone().into(), key, options).await
    }

    /// The same by the kind of connection that the address says: TCP, or with the feature `websocket` also
    /// a WebSocket.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the key, it fails to construct the session
    /// ([`SessionError::Remote`], in its words), or a time limit passes.
    pub async fn connect_server(
        server: &ServerAddress,
        key: &str,
        options: &SessionOptions,
    ) -> Result<Self, SessionError> {
        let mut session_key = SessionKey::new(key)?;
        if let Some(limit) = options.session_timeout {
            session_key = session_key.with_timeout(limit);
        }
        Self::connect_as(server, &session_key, options).await
    }

    /// The same with the whole key of the handshake; its session timeout counts.
    pub(crate) async fn connect_as(
        server: &ServerAddress,
        key: &SessionKey,
        options: &SessionOptions,
    ) -> Result<Self, SessionError> {
        let mut stream = connect_server(server, &options.connect).await?;
        let accepted = handshake(&mut stream, &key.to_string(), &options.connect).await?;
        tracing::debug!(
            peer = stream.peer(),
            key = key.match_key(),
            server = accepted.key,
            "connected"
        );
        Self::on_stream(stream, options).await
    }

    /// Opens a session on a stream whose other end serves one already, with no handshake: the pipes of
    /// a child process, say.
    ///
    /// # Errors
    /// As [`RemoteSession::connect`].
    pub async fn on_stream(
        stream: Carrier,
        options: &SessionOptions,
    ) -> Result<Self, SessionError> {
        let context = Context::new(Link::new(stream, options), options.log_requests);
        let constructor = options.constructor.as_ref();
        context
            .init(constructor.map_or(&[], |constructor| constructor.values()))
            .await?;
        Ok(Self { context })
    }

    /// Ends the session: the server is told, and frees all that it holds. Later calls fail with
    /// [`SessionError::Closed`]; to close again does nothing.
    pub async fn close(&self) {
        self.context.link.close().await;
    }

    /// The global function `name` of the server; `None` if there is none.
    ///
    /// # Errors
    /// The server or the connection fails.
    pub async fn get_function(&self, name: &str) -> Result<Option<Function>, SessionError> {
        let raw = self.context.look_up(name).await?;
        let handle = || Handle::new(&self.context, raw, HandleKind::Function);
        Ok((raw != 0).then(|| Function::new(handle())))
    }

    /// The global function `name` of the server.
    ///
    /// # Errors
    /// [`SessionError::NoFunction`] if there is none; else as [`RemoteSession::get_function`].
    pub async fn function(&self, name: &str) -> Result<Function, SessionError> {
        self.get_function(name)
            .await?
            .ok_or_else(|| SessionError::NoFunction {
                name: name.to_owned(),
                hint: names::hint(name),
            })
    }

    /// The module in the uploaded file `name`. A server with a linker also takes object files and
    /// archives of them.
    ///
    /// # Errors
    /// The server cannot load it, or the connection fails.
    pub async fn load_module(&self, name: &str) -> Result<Module, SessionError> {
        let args = [name.into()];
        self.context
            .call_server(names::LOAD_MODULE, &args)
            .await?
            .try_into()
    }

    /// The module of what is linked into the server itself.
    ///
    /// # Errors
    /// The server has none, or the connection fails.
    pub async fn system_lib(&self) -> Result<Module, SessionError> {
        self.context
            .call_server(names::SYSTEM_LIB, &[])
            .await?
            .try_into()
    }

    /// What times the global function `name` on `device`.
    ///
    /// # Errors
    /// As [`Module::time_evaluator`].
    pub async fn time_evaluator(
        &self,
        name: &str,
        device: Device,
        options: &TimeEvaluatorOptions,
    ) -> Result<TimeEvaluator, SessionError> {
        time_evaluator(&self.context, ().into(), name, device, options).await
    }
}

impl RemoteSession {
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// The server's address, for messages.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.context.link.peer()
    }

    /// A device of the server. Nothing is sent; [`RemoteDevice::exists`] asks whether it is there.
    #[must_use]
    pub fn device(&self, device: Device) -> RemoteDevice {
        RemoteDevice::new(&self.context, device)
    }

    /// A processor of the server.
    #[must_use]
    pub fn cpu(&self, id: i32) -> RemoteDevice {
        self.device(Device::cpu(id))
    }

    /// The files of the session.
    #[must_use]
    pub fn files(&self) -> Files {
        Files::new(&self.context)
    }
}

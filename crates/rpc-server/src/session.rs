use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rpc_proto::Value;
use rpc_session::Exception;
use rpc_session::blocking::{Construct, Constructors, Session};
use serde::{Deserialize, Serialize};

/// One session that begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionContext {
    /// Its own directory, empty, which is removed after it.
    pub work_dir: PathBuf,
    /// The client's address, for messages.
    pub peer: String,
    /// How long it may last; none for ever.
    pub timeout: Option<Duration>,
}

/// What makes the constructors of one session. What it fails with is what the client is told.
pub(crate) type MakeConstructors =
    dyn Fn(&SessionContext) -> Result<Constructors, Exception> + Send + Sync;

/// Where a session runs.
#[derive(Clone)]
#[non_exhaustive]
pub enum Isolation {
    /// On a thread of this process. A function that goes on when its time is up keeps the session's
    /// place until it returns.
    InProcess(InProcess),
    /// In a process of its own: whatever happens there, it can be ended.
    #[cfg(unix)]
    Process(crate::WorkerCommand),
}

/// Sessions on threads; see [`Isolation::in_process`].
#[derive(Clone)]
pub struct InProcess(pub(crate) Arc<MakeConstructors>);

impl Isolation {
    /// Sessions on threads of this process, with the constructors that `make` makes for each. What it
    /// fails with is what the client is told.
    pub fn in_process(
        make: impl Fn(&SessionContext) -> Result<Constructors, Exception> + Send + Sync + 'static,
    ) -> Self {
        Self::InProcess(InProcess(Arc::new(make)))
    }
}

/// Constructors in place of those that could not be made: they tell the client why.
pub(crate) fn unprepared(error: &Exception) -> Constructors {
    let message = format!("this session cannot be prepared: {}", error.message());
    Constructors::new(Unprepared(Exception::new(error.kind(), message)))
}

struct Unprepared(Exception);

impl Construct for Unprepared {
    fn construct(&self, _: &[Value<'_>]) -> Result<Box<dyn Session>, Exception> {
        Err(self.0.clone())
    }
}

impl fmt::Debug for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InProcess(_) => f.write_str("InProcess"),
            #[cfg(unix)]
            Self::Process(command) => f.debug_tuple("Process").field(command).finish(),
        }
    }
}

//! How cases open a recorded session, and how they put what comes into the words of the recording.

use rpc_session::{SessionError, SessionOptions};

use super::{Function, Output, RemoteSession, bisync, only_async, only_sync};
use crate::recording::Recording;
use crate::replay::Replay;

/// A session of a recording, and the server that plays it.
pub(super) struct Played {
    pub(super) recording: Recording,
    pub(super) replay: Replay,
    pub(super) session: RemoteSession,
}

#[bisync]
impl Played {
    pub(super) async fn open(name: &str) -> Self {
        let recording = Recording::load(name);
        let replay = Replay::start(&recording, 0);
        let opened = connect(&replay, &SessionOptions::default()).await;
        Self {
            recording,
            replay,
            session: opened.unwrap(),
        }
    }

    /// A global function.
    pub(super) async fn function(&self, name: &str) -> Function {
        self.session.function(name).await.unwrap()
    }

    /// Closes the session, and sees to it that all that was due has been said.
    pub(super) async fn close(self) {
        self.session.close().await;
        finish(self.replay).await;
    }
}

#[bisync]
pub(super) async fn connect(
    replay: &Replay,
    options: &SessionOptions,
) -> Result<RemoteSession, SessionError> {
    RemoteSession::connect(replay.address(), "x1", options).await
}

/// Waits for the end of the replay, while the session's tasks go on.
#[only_async]
pub(super) async fn finish(replay: Replay) {
    if let Err(failed) = tokio::task::spawn_blocking(|| replay.finish()).await {
        std::panic::resume_unwind(failed.into_panic());
    }
}

#[only_sync]
pub(super) fn finish(replay: Replay) {
    replay.finish();
}

/// What a function gave back, as the recording writes it.
pub(super) fn described(output: &Output) -> String {
    /// Bytes of text or bytes that the reference keeps within a value.
    const SMALL: usize = 7;
    match output {
        Output::None => "NoneType None".into(),
        Output::Bool(true) => "bool True".into(),
        Output::Bool(false) => "bool False".into(),
        Output::Int(value) => format!("int {value}"),
        Output::Float(value) if value.is_nan() => "float nan".into(),
        Output::Float(value) => format!("float {value}"),
        Output::Str(text) if text.len() <= SMALL => format!("str '{text}'"),
        Output::Str(text) => format!("String '{text}'"),
        Output::Bytes(bytes) => {
            let kind = if bytes.len() <= SMALL {
                "bytes"
            } else {
                "Bytes"
            };
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{kind} {hex}")
        }
        Output::DataType(dtype) => format!("dtype dtype('{dtype}')"),
        Output::Device(device) => format!("Device {device}"),
        Output::Pointer(0) => "c_void_p c_void_p(None)".into(),
        Output::Pointer(address) => format!("c_void_p c_void_p({address})"),
        Output::Tensor(tensor) => {
            let sizes: Vec<_> = tensor.shape().iter().map(i64::to_string).collect();
            // Python's way to tell one size from a number in parentheses.
            let comma = if sizes.len() == 1 { "," } else { "" };
            format!("Tensor ({}{comma}) {}", sizes.join(", "), tensor.dtype())
        }
        Output::Function(_) => "Function ffi.Function".into(),
        Output::Module(_) => "Module ffi.Module(imports_=())".into(),
        Output::Object(_) => "RPCObjectRef runtime.RPCObjectRef".into(),
        other => panic!("what is {other:?}?"),
    }
}

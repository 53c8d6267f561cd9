use std::sync::Arc;

use super::bisync;
use super::value::{Argument, Handle, Output};
use crate::{SessionError, Timing};

/// A function of the server. It is freed there when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Function {
    handle: Arc<Handle>,
}

impl Function {
    pub(in super::super) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    pub(in super::super) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}

#[bisync]
impl Function {
    /// Calls the function; [`args!`](crate::args) makes the arguments.
    ///
    /// Bytes in the last place are sent from where they lie, however large they are.
    ///
    /// # Errors
    /// [`SessionError::Remote`] when the function fails, [`SessionError::ForeignHandle`] when an
    /// argument belongs to another session, or the connection fails.
    pub async fn call(&self, args: &[Argument<'_>]) -> Result<Output, SessionError> {
        self.handle.context.call(self.handle.raw, args).await
    }
}

/// Times a function on the server; made by `time_evaluator` of a module or a session.
#[derive(Debug, Clone)]
pub struct TimeEvaluator {
    function: Function,
}

impl TimeEvaluator {
    pub(in super::super) fn new(function: Function) -> Self {
        Self { function }
    }
}

#[bisync]
impl TimeEvaluator {
    /// Runs the function on these arguments as often as the options say, and tells how long it took.
    ///
    /// # Errors
    /// As [`Function::call`].
    pub async fn run(&self, args: &[Argument<'_>]) -> Result<Timing, SessionError> {
        let costs: Vec<u8> = self.function.call(args).await?.try_into()?;
        Timing::from_bytes(&costs)
    }
}

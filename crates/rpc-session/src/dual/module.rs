use std::sync::Arc;

use rpc_proto::Device;

use super::bisync;
use super::context::Context;
use super::function::{Function, TimeEvaluator};
use super::value::{Argument, Handle, Output};
use crate::{SessionError, TimeEvaluatorOptions, names};

/// A module of the server: compiled functions, and perhaps other modules. It is freed there when the
/// last clone is dropped.
#[derive(Debug, Clone)]
pub struct Module {
    handle: Arc<Handle>,
}

impl Module {
    pub(in super::super) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    pub(in super::super) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    fn context(&self) -> &Arc<Context> {
        &self.handle.context
    }
}

#[bisync]
impl Module {
    /// The function `name` of this module or of those that it imports; `None` if there is none.
    ///
    /// # Errors
    /// The server fails, or the connection does.
    pub async fn get_function(&self, name: &str) -> Result<Option<Function>, SessionError> {
        const SEARCH_IMPORTS: bool = true;
        let args = [self.into(), name.into(), SEARCH_IMPORTS.into()];
        let found = self
            .context()
            .call_server(names::MODULE_GET_FUNCTION, &args)
            .await?;
        match found {
            Output::None => Ok(None),
            found => found.try_into().map(Some),
        }
    }

    /// The function `name` of this module.
    ///
    /// # Errors
    /// [`SessionError::NoModuleFunction`] if there is none; else as [`Module::get_function`].
    pub async fn function(&self, name: &str) -> Result<Function, SessionError> {
        self.get_function(name)
            .await?
            .ok_or_else(|| SessionError::NoModuleFunction {
                name: name.to_owned(),
            })
    }

    /// The function that is meant when none is named, `main`.
    ///
    /// # Errors
    /// As [`Module::function`].
    pub async fn entry_function(&self) -> Result<Function, SessionError> {
        self.function(names::ENTRY).await
    }

    /// Makes the functions of `other` available to this module.
    ///
    /// # Errors
    /// The modules are of different sessions, or the server or the connection fails.
    pub async fn import_module(&self, other: &Module) -> Result<(), SessionError> {
        let args = [self.into(), other.into()];
        self.context()
            .call_server(names::IMPORT_MODULE, &args)
            .await?
            .try_into()
    }

    /// What times the function `name` of this module on `device`.
    ///
    /// # Errors
    /// [`SessionError::BadOption`], the server has no such function or cannot time, or the connection
    /// fails.
    pub async fn time_evaluator(
        &self,
        name: &str,
        device: Device,
        options: &TimeEvaluatorOptions,
    ) -> Result<TimeEvaluator, SessionError> {
        time_evaluator(self.context(), self.into(), name, device, options).await
    }
}

#[bisync]
pub(in super::super) async fn time_evaluator(
    context: &Arc<Context>,
    module: Argument<'_>,
    name: &str,
    device: Device,
    options: &TimeEvaluatorOptions,
) -> Result<TimeEvaluator, SessionError> {
    let mut args = vec![module, name.into()];
    args.extend(options.integers(device)?.map(Argument::from));
    args.push(options.preprocess.as_deref().unwrap_or_default().into());
    let evaluator = context.call_server(names::TIME_EVALUATOR, &args).await?;
    Ok(TimeEvaluator::new(evaluator.try_into()?))
}

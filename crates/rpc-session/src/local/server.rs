//! The functions that clients expect of every server.

use super::{
    Arg, Backend, Exception, Functions, LocalFunction, LocalModule, LocalOptions, random, timer,
};
use crate::names;

/// What there is to look functions up in.
pub(super) struct Server<'a> {
    pub(super) functions: &'a Functions,
    pub(super) system_lib: &'a LocalModule,
    pub(super) backend: &'a dyn Backend,
    pub(super) options: &'a LocalOptions,
}

impl Server<'_> {
    /// The function of that name, if it is one of these. What the user registers under such a name comes
    /// before.
    pub(super) fn function(&self, name: &str) -> Option<LocalFunction> {
        Some(match name {
            names::SYSTEM_LIB => self.system_lib(name),
            names::MODULE_GET_FUNCTION => LocalFunction::new(name, get_function),
            names::IMPORT_MODULE => LocalFunction::new(name, import),
            names::TIME_EVALUATOR => self.time_evaluator(name),
            random::FILL | random::FILL_FOR_MEASURE => LocalFunction::new(name, random::fill),
            names::MAX_PACKET_SIZE => {
                let bytes = self.options.max_packet?;
                LocalFunction::new(name, move || bytes)
            }
            _ => return None,
        })
    }

    /// Gives the functions in Rust; without any, what is linked into the backend.
    fn system_lib(&self, name: &str) -> LocalFunction {
        match self.backend.function(name, None) {
            Some(linked) if self.functions.has_no_system_lib() => linked,
            _ => {
                let system_lib = self.system_lib.clone();
                LocalFunction::new(name, move || system_lib.clone())
            }
        }
    }

    /// A backend times its own functions itself: it knows how long its devices work.
    fn time_evaluator(&self, name: &str) -> LocalFunction {
        let own = timer::evaluators(name, self.functions);
        let Some(of_backend) = self.backend.function(name, None) else {
            return own;
        };
        let functions = self.functions.clone();
        LocalFunction::packed(name, move |args| {
            let is_own = match args {
                [Arg::Module(module), ..] => module.as_compiled().is_none(),
                [Arg::None, Arg::Str(function), ..] => functions.get(function).is_some(),
                _ => true,
            };
            match is_own {
                true => own.call_with(args),
                false => of_backend.call_with(args),
            }
        })
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "so arguments come to a function"
)]
fn get_function(
    module: LocalModule,
    name: &str,
    query_imports: bool,
) -> Result<Option<LocalFunction>, Exception> {
    module.get_function(name, query_imports)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "so arguments come to a function"
)]
fn import(module: LocalModule, imported: LocalModule) -> Result<(), Exception> {
    module.import(&imported)
}

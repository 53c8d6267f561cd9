//! The functions that clients expect of every server.

use super::{Exception, Functions, LocalFunction, LocalModule, LocalOptions, random, timer};
use crate::names;

/// The function of that name, if it is one of these. What the user registers under such a name comes
/// before.
pub(super) fn function(
    name: &str,
    functions: &Functions,
    system_lib: &LocalModule,
    options: &LocalOptions,
) -> Option<LocalFunction> {
    Some(match name {
        names::SYSTEM_LIB => {
            let system_lib = system_lib.clone();
            LocalFunction::new(name, move || system_lib.clone())
        }
        names::MODULE_GET_FUNCTION => LocalFunction::new(name, get_function),
        names::IMPORT_MODULE => LocalFunction::new(name, import),
        names::TIME_EVALUATOR => timer::evaluators(name, functions),
        random::FILL | random::FILL_FOR_MEASURE => LocalFunction::new(name, random::fill),
        names::MAX_PACKET_SIZE => {
            let bytes = options.max_packet?;
            LocalFunction::new(name, move || bytes)
        }
        _ => return None,
    })
}

fn get_function(module: LocalModule, name: &str, query_imports: bool) -> Option<LocalFunction> {
    module.get_function(name, query_imports)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "so arguments come to a function"
)]
fn import(module: LocalModule, imported: LocalModule) -> Result<(), Exception> {
    module.import(&imported)
}

//! Modules that were compiled.

use std::any::Any;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rpc_session::{
    CompiledModule, Exception, LocalFunction, LocalModule, LocalValue, WorkDir, names,
};

use super::{call, exception};
use crate::link::Linker;
use crate::{Arg, Function, Object, Runtime, Value};

/// A module of the runtime.
pub(super) struct TvmModule {
    pub(super) object: Object,
}

impl CompiledModule for TvmModule {
    fn get_function(
        &self,
        name: &str,
        query_imports: bool,
    ) -> Result<Option<LocalFunction>, Exception> {
        let args = [Arg::Object(&self.object), name.into(), query_imports.into()];
        let found = match called("ffi.ModuleGetFunction", &args)? {
            Value::None => return Ok(None),
            Value::Object(object) => Function::try_from(object).ok(),
            _ => None,
        };
        let none = || Exception::runtime(format!("{name} of the module is no function"));
        Ok(Some(call::of_function(name, found.ok_or_else(none)?)))
    }

    fn import(&self, module: &dyn CompiledModule) -> Result<(), Exception> {
        let module: &dyn Any = module;
        let Some(module) = module.downcast_ref::<Self>() else {
            return Err(Exception::new("TypeError", "a module of another backend"));
        };
        let args = [Arg::Object(&self.object), Arg::Object(&module.object)];
        called("ffi.ModuleImportModule", &args).map(drop)
    }
}

/// What a global function of the runtime gives.
fn called(name: &str, args: &[Arg<'_>]) -> Result<Value, Exception> {
    let function = Runtime::of_process().named(name);
    function
        .and_then(|function| function.call(args))
        .map_err(exception)
}

/// The functions with which clients load modules that they have uploaded.
pub(super) fn function(name: &str, files: &WorkDir) -> Option<LocalFunction> {
    let files = files.clone();
    Some(match name {
        names::LOAD_MODULE => {
            LocalFunction::new(name, move |file: &str| load(&linked(&files, file)?))
        }
        names::DOWNLOAD_LINKED => {
            LocalFunction::new(name, move |file: &str| -> Result<Vec<u8>, Exception> {
                Ok(std::fs::read(linked(&files, file)?)?)
            })
        }
        _ => return None,
    })
}

fn load(library: &Path) -> Result<LocalModule, Exception> {
    let path = library.to_string_lossy();
    match call::local_value(called("ffi.ModuleLoadFromFile", &[Arg::Str(&path)])?)? {
        LocalValue::Module(module) => Ok(module),
        other => Err(Exception::runtime(format!("{other:?} is no module"))),
    }
}

/// The path of a library; what is none yet is linked into one beside it.
fn linked(files: &WorkDir, name: &str) -> Result<PathBuf, Exception> {
    // That it is there, and inside.
    files.open(name)?;
    let path = files.path_of(name)?;
    let extension = path.extension().and_then(OsStr::to_str);
    if !matches!(extension, Some("o" | "tar")) {
        return Ok(path);
    }
    let mut library = path.clone().into_os_string();
    library.push(".so");
    let library = PathBuf::from(library);
    Linker::find()?.shared_library(&path, &library)?;
    Ok(library)
}

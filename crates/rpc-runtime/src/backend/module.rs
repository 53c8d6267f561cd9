//! Modules that were compiled.

use std::any::Any;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rpc_session::{CompiledModule, Exception, LocalFunction, LocalModule, WorkDir};

use super::{call, exception};
use crate::link::Linker;
use crate::{Arg, Object, Runtime, Value};

/// A module of the runtime.
pub(super) struct TvmModule {
    runtime: Runtime,
    pub(super) object: Object,
}

impl TvmModule {
    pub(super) fn new(runtime: Runtime, object: Object) -> Self {
        Self { runtime, object }
    }
}

impl CompiledModule for TvmModule {
    fn get_function(
        &self,
        name: &str,
        query_imports: bool,
    ) -> Result<Option<LocalFunction>, Exception> {
        let get = self.runtime.named("ffi.ModuleGetFunction");
        let args = [Arg::Object(&self.object), name.into(), query_imports.into()];
        match get.and_then(|get| get.call(&args)).map_err(exception)? {
            Value::None => Ok(None),
            Value::Object(object) if object.is_function() => Ok(object
                .try_into()
                .ok()
                .map(|found| call::of_function(name, found))),
            other => Err(Exception::runtime(format!("{other:?} is no function"))),
        }
    }

    fn import(&self, module: &dyn CompiledModule) -> Result<(), Exception> {
        let module: &dyn Any = module;
        let Some(module) = module.downcast_ref::<Self>() else {
            return Err(Exception::new("TypeError", "a module of another backend"));
        };
        let import = self.runtime.named("ffi.ModuleImportModule");
        let args = [Arg::Object(&self.object), Arg::Object(&module.object)];
        let imported = import.and_then(|import| import.call(&args));
        imported.map(drop).map_err(exception)
    }
}

/// The functions with which clients load modules that they have uploaded.
pub(super) fn function(runtime: Runtime, name: &str, files: &WorkDir) -> Option<LocalFunction> {
    let files = files.clone();
    Some(match name {
        "tvm.rpc.server.load_module" => LocalFunction::new(name, move |file: &str| {
            load(runtime, &linked(&files, file)?)
        }),
        "tvm.rpc.server.download_linked_module" => {
            LocalFunction::new(name, move |file: &str| -> Result<Vec<u8>, Exception> {
                Ok(std::fs::read(linked(&files, file)?)?)
            })
        }
        _ => return None,
    })
}

fn load(runtime: Runtime, library: &Path) -> Result<LocalModule, Exception> {
    let load = runtime.named("ffi.ModuleLoadFromFile");
    let path = library.to_string_lossy();
    let loaded = load.and_then(|load| load.call(&[Arg::Str(&path)]));
    match loaded.map_err(exception)? {
        Value::Object(object) if object.is_module() => {
            Ok(LocalModule::compiled(TvmModule::new(runtime, object)))
        }
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

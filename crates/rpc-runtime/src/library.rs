//! Loading the libraries. There is at most one runtime in a process, and it stays until the process ends,
//! since what it has given out may be used until then.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

#[cfg(not(unix))]
use libloading::Library;
#[cfg(unix)]
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use rpc_proto::Device;

use crate::abi::{ByteArray, Symbols, Version};
use crate::find::{Libraries, NotFound, Place, find};
use crate::object::Object;
use crate::{Error, Function};

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is not there.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// A library cannot be loaded, or is another one than its name says.
    #[error("cannot load {}", path.display())]
    Library {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: libloading::Error,
    },
    /// The interface is one that this crate does not know.
    #[error("{} has the version {major}.{minor} of the interface, and 0.1 was expected", path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// The major version that it has.
        major: u32,
        /// The minor version that it has.
        minor: u32,
    },
    /// Another runtime was loaded before, and a process has at most one.
    #[error("the runtime of {} was loaded before", path.display())]
    Another {
        /// That one's library.
        path: PathBuf,
    },
}

/// The runtime of this process. A copy is the same one.
#[derive(Debug, Clone, Copy)]
pub struct Runtime(());

/// What was loaded.
#[derive(Debug)]
struct Loaded {
    libraries: Libraries,
    symbols: Symbols,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();
/// Held by whoever loads.
static LOADING: Mutex<()> = Mutex::new(());

/// The functions of the runtime. Whoever has an object or a function of it has loaded it.
pub(crate) fn symbols() -> &'static Symbols {
    match LOADED.get() {
        Some(loaded) => &loaded.symbols,
        None => unreachable!("something of a runtime that was not loaded"),
    }
}

impl Runtime {
    /// Finds the libraries and loads them, if that was not done before.
    ///
    /// # Errors
    /// They are not there, cannot be loaded or have another interface; or other ones were loaded before.
    pub fn load(place: &Place) -> Result<Self, LoadError> {
        let libraries = find(place)?;
        let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        match LOADED.get() {
            Some(loaded) if loaded.libraries == libraries => return Ok(Self(())),
            Some(loaded) => {
                return Err(LoadError::Another {
                    path: loaded.libraries.ffi.clone(),
                });
            }
            None => {}
        }
        let symbols = load(&libraries)?;
        tracing::debug!(ffi = %libraries.ffi.display(), runtime = %libraries.runtime.display(), "runtime");
        // Nobody else sets it: this is the only place, and it is locked.
        LOADED.get_or_init(|| Loaded { libraries, symbols });
        Ok(Self(()))
    }

    /// The runtime that something of which is at hand.
    pub(crate) fn of_process() -> Self {
        Self(())
    }

    /// The global function of this name, which every runtime has.
    pub(crate) fn named(self, name: &str) -> Result<Function, Error> {
        let missing = || {
            Error::new(
                "RuntimeError",
                format!("the runtime has no function {name}"),
            )
        };
        self.function(name).ok_or_else(missing)
    }

    /// The current stream of a device.
    pub(crate) fn current_stream(self, device: Device) -> u64 {
        // SAFETY: any numbers may be given.
        (unsafe { (symbols().current_stream)(device.device_type.0, device.id) }) as u64
    }

    /// The libraries that were loaded.
    #[must_use]
    pub fn libraries(self) -> &'static Libraries {
        match LOADED.get() {
            Some(loaded) => &loaded.libraries,
            None => unreachable!("a runtime that was not loaded"),
        }
    }

    /// The global function of this name, of the runtime or of a library that registered it.
    #[must_use]
    pub fn function(self, name: &str) -> Option<Function> {
        let mut found = std::ptr::null_mut();
        // SAFETY: the name is read during the call alone, and `found` is a place for a handle.
        let status = unsafe { (symbols().get_global)(&ByteArray::of(name.as_bytes()), &mut found) };
        if status != 0 {
            // It is said of names that are not there in some versions; others give null.
            drop(Error::take());
        }
        // SAFETY: a handle that is given here is a reference of ours.
        unsafe { Object::from_raw(found) }.map(Function::new)
    }

    /// Makes a function one that modules and others find by its name. One of that name is replaced only if
    /// `replace` says so.
    ///
    /// # Errors
    /// There is one of that name.
    pub fn register(self, name: &str, function: &Function, replace: bool) -> Result<(), Error> {
        let name = ByteArray::of(name.as_bytes());
        let raw = function.object().as_raw();
        // SAFETY: the name is copied during the call, and the runtime takes a reference of its own.
        match unsafe { (symbols().set_global)(&name, raw, replace.into()) } {
            0 => Ok(()),
            _ => Err(Error::take()),
        }
    }

    /// Loads another library, whose global functions are registered while that is done.
    ///
    /// # Errors
    /// It cannot be loaded.
    pub fn load_library(self, path: &std::path::Path) -> Result<(), LoadError> {
        open(path).map(std::mem::forget)
    }
}

/// Opens a library, and lets those that come later find what is in it.
fn open(path: &std::path::Path) -> Result<Library, LoadError> {
    // SAFETY: what a library does when it is loaded is its own business; whoever names it trusts it.
    #[cfg(unix)]
    let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    // SAFETY: as above.
    #[cfg(not(unix))]
    let opened = unsafe { Library::new(path) };
    opened.map_err(|source| LoadError::Library {
        path: path.to_owned(),
        source,
    })
}

fn load(libraries: &Libraries) -> Result<Symbols, LoadError> {
    let ffi = open(&libraries.ffi)?;
    let failed = |source| LoadError::Library {
        path: libraries.ffi.clone(),
        source,
    };
    macro_rules! symbol {
        ($name:literal) => {
            // SAFETY: the types are those of the C header, for the version that is checked below.
            *unsafe { ffi.get($name) }.map_err(failed)?
        };
    }
    let symbols = Symbols {
        version: symbol!(b"TVMFFIGetVersion"),
        inc_ref: symbol!(b"TVMFFIObjectIncRef"),
        dec_ref: symbol!(b"TVMFFIObjectDecRef"),
        get_global: symbol!(b"TVMFFIFunctionGetGlobal"),
        set_global: symbol!(b"TVMFFIFunctionSetGlobal"),
        call: symbol!(b"TVMFFIFunctionCall"),
        to_owned: symbol!(b"TVMFFIAnyViewToOwnedAny"),
        take_error: symbol!(b"TVMFFIErrorMoveFromRaised"),
        set_error: symbol!(b"TVMFFIErrorSetRaised"),
        new_error: symbol!(b"TVMFFIErrorCreate"),
        new_function: symbol!(b"TVMFFIFunctionCreate"),
        new_str: symbol!(b"TVMFFIStringFromByteArray"),
        new_bytes: symbol!(b"TVMFFIBytesFromByteArray"),
        current_stream: symbol!(b"TVMFFIEnvGetStream"),
    };
    let mut version = Version::default();
    // SAFETY: it writes three numbers to where there is room for them.
    unsafe { (symbols.version)(&mut version) };
    if (version.major, version.minor) != (0, 1) {
        return Err(LoadError::Version {
            path: libraries.ffi.clone(),
            major: version.major,
            minor: version.minor,
        });
    }
    // They stay: objects of theirs may live until the process ends.
    std::mem::forget(ffi);
    std::mem::forget(open(&libraries.runtime)?);
    Ok(symbols)
}

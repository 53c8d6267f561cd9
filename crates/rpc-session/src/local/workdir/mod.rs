mod function;
mod name;
mod new_file;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;

use super::Exception;
pub use function::FileFunction;
use name::Place;
pub use new_file::NewFile;

/// The directory of a session's files. A clone is the same directory.
///
/// Clients name files by paths relative to it. No name leads out of it, also not over a symbolic link:
/// what lies elsewhere is not found by looking at the name alone, but never opened.
///
/// ```
/// use std::io::{Read, Write};
/// use rpc_session::WorkDir;
///
/// let files = WorkDir::temporary()?;
/// let mut new = files.create("data/x.bin").unwrap();
/// new.write_all(b"123")?;
/// new.commit().unwrap();
///
/// let (mut file, nbytes) = files.open("data/x.bin").unwrap();
/// let mut text = String::new();
/// file.read_to_string(&mut text)?;
/// assert_eq!((text.as_str(), nbytes), ("123", 3));
/// assert!(files.open("../x.bin").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct WorkDir {
    root: Arc<Root>,
    absolute: bool,
}

#[derive(Debug)]
struct Root {
    dir: Dir,
    path: PathBuf,
    /// Removed with the last clone.
    _temporary: Option<TempDir>,
}

impl WorkDir {
    /// The directory at `path`, which is made if there is none.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Self::at(path.as_ref().canonicalize()?, None)
    }

    /// A fresh directory among the system's temporary files. It is removed, with all that is in it,
    /// when the last clone is dropped.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn temporary() -> io::Result<Self> {
        let temporary = tempfile::Builder::new().prefix("rpc-work-").tempdir()?;
        let path = temporary.path().canonicalize()?;
        Self::at(path, Some(temporary))
    }

    fn at(path: PathBuf, temporary: Option<TempDir>) -> io::Result<Self> {
        let root = Root {
            dir: Dir::open_ambient_dir(&path, ambient_authority())?,
            path,
            _temporary: temporary,
        };
        Ok(Self {
            root: Arc::new(root),
            absolute: false,
        })
    }

    /// Whether clients may also name files by absolute paths, anywhere on this machine; default no.
    #[must_use]
    pub fn with_absolute_paths(mut self, allowed: bool) -> Self {
        self.absolute = allowed;
        self
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root.path
    }

    /// A new file, which gets its name when it is complete. The directories above it are made.
    ///
    /// # Errors
    /// The name does not stay inside, or the file cannot be made.
    pub fn create(&self, name: &str) -> Result<NewFile, Exception> {
        let place = self.place(name)?;
        let made = || {
            place.make_parents()?;
            place.create()
        };
        made().map_err(|error| failed(name, &error))
    }

    /// Opens a file for reading, and says how many bytes it has.
    ///
    /// # Errors
    /// The name does not stay inside, or there is no such file.
    pub fn open(&self, name: &str) -> Result<(File, u64), Exception> {
        let place = self.place(name)?;
        place.open().map_err(|error| failed(name, &error))
    }

    /// Removes a file. That there is none is no error.
    ///
    /// # Errors
    /// The name does not stay inside, or the file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Exception> {
        match self.place(name)?.remove() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(name, &error)),
            _ => Ok(()),
        }
    }

    /// The paths of what is in a directory, in order. `""` is the work directory itself.
    ///
    /// # Errors
    /// The name does not stay inside, or there is no such directory.
    pub fn list(&self, name: &str) -> Result<Vec<PathBuf>, Exception> {
        let place = if is_root(name) {
            Place::root(&self.root)?
        } else {
            self.place(name)?
        };
        let mut paths = place.list().map_err(|error| failed(name, &error))?;
        paths.sort();
        Ok(paths)
    }

    /// The path of a file, whether or not there is one. What is there is inside.
    ///
    /// # Errors
    /// The name does not stay inside.
    pub fn path_of(&self, name: &str) -> Result<PathBuf, Exception> {
        if is_root(name) {
            return Ok(self.root.path.clone());
        }
        let place = self.place(name)?;
        place.check().map_err(|error| failed(name, &error))?;
        Ok(place.path())
    }

    fn place(&self, name: &str) -> Result<Place, Exception> {
        Place::of(name, &self.root, self.absolute)
    }
}

fn is_root(name: &str) -> bool {
    name.is_empty() || name == "."
}

/// Why a file of a client failed.
fn failed(name: &str, error: &io::Error) -> Exception {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => "FileNotFoundError",
        io::ErrorKind::PermissionDenied => "PermissionError",
        _ => "OSError",
    };
    Exception::new(
        kind,
        format!("file {name:?} of the work directory: {error}"),
    )
}

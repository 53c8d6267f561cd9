//! What the names of clients lead to.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::{NewFile, Root, failed};
use crate::Exception;

/// A path below a directory that it cannot leave.
pub(super) struct Place {
    dir: Dir,
    /// Of the directory.
    base: PathBuf,
    below: PathBuf,
}

impl Place {
    pub(super) fn of(name: &str, root: &Root, absolute: bool) -> Result<Self, Exception> {
        let path = Path::new(name);
        if name.contains('\0') || path.file_name().is_none() || name.ends_with('/') {
            return Err(refused(name, "it is not the name of a file"));
        }
        if path.is_absolute() && absolute {
            return Self::absolute(path).map_err(|error| failed(name, &error));
        }
        let ordinary = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(ordinary) {
            return Err(refused(name, "it does not stay inside"));
        }
        let below = path.components().filter(|part| *part != Component::CurDir);
        Self::below(root, below.collect()).map_err(|error| failed(name, &error))
    }

    /// The directory itself.
    pub(super) fn root(root: &Root) -> Result<Self, Exception> {
        Self::below(root, PathBuf::from(".")).map_err(|error| failed(".", &error))
    }

    fn below(root: &Root, below: PathBuf) -> io::Result<Self> {
        Ok(Self {
            dir: root.dir.try_clone()?,
            base: root.path.clone(),
            below,
        })
    }

    /// Below the nearest directory that exists, whichever that is.
    fn absolute(path: &Path) -> io::Result<Self> {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut base = real.parent();
        while let Some(missing) = base.filter(|base| !base.is_dir()) {
            base = missing.parent();
        }
        let base = base.ok_or(io::ErrorKind::NotFound)?;
        let below = real.strip_prefix(base).map_err(io::Error::other)?;
        Ok(Self {
            dir: Dir::open_ambient_dir(base, ambient_authority())?,
            base: base.to_owned(),
            below: below.to_owned(),
        })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.base.join(&self.below)
    }

    pub(super) fn make_parents(&self) -> io::Result<()> {
        match self.below.parent() {
            Some(parent) if parent != Path::new("") => self.dir.create_dir_all(parent),
            _ => Ok(()),
        }
    }

    pub(super) fn create(self) -> io::Result<NewFile> {
        // A device, for example, is not replaced by a file; a link that leads out neither.
        match self.dir.metadata(&self.below) {
            Ok(there) => file_only(there.is_file())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let parent = self.below.parent().unwrap_or(Path::new("")).to_owned();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        loop {
            let unfinished = parent.join(unfinished_name());
            match self.dir.open_with(&unfinished, &options) {
                // Left behind by a process that ended too early, with the same number as this one.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let file = file.into_std();
                    return Ok(NewFile::new(self.dir, unfinished, self.below, file));
                }
            }
        }
    }

    pub(super) fn open(&self) -> io::Result<(File, u64)> {
        // To open a pipe would wait for whoever writes to it.
        file_only(self.dir.metadata(&self.below)?.is_file())?;
        let file = self.dir.open(&self.below)?.into_std();
        let metadata = file.metadata()?;
        file_only(metadata.is_file())?;
        Ok((file, metadata.len()))
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.dir.remove_file(&self.below)
    }

    pub(super) fn list(&self) -> io::Result<Vec<PathBuf>> {
        let base = if self.below == Path::new(".") {
            self.base.clone()
        } else {
            self.path()
        };
        let entries = self.dir.read_dir(&self.below)?;
        entries
            .map(|entry| Ok(base.join(entry?.file_name())))
            .collect()
    }

    /// Checks that what is there, or the nearest directory above, is inside.
    pub(super) fn check(&self) -> io::Result<()> {
        for above in self.below.ancestors() {
            match self.dir.canonicalize(above) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        Ok(())
    }
}

fn file_only(is_file: bool) -> io::Result<()> {
    if is_file {
        return Ok(());
    }
    Err(io::Error::other("it is not a file"))
}

/// A name that nobody else has.
fn unfinished_name() -> impl AsRef<OsStr> + AsRef<Path> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".upload-{}-{number}", std::process::id())
}

fn refused(name: &str, why: &str) -> Exception {
    // A name may be as long as a packet.
    let shown: String = name.chars().take(200).collect();
    Exception::new(
        "PermissionError",
        format!("file {shown:?} of the work directory: {why}"),
    )
}

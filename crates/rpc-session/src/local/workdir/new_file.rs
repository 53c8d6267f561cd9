use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use cap_std::fs::Dir;

use super::failed;
use crate::Exception;

/// A file that has no name yet: [`NewFile::commit`] gives it its name, and removes what had that name
/// before. Dropped before that, it is gone.
#[derive(Debug)]
pub struct NewFile {
    dir: Dir,
    /// Where its bytes are until then; nothing once it has its name.
    unfinished: Option<PathBuf>,
    name: PathBuf,
    file: File,
}

impl NewFile {
    pub(super) fn new(dir: Dir, unfinished: PathBuf, name: PathBuf, file: File) -> Self {
        Self {
            dir,
            unfinished: Some(unfinished),
            name,
            file,
        }
    }

    /// The file itself, to write to it in another way.
    ///
    /// # Errors
    /// The system gives no second descriptor.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// What an error while writing means to a client.
    #[must_use]
    pub fn failed(&self, error: &io::Error) -> Exception {
        failed(&self.name.to_string_lossy(), error)
    }

    /// The file is complete.
    ///
    /// # Errors
    /// It cannot have that name, for example since a directory has it.
    pub fn commit(mut self) -> Result<(), Exception> {
        if let Some(unfinished) = &self.unfinished {
            let renamed = self.dir.rename(unfinished, &self.dir, &self.name);
            renamed.map_err(|error| self.failed(&error))?;
            self.unfinished = None;
        }
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(unfinished) = self.unfinished.take()
            && let Err(error) = self.dir.remove_file(&unfinished)
        {
            tracing::warn!(file = %unfinished.display(), %error, "an unfinished file stays");
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    /// A file in `directory` whose bytes go to a device that is always full.
    fn on_full_disk(directory: &tempfile::TempDir) -> NewFile {
        let dir = Dir::open_ambient_dir(directory.path(), ambient_authority()).unwrap();
        dir.write("unfinished", b"").unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        NewFile::new(dir, "unfinished".into(), "name".into(), full)
    }

    #[test]
    fn a_full_disk_is_told_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = on_full_disk(&directory);
        let error = file.write_all(b"bytes").unwrap_err();
        let error = file.failed(&error).to_string();
        assert!(
            error.contains("file \"name\" of the work directory"),
            "{error}"
        );
        assert!(error.contains("No space left on device"), "{error}");
        drop(file);
        assert!(directory.path().read_dir().unwrap().next().is_none());
    }
}

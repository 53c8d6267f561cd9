use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{env, io};

/// How a worker process is started.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    program: PathBuf,
    /// It is the program of this process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    is_this: bool,
    args: Vec<OsString>,
}

impl WorkerCommand {
    /// A program that calls [`run`](super::run).
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            is_this: false,
            args: Vec::new(),
        }
    }

    /// The program of this process. On Linux it stays the same one when its file is replaced or removed.
    ///
    /// # Errors
    /// The system does not say which that is.
    pub fn this_program() -> io::Result<Self> {
        Ok(Self {
            is_this: true,
            ..Self::new(env::current_exe()?)
        })
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(super) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// Where the program is now.
    pub(super) fn program(&self) -> &Path {
        #[cfg(target_os = "linux")]
        if self.is_this && !is_running(&self.program) {
            return Path::new(RUNNING);
        }
        &self.program
    }
}

/// The program of this process, whatever became of its file.
#[cfg(target_os = "linux")]
const RUNNING: &str = "/proc/self/exe";

/// Is it the file that this process runs?
#[cfg(target_os = "linux")]
fn is_running(program: &Path) -> bool {
    use std::fs::metadata;
    use std::os::unix::fs::MetadataExt;
    match (metadata(program), metadata(RUNNING)) {
        (Ok(there), Ok(running)) => (there.dev(), there.ino()) == (running.dev(), running.ino()),
        // Without such a file there is no other way.
        (_, Err(_)) => true,
        (Err(_), Ok(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_this_process_is_where_it_is() {
        let command = WorkerCommand::this_program().unwrap().arg("worker");
        assert_eq!(command.program(), env::current_exe().unwrap());
        assert_eq!(command.args(), ["worker"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_program_of_this_process_is_found_when_its_file_is_not() {
        for elsewhere in ["/no such file", "/bin/sh"] {
            let replaced = WorkerCommand {
                program: elsewhere.into(),
                ..WorkerCommand::this_program().unwrap()
            };
            assert_eq!(replaced.program(), Path::new(RUNNING));
            let other = WorkerCommand::new(elsewhere);
            assert_eq!(other.program(), Path::new(elsewhere));
        }
    }
}

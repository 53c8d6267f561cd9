//! The program that a client asks a server to start.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs, thread};

use rpc_proto::Value;
use rpc_transport::TransportError;
use tempfile::TempPath;

use crate::Exception;

/// The path of the program that the arguments of `rpc.PopenSession` name or bring, and the file that
/// was made for it.
pub(crate) fn find(args: &[Value<'_>]) -> Result<(PathBuf, Option<TempPath>), Exception> {
    match args.first() {
        Some(Value::Str(path)) => {
            let path = env::current_dir()?.join(&**path);
            match fs::metadata(&path) {
                Ok(found) if !found.is_file() => Err(unusable(&path, "is not a file")),
                Ok(found) if found.permissions().mode() & 0o111 == 0 => {
                    Err(unusable(&path, "is not executable"))
                }
                Ok(_) => Ok((path, None)),
                Err(error) => Err(unusable(&path, &error.to_string())),
            }
        }
        Some(Value::Bytes(program)) => {
            let mut file = tempfile::Builder::new()
                .prefix("rpc-program-")
                .permissions(fs::Permissions::from_mode(0o700))
                .tempfile()?;
            file.write_all(program)?;
            let path = file.into_temp_path();
            Ok((path.to_path_buf(), Some(path)))
        }
        other => Err(Exception::new(
            "TypeError",
            format!(
                "rpc.PopenSession: expected the path of a program or its bytes, found {}",
                other.map_or("no argument", Value::kind)
            ),
        )),
    }
}

/// Starts the program at `path` with `spawn`. While another thread starts a program of its own, that one
/// holds for a moment what this thread has open, and a file that is open for writing cannot be run: a
/// program that was just written may have to wait.
pub(crate) fn start<S>(
    path: &Path,
    spawn: impl Fn(Command) -> Result<S, TransportError>,
) -> Result<S, TransportError> {
    const TRIES: u32 = 200;
    for _ in 1..TRIES {
        match spawn(Command::new(path)) {
            Err(TransportError::Spawn { source, .. })
                if source.kind() == ErrorKind::ExecutableFileBusy =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            started => return started,
        }
    }
    spawn(Command::new(path))
}

fn unusable(path: &Path, why: &str) -> Exception {
    Exception::runtime(format!("rpc.PopenSession: {} {why}", path.display()))
}

//! The program that a client asks a server to start.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::{env, fs};

use rpc_proto::Value;
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

fn unusable(path: &std::path::Path, why: &str) -> Exception {
    Exception::runtime(format!("rpc.PopenSession: {} {why}", path.display()))
}

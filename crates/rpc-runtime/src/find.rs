//! Where TVM's libraries are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where to look for the libraries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Place {
    /// In the folder that the environment names by `TVM_RPC_RUNTIME`, in those of the library path, and in the
    /// site-packages of the `python3` on the path, in this order.
    #[default]
    Auto,
    /// In this folder: beside each other, or as site-packages has them.
    Folder(PathBuf),
}

/// The two libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libraries {
    /// The folder in which they were found: [`Place::Folder`] finds them there again.
    pub folder: PathBuf,
    /// `libtvm_ffi`: objects, functions, errors.
    pub ffi: PathBuf,
    /// `libtvm_runtime`: devices, tensors, modules.
    pub runtime: PathBuf,
}

/// There are no such libraries.
#[derive(Debug, thiserror::Error)]
#[error("no {} and {} in {}", file_name("tvm_ffi"), file_name("tvm_runtime"), in_words(.looked_in))]
pub struct NotFound {
    /// Where they were looked for.
    pub looked_in: Vec<PathBuf>,
}

fn in_words(folders: &[PathBuf]) -> String {
    let folders: Vec<_> = folders.iter().map(|f| f.display().to_string()).collect();
    match folders.is_empty() {
        true => "any folder: there is none to look in".to_owned(),
        false => folders.join(", "),
    }
}

/// The variable of the environment that names a folder with the libraries.
pub const VARIABLE: &str = "TVM_RPC_RUNTIME";

/// Finds the libraries.
///
/// # Errors
/// They are in none of the places.
pub fn find(place: &Place) -> Result<Libraries, NotFound> {
    let folders = match place {
        Place::Folder(folder) => vec![folder.clone()],
        Place::Auto => match env::var_os(VARIABLE) {
            Some(folder) => vec![folder.into()],
            None => library_path().into_iter().chain(site_packages()).collect(),
        },
    };
    let found = folders.iter().find_map(|folder| within(folder));
    found.ok_or(NotFound { looked_in: folders })
}

/// The libraries beside each other in a folder, or as site-packages has them.
fn within(folder: &Path) -> Option<Libraries> {
    let here = Libraries {
        folder: folder.to_owned(),
        ffi: folder.join(file_name("tvm_ffi")),
        runtime: folder.join(file_name("tvm_runtime")),
    };
    let packages = Libraries {
        folder: folder.to_owned(),
        ffi: folder.join("tvm_ffi/lib").join(file_name("tvm_ffi")),
        runtime: folder.join("tvm/lib").join(file_name("tvm_runtime")),
    };
    let are_there = |libraries: &Libraries| libraries.ffi.is_file() && libraries.runtime.is_file();
    [here, packages].into_iter().find(are_there)
}

fn file_name(library: &str) -> String {
    format!(
        "{}{library}{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    )
}

fn library_path() -> Vec<PathBuf> {
    let variable = match env::consts::OS {
        "macos" => "DYLD_LIBRARY_PATH",
        "windows" => "PATH",
        _ => "LD_LIBRARY_PATH",
    };
    let folders = env::var_os(variable).unwrap_or_default();
    let folders = env::split_paths(&folders);
    folders.filter(|folder| folder.is_absolute()).collect()
}

/// The folders in which the `python3` on the path has its packages, if there is one.
fn site_packages() -> Vec<PathBuf> {
    const ASK: &str = "import site, sysconfig; \
        print(*dict.fromkeys([sysconfig.get_path('platlib'), sysconfig.get_path('purelib'), \
        site.getusersitepackages()]), sep='\\n')";
    // Isolated, so that nothing in the current folder is run.
    let answer = Command::new("python3").args(["-I", "-c", ASK]).output();
    let Some(answer) = answer.ok().filter(|answer| answer.status.success()) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&answer.stdout);
    text.lines().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn touch(path: &Path) {
        let made = fs::create_dir_all(path.parent().unwrap_or(path));
        made.and_then(|()| fs::write(path, "")).unwrap_or_default();
    }

    #[test]
    fn a_folder_has_them_side_by_side_or_as_packages() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Folder(folder.path().to_owned());
        let missing = find(&place).unwrap_err();
        assert_eq!(missing.looked_in, [folder.path()]);
        touch(&folder.path().join("tvm/lib").join(file_name("tvm_runtime")));
        assert!(find(&place).is_err());
        touch(&folder.path().join("tvm_ffi/lib").join(file_name("tvm_ffi")));
        let found = find(&place).unwrap();
        assert!(found.ffi.starts_with(folder.path().join("tvm_ffi")));
        for library in ["tvm_ffi", "tvm_runtime"] {
            touch(&folder.path().join(file_name(library)));
        }
        let found = find(&place).unwrap();
        assert_eq!(found.ffi, folder.path().join(file_name("tvm_ffi")));
    }
}

//! The reference implementation on this machine: its Python package and modules that its compiler
//! builds, both kept under `target/interop` until what they are made from changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;

use crate::sh;

/// The Python versions that the reference's package and its dependencies have wheels for.
const PYTHON_MINORS: std::ops::RangeInclusive<u32> = 10..=13;
const PYTHONS: [&str; 5] = [
    "python3",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.10",
];

/// What the test kit needs to start peers and to find modules, and our own command.
pub(crate) struct Reference {
    python: PathBuf,
    modules: PathBuf,
    tvm_rpc: PathBuf,
}

impl Reference {
    /// Installs and builds what is missing.
    pub(crate) fn prepare(metadata: &Metadata) -> Result<Self> {
        let scripts = metadata
            .workspace_root
            .join("tests/peers")
            .into_std_path_buf();
        let prepared = metadata
            .target_directory
            .join("interop")
            .into_std_path_buf();
        fs::create_dir_all(&prepared).with_context(|| prepared.display().to_string())?;
        let python = python_with_tvm(&scripts, &prepared)?;
        let modules = compiled_modules(&scripts, &prepared, &python)?;
        sh::run(sh::cargo().args(["build", "--quiet", "--package", "rpc-cli"]))?;
        let tvm_rpc = metadata.target_directory.join("debug/tvm-rpc");
        Ok(Self {
            python,
            modules,
            tvm_rpc: tvm_rpc.into_std_path_buf(),
        })
    }

    /// The folder of its package and of the libraries that belong to it.
    pub(crate) fn site_packages(&self) -> Result<PathBuf> {
        let ask = "import sysconfig; print(sysconfig.get_path('platlib'))";
        let folder = sh::output(Command::new(&self.python).args(["-I", "-c", ask]))?;
        Ok(PathBuf::from(folder.trim_end()))
    }

    /// Tells a command where everything is: the variables that the test kit reads.
    pub(crate) fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("TVM_RPC_PYTHON", &self.python)
            .env("TVM_RPC_MODULES", &self.modules)
            .env("TVM_RPC_BIN", &self.tvm_rpc)
    }
}

/// The Python of a virtual environment with the packages of `requirements.txt`.
fn python_with_tvm(scripts: &Path, prepared: &Path) -> Result<PathBuf> {
    let requirements = scripts.join("requirements.txt");
    let venv = prepared.join("venv");
    let python = venv.join("bin/python");
    let stamp = Stamp::of(&[&requirements], venv.join("requirements.stamp"))?;
    // The link dangles when the Python that the environment was made from is gone.
    if !stamp.matches() || !python.exists() {
        new_python(&venv)?;
        sh::run(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--requirement"])
                .arg(&requirements),
        )?;
        stamp.write()?;
    }
    Ok(python)
}

/// A virtual environment with a Python that the reference has packages for.
pub(crate) fn new_python(venv: &Path) -> Result<()> {
    let base = find_python()?;
    sh::run(Command::new(base).args(["-m", "venv", "--clear"]).arg(venv))
        .context("no virtual environment (on Debian: apt-get install python3-venv)")
}

fn find_python() -> Result<&'static str> {
    for candidate in PYTHONS {
        let version = Command::new(candidate)
            .args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
            .output();
        if version.is_ok_and(|output| is_suitable(&String::from_utf8_lossy(&output.stdout))) {
            return Ok(candidate);
        }
    }
    bail!(
        "the reference implementation needs Python 3.{} to 3.{}; none of {} is one",
        PYTHON_MINORS.start(),
        PYTHON_MINORS.end(),
        PYTHONS.join(", ")
    )
}

fn is_suitable(version: &str) -> bool {
    let minor = version
        .trim()
        .strip_prefix("3.")
        .and_then(|minor| minor.parse().ok());
    minor.is_some_and(|minor| PYTHON_MINORS.contains(&minor))
}

/// The directory of the modules that `compile_modules.py` writes.
fn compiled_modules(scripts: &Path, prepared: &Path, python: &Path) -> Result<PathBuf> {
    let script = scripts.join("compile_modules.py");
    let modules = prepared.join("modules");
    let stamp = Stamp::of(
        &[&scripts.join("requirements.txt"), &script],
        modules.join("sources.stamp"),
    )?;
    if !stamp.matches() {
        sh::run(Command::new(python).arg("-B").arg(script).arg(&modules))?;
        stamp.write()?;
    }
    Ok(modules)
}

/// A record of the sources that a folder's content was made from, to know when to make it again.
/// It lies in that folder, so that it goes when the folder goes.
struct Stamp {
    sources: String,
    file: PathBuf,
}

impl Stamp {
    fn of(sources: &[&Path], file: PathBuf) -> Result<Self> {
        let read =
            |path: &&Path| fs::read_to_string(path).with_context(|| path.display().to_string());
        let sources = sources
            .iter()
            .map(read)
            .collect::<Result<Vec<_>>>()?
            .concat();
        Ok(Self { sources, file })
    }

    fn matches(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|recorded| recorded == self.sources)
    }

    fn write(&self) -> Result<()> {
        fs::write(&self.file, &self.sources).with_context(|| self.file.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_wheels_are_suitable() {
        assert!(["3.10\n", "3.13\n"].into_iter().all(is_suitable));
        assert!(
            !["3.9\n", "3.14\n", "2.7\n", "4.11\n", ""]
                .into_iter()
                .any(is_suitable)
        );
    }
}

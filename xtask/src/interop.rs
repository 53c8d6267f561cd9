//! Tests against the reference implementation: its Python package and modules that its
//! compiler builds, both kept under `target/interop` until what they are made from changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};

use crate::sh;

const TESTS_PACKAGE: &str = "rpc-tests";
const TESTS_FEATURE: &str = "interop";

/// The Python versions that the reference's package and its dependencies have wheels for.
const PYTHON_MINORS: std::ops::RangeInclusive<u32> = 10..=13;
const PYTHONS: [&str; 5] = [
    "python3",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.10",
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only the tests whose names contain this.
    #[arg(long, value_name = "STR")]
    filter: Option<String>,
    /// Further arguments of the test runner.
    #[arg(last = true)]
    runner: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
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

    let mut test = sh::cargo();
    test.args([
        "test",
        "--package",
        TESTS_PACKAGE,
        "--features",
        TESTS_FEATURE,
    ]);
    for target in test_targets(&metadata)? {
        test.args(["--test", &target]);
    }
    test.arg("--")
        .args(&arguments.filter)
        .args(&arguments.runner);
    sh::run(
        test.env("TVM_RPC_PYTHON", python)
            .env("TVM_RPC_MODULES", modules),
    )
}

/// The Python of a virtual environment with the packages of `requirements.txt`.
fn python_with_tvm(scripts: &Path, prepared: &Path) -> Result<PathBuf> {
    let requirements = scripts.join("requirements.txt");
    let venv = prepared.join("venv");
    let python = venv.join("bin/python");
    let stamp = Stamp::of(&[&requirements], venv.join("requirements.stamp"))?;
    // The link dangles when the Python that the environment was made from is gone.
    if !stamp.matches() || !python.exists() {
        let base = find_python()?;
        sh::run(
            Command::new(base)
                .args(["-m", "venv", "--clear"])
                .arg(&venv),
        )
        .context("no virtual environment (on Debian: apt-get install python3-venv)")?;
        sh::run(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--requirement"])
                .arg(&requirements),
        )?;
        stamp.write()?;
    }
    Ok(python)
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

/// The test targets that require the feature; a plain `cargo test` does not build them.
fn test_targets(metadata: &Metadata) -> Result<Vec<String>> {
    let packages = metadata.workspace_packages();
    let package = packages
        .iter()
        .find(|package| package.name.as_str() == TESTS_PACKAGE)
        .with_context(|| format!("the workspace has no package {TESTS_PACKAGE}"))?;
    let requires = |target: &&cargo_metadata::Target| {
        target.is_test()
            && target
                .required_features
                .iter()
                .any(|name| name == TESTS_FEATURE)
    };
    let targets: Vec<_> = package
        .targets
        .iter()
        .filter(requires)
        .map(|target| target.name.clone())
        .collect();
    if targets.is_empty() {
        bail!("no test target of {TESTS_PACKAGE} requires the feature {TESTS_FEATURE}");
    }
    Ok(targets)
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

//! The memory of the crate that has `unsafe` code: its tests against the reference's libraries, watched by
//! valgrind. Nothing is excused: there is no error of the libraries, nor of the runner of the tests, either.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Message, MetadataCommand};

use crate::reference::Reference;
use crate::sh;

const PACKAGE: &str = "rpc-runtime";
const FEATURE: &str = "interop";
/// The variable of the environment that tells the crate where the libraries are.
const LIBRARIES: &str = "TVM_RPC_RUNTIME";
/// These tests run compilers and linkers, and next to nothing of the crate's `unsafe` code.
const LEFT_OUT: &str = "link";

pub(crate) fn run() -> Result<()> {
    sh::output(Command::new("valgrind").arg("--version"))
        .context("no valgrind (on Debian: apt-get install valgrind)")?;
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let libraries = Reference::prepare(&metadata)?.site_packages()?;
    let built = sh::output(sh::cargo().args([
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
        "--package",
        PACKAGE,
        "--features",
        FEATURE,
    ]))?;
    let programs = test_programs(&built)?;
    ensure!(!programs.is_empty(), "{PACKAGE} has no tests");
    for program in programs {
        sh::run(watched(&program).env(LIBRARIES, &libraries))?;
    }
    Ok(())
}

/// The programs of tests among what cargo says that it has built.
fn test_programs(built: &str) -> Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for message in Message::parse_stream(built.as_bytes()) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.profile.test
            && artifact.target.name != LEFT_OUT
        {
            programs.extend(artifact.executable.map(PathBuf::from));
        }
    }
    Ok(programs)
}

/// Runs a program of tests, which fails by errors and by memory that is lost as well.
fn watched(program: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--quiet", "--error-exitcode=1", "--num-callers=40"])
        .args(["--leak-check=full", "--show-leak-kinds=definite"])
        .arg("--errors-for-leak-kinds=definite")
        .arg(program);
    valgrind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_of_tests() {
        let artifact = |name: &str, is_test: bool| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":\"p\",\"manifest_path\":\"m\",\
                \"target\":{{\"kind\":[\"test\"],\"crate_types\":[\"bin\"],\"name\":\"{name}\",\
                \"src_path\":\"s\",\"edition\":\"2024\",\"doc\":false,\"doctest\":false,\"test\":true}},\
                \"profile\":{{\"opt_level\":\"0\",\"debuginfo\":2,\"debug_assertions\":true,\
                \"overflow_checks\":true,\"test\":{is_test}}},\"features\":[],\"filenames\":[],\
                \"executable\":\"/built/{name}\",\"fresh\":true}}\n"
            )
        };
        let built = [("backend", true), ("link", true), ("xtask", false)];
        let built: String = built
            .map(|(name, is_test)| artifact(name, is_test))
            .concat();
        let programs = test_programs(&built).unwrap();
        assert_eq!(programs, [PathBuf::from("/built/backend")]);
    }
}

//! The page of results: the conformance suite on our own peers and on several versions of the
//! reference, side by side. It takes about an hour, most of which is waiting for peers that hang.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

use crate::reference::new_python;
use crate::sh;

/// A version of the reference, and what has to be installed with it.
const VERSIONS: [(&str, &[&str]); 3] = [
    ("0.25.0.post1", &["apache-tvm-ffi==0.1.12"]),
    ("0.26.0", &[]),
    ("0.27.0.post1", &[]),
];

/// What the reference's peers import beside its own package.
const BESIDE: [&str; 4] = ["cloudpickle", "numpy<2.4", "psutil", "tornado"];

/// The reference's programs take seconds to start, on a machine of two cores.
const SLOW: &str = "2";

/// How each role is started, of a peer in Python.
const ROLES: [(&str, &str); 3] = [
    ("tracker", "tests/peers/serve.py tracker --stop-key secret"),
    (
        "server",
        "tests/peers/serve.py server --key {key} --test-functions",
    ),
    (
        "client",
        "tests/peers/conformance_client.py {tracker} {key}",
    ),
];

/// Above the tables.
const HEAD: &str = "# Results\n\n\
    Made by `cargo xtask results`: the suite on this project's peers and on the reference's, the Python \
    package `apache-tvm`. What differs is explained on the page of [differences](../differences.md).\n\n";

pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let root = metadata.workspace_root.into_std_path_buf();
    let target = metadata.target_directory.into_std_path_buf();
    let folder = target.join("conformance");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut build = sh::cargo();
    build.args(["build", "--quiet", "--package", "rpc-conformance"]);
    build.args(["--package", "rpc-cli", "--package", "rpc-tests"]);
    sh::run(build.arg("--bins"))?;
    let suite = Suite {
        program: target.join("debug/tvm-rpc-conformance"),
        folder,
    };
    let programs = target.join("debug");
    let programs = programs.display();
    let mut reports = vec![
        suite.play(
            "tracker",
            &format!("{programs}/tvm-rpc tracker --port 0"),
            "tvm-rpc",
            own_version(),
            &[],
        )?,
        suite.play(
            "server",
            &format!("{programs}/tvm-rpc server --test-functions --port 0 --key {{key}}"),
            "tvm-rpc",
            own_version(),
            &[],
        )?,
    ];
    for twin in ["blocking", "async"] {
        let command = format!("{programs}/conformance_client --{twin} {{tracker}} {{key}}");
        reports.push(suite.play(
            "client",
            &command,
            &format!("tvm-rpc {twin}"),
            own_version(),
            &[],
        )?);
    }
    for (version, beside) in VERSIONS {
        let python = python_with(version, beside, &target)?;
        for (role, arguments) in ROLES {
            let command = format!("{} {arguments}", python.display());
            let slow = ["--slow", SLOW];
            reports.push(suite.play(role, &command, "apache-tvm", version, &slow)?);
        }
    }
    let tables = suite.folder.join("tables.md");
    let mut matrix = Command::new(&suite.program);
    matrix
        .arg("matrix")
        .args(&reports)
        .arg("--out")
        .arg(&tables);
    matrix
        .arg("--notes")
        .arg(root.join("docs/conformance/notes.txt"));
    sh::run(&mut matrix)?;
    let tables = fs::read_to_string(&tables)?;
    let page = root.join("docs/conformance/results.md");
    fs::write(&page, format!("{HEAD}{tables}")).with_context(|| page.display().to_string())
}

fn own_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The suite's program, and where its reports go.
struct Suite {
    program: PathBuf,
    folder: PathBuf,
}

impl Suite {
    /// Tests a peer, and gives the file of its report.
    fn play(
        &self,
        role: &str,
        command: &str,
        name: &str,
        version: &str,
        further: &[&str],
    ) -> Result<PathBuf> {
        let file = format!("{role}-{}-{version}.json", name.replace(' ', "-"));
        let report = self.folder.join(file);
        let mut play = Command::new(&self.program);
        play.args([role, "--quiet", "--cmd", command]).args(further);
        play.args(["--peer-name", name, "--peer-version", version]);
        play.arg("--report")
            .arg(format!("json={}", report.display()));
        eprintln!("{role} of {name} {version}");
        // That something failed is what the page is there to say.
        let status = play.status().context("the suite")?;
        anyhow::ensure!(
            matches!(status.code(), Some(0 | 1)),
            "the suite ended with {status}"
        );
        Ok(report)
    }
}

/// A Python with this version of the reference.
fn python_with(version: &str, beside: &[&str], target: &Path) -> Result<PathBuf> {
    let venv = target.join("conformance").join(format!("venv-{version}"));
    let python = venv.join("bin/python");
    let has_it = Command::new(&python).args(["-c", "import tvm"]).output();
    if !has_it.is_ok_and(|output| output.status.success()) {
        new_python(&venv)?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet"]);
        install
            .arg(format!("apache-tvm=={version}"))
            .args(beside)
            .args(BESIDE);
        sh::run(&mut install)?;
    }
    Ok(python)
}

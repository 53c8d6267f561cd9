//! The page of results: the conformance suite on our own peers and on several versions of the
//! reference, side by side. It takes three quarters of an hour, most of which is waiting for peers that hang.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
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
    let root = metadata.workspace_root.as_std_path();
    let suite = Suite::build(metadata.target_directory.as_std_path())?;
    let mut reports = suite.ours()?;
    reports.extend(suite.reference()?);
    let tables = suite.folder.join("tables.md");
    let mut matrix = Command::new(&suite.program);
    matrix.arg("matrix").args(&reports);
    let notes = root.join("docs/conformance/notes.txt");
    matrix.arg("--notes").arg(notes).arg("--out").arg(&tables);
    sh::run(&mut matrix)?;
    let tables = fs::read_to_string(&tables)?;
    let page = root.join("docs/conformance/results.md");
    fs::write(&page, format!("{HEAD}{tables}")).with_context(|| page.display().to_string())
}

/// The suite's program, and where its reports go.
struct Suite {
    program: PathBuf,
    folder: PathBuf,
    /// Where our own programs are.
    programs: PathBuf,
}

impl Suite {
    fn build(target: &Path) -> Result<Self> {
        let mut build = sh::cargo();
        build.args(["build", "--quiet", "--package", "rpc-conformance"]);
        build.args(["--package", "rpc-cli", "--package", "rpc-tests", "--bins"]);
        sh::run(&mut build)?;
        let folder = target.join("conformance");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let programs = target.join("debug");
        Ok(Self {
            program: programs.join("tvm-rpc-conformance"),
            folder,
            programs,
        })
    }

    /// The reports of our own peers.
    fn ours(&self) -> Result<Vec<PathBuf>> {
        const OURS: [(&str, &str, &str); 4] = [
            ("tracker", "tvm-rpc", "tvm-rpc tracker --port 0"),
            (
                "server",
                "tvm-rpc",
                "tvm-rpc server --test-functions --port 0 --key {key}",
            ),
            (
                "client",
                "tvm-rpc blocking",
                "conformance_client --blocking {tracker} {key}",
            ),
            (
                "client",
                "tvm-rpc async",
                "conformance_client --async {tracker} {key}",
            ),
        ];
        let play = |(role, name, command)| {
            let command = format!("{}/{command}", self.programs.display());
            self.play(role, &command, name, env!("CARGO_PKG_VERSION"), "1")
        };
        OURS.into_iter().map(play).collect()
    }

    /// The reports of the reference's peers.
    fn reference(&self) -> Result<Vec<PathBuf>> {
        let python = |(version, beside)| Ok((version, python_with(version, beside, &self.folder)?));
        let pythons: Vec<_> = VERSIONS.into_iter().map(python).collect::<Result<_>>()?;
        let mut reports = Vec::new();
        for (role, arguments) in ROLES {
            let play = |(version, python): &(&str, PathBuf)| {
                let command = format!("{} {arguments}", python.display());
                self.play(role, &command, "apache-tvm", version, SLOW)
            };
            if role != "server" {
                for python in &pythons {
                    reports.push(play(python)?);
                }
                continue;
            }
            // These wait for most of the time, so that they do not take it from each other.
            thread::scope(|scope| {
                let played: Vec<_> = pythons
                    .iter()
                    .map(|python| scope.spawn(|| play(python)))
                    .collect();
                for played in played {
                    let report = played
                        .join()
                        .map_err(|_| anyhow!("a run of the suite panicked"))?;
                    reports.push(report?);
                }
                Ok::<_, anyhow::Error>(())
            })?;
        }
        Ok(reports)
    }

    /// Tests a peer, and gives the file of its report.
    fn play(
        &self,
        role: &str,
        command: &str,
        name: &str,
        version: &str,
        slow: &str,
    ) -> Result<PathBuf> {
        let file = format!("{role}-{}-{version}.json", name.replace(' ', "-"));
        let report = self.folder.join(file);
        let mut play = Command::new(&self.program);
        play.args([role, "--quiet", "--cmd", command]);
        play.args(["--slow", slow]);
        play.args(["--peer-name", name, "--peer-version", version]);
        play.arg("--report")
            .arg(format!("json={}", report.display()));
        eprintln!("{role} of {name} {version}");
        // That something failed is what the page is there to say.
        let status = play.status().context("the suite")?;
        ensure!(
            matches!(status.code(), Some(0 | 1)),
            "the suite ended with {status}"
        );
        Ok(report)
    }
}

/// A Python with this version of the reference.
fn python_with(version: &str, beside: &[&str], folder: &Path) -> Result<PathBuf> {
    let venv = folder.join(format!("venv-{version}"));
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

//! The book of `docs`, built by mdBook into `target/book`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;

use crate::sh;

/// The version whose warnings the book is free of.
const MDBOOK: &str = "0.5.4";

pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let tools = metadata.target_directory.join("tools").into_std_path_buf();
    let mdbook = installed(&tools)?;
    let docs = metadata.workspace_root.join("docs");
    let output = Command::new(&mdbook)
        .arg("build")
        .arg(&docs)
        .output()
        .with_context(|| mdbook.display().to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    eprint!("{said}");
    ensure!(output.status.success(), "mdbook failed");
    let warned = said.lines().any(|line| line.contains("WARN"));
    ensure!(!warned, "mdbook has warnings");
    Ok(())
}

/// mdBook, which is installed where it is missing.
fn installed(tools: &std::path::Path) -> Result<PathBuf> {
    let mdbook = tools.join("bin/mdbook");
    let is_there = Command::new(&mdbook)
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(MDBOOK));
    if !is_there {
        let mut install = sh::cargo();
        install
            .args(["install", "--quiet", "--locked", "--no-default-features"])
            .args(["mdbook", "--version", MDBOOK, "--root"])
            .arg(tools);
        sh::run(&mut install)?;
    }
    Ok(mdbook)
}

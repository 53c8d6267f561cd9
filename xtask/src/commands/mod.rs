//! The commands of the README and of `docs`: each is run, or it says why not here. One that the list
//! does not know, and an entry that no page has, is an error, so that neither grows old.

mod list;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;

use crate::sh;
use list::COMMANDS;

/// What becomes of a command of the documentation.
#[derive(Debug, Clone, Copy)]
enum How {
    /// It is run as it stands.
    AsIs,
    /// It is run so: with files in `$SCRATCH`, and addresses and programs that are there.
    As(&'static str),
    /// The same, and it ends with this status.
    Ends(&'static str, i32),
    /// It is not run here, for this reason.
    NotHere(&'static str),
}

pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let root = metadata.workspace_root.as_std_path();
    let found = check(root)?;
    let mut build = sh::cargo();
    build.args(["build", "--quiet", "--bins"]);
    build.args(["--package", "rpc-cli", "--package", "rpc-conformance"]);
    sh::run(build.args(["--package", "rpc-tests"]))?;
    let programs = metadata.target_directory.join("debug").into_std_path_buf();
    let scratch = metadata.target_directory.join("commands");
    let scratch = scratch.into_std_path_buf();
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    }
    fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let tracker = Tracker::start(&programs)?;
    let shell = Shell {
        root: root.to_owned(),
        scratch,
        tracker: tracker.addr.clone(),
        path: with_path(&programs)?,
    };
    for command in &found {
        match how(command) {
            Some(How::AsIs) => shell.run(command, 0)?,
            Some(How::As(text)) => shell.run(text, 0)?,
            Some(How::Ends(text, status)) => shell.run(text, status)?,
            Some(How::NotHere(why)) => eprintln!("not here: {command} ({why})"),
            None => {}
        }
    }
    Ok(())
}

fn how(command: &str) -> Option<How> {
    let entry = COMMANDS.iter().find(|(known, _)| *known == command);
    entry.map(|&(_, how)| how)
}

/// The commands of the documentation, of which the list has to know each, in their order.
fn check(root: &Path) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for page in pages(root)? {
        let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        for command in commands(&text) {
            ensure!(
                how(&command).is_some(),
                "{}: xtask/src/commands/list.rs does not say how to run {command:?}",
                page.display()
            );
            if !found.contains(&command) {
                found.push(command);
            }
        }
    }
    for (known, _) in COMMANDS {
        let is_there = found.iter().any(|command| command == known);
        ensure!(is_there, "no page has the command {known:?} of the list");
    }
    Ok(found)
}

fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let docs = root.join("docs");
    let mut pages = vec![root.join("README.md")];
    for folder in [docs.clone(), docs.join("spec")] {
        let mut here: Vec<_> = fs::read_dir(&folder)
            .with_context(|| folder.display().to_string())?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        here.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        here.sort();
        pages.extend(here);
    }
    Ok(pages)
}

/// The commands in the blocks of a page that are marked as `sh`, each on one line. Where a block shows what
/// a command prints, commands are the lines that begin with `$`.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = page.lines();
    while lines.any(|line| line.trim() == "```sh") {
        let block: Vec<_> = lines
            .by_ref()
            .map(str::trim)
            .take_while(|line| *line != "```")
            .collect();
        let block = block.join("\n").replace("\\\n", " ");
        let has_prompts = block.lines().any(|line| line.starts_with("$ "));
        let of_block = block.lines().filter_map(|line| match has_prompts {
            true => line.strip_prefix("$ "),
            false => Some(line),
        });
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        commands.extend(of_block.map(words).filter(|command| !command.is_empty()));
    }
    commands
}

/// Where commands are run.
struct Shell {
    root: PathBuf,
    scratch: PathBuf,
    /// The address of a tracker that runs.
    tracker: String,
    path: OsString,
}

impl Shell {
    fn run(&self, text: &str, expected: i32) -> Result<()> {
        eprintln!("$ {text}");
        let status = Command::new("sh")
            .args(["-e", "-c", text])
            .current_dir(&self.root)
            .env("PATH", &self.path)
            .env("SCRATCH", &self.scratch)
            .env("TRACKER", &self.tracker)
            .status()
            .context("sh")?;
        ensure!(
            status.code() == Some(expected),
            "expected the status {expected}, and it was {status}: {text}"
        );
        Ok(())
    }
}

fn with_path(programs: &Path) -> Result<OsString> {
    let before = env::var_os("PATH").unwrap_or_default();
    let folders = [programs.to_owned()];
    let folders = folders.into_iter().chain(env::split_paths(&before));
    env::join_paths(folders).context("PATH")
}

/// A tracker for commands that name the address of one.
struct Tracker {
    process: Child,
    addr: String,
}

impl Tracker {
    fn start(programs: &Path) -> Result<Self> {
        let mut process = Command::new(programs.join("tvm-rpc"))
            .args(["tracker", "--host", "127.0.0.1", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("a tracker")?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let mut tracker = Self {
            process,
            addr: String::new(),
        };
        let (_, addr) = line
            .trim()
            .split_once("listening on ")
            .with_context(|| format!("the tracker said {line:?}"))?;
        addr.clone_into(&mut tracker.addr);
        Ok(tracker)
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_wherever_they_stand() {
        let page = "text\n```sh\none --two \\\n    three\n\nfour\n```\n   ```sh\n   five\n   ```\n```text\nno\n```\n\
                    ```sh\n$ six\nprinted\n```\n";
        assert_eq!(commands(page), ["one --two three", "four", "five", "six"]);
    }

    #[test]
    fn the_list_and_the_pages_fit() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(check(&root).unwrap().len() > 30);
    }
}

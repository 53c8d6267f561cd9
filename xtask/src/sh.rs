//! Running commands.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command, after printing it; its output goes where this program's goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", text(command));
    let status = command.status().with_context(|| text(command))?;
    ensure!(status.success(), "{status}: {}", text(command));
    Ok(())
}

/// Runs a command for its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| text(command))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        output.status,
        text(command)
    );
    String::from_utf8(output.stdout).with_context(|| text(command))
}

fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

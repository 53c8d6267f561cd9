//! The golden vectors in `tests/vectors/messages`: every message of the protocol with what it means, or
//! what is wrong with it.
//!
//! The bytes are put together here by hand, and read by `rpc-proto`: what the two do not agree on is an
//! error, not a file.

mod assemble;
mod handshake;
mod meaning;
mod packets;
mod returns;
mod syscalls;
#[cfg(test)]
mod tests;
mod traces;
mod tracker;
mod values;
mod vector;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rpc_proto::Dialect;

use self::traces::Traces;
use self::vector::Area;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Write nothing, and fail where the files are not what would be written
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let directory = directory().join("messages");
    let files = generate()?;
    if arguments.check {
        let different = differences(&directory, &files)?;
        if !different.is_empty() {
            let names = different.join(", ");
            bail!("not as `cargo xtask vectors` writes them: {names}");
        }
        println!("vectors: {} files are as they should be", files.len());
        return Ok(());
    }
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    for stale in present(&directory)? {
        if !files.iter().any(|(name, _)| *name == stale) {
            fs::remove_file(directory.join(stale))?;
        }
    }
    for (name, text) in &files {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    println!("vectors: {} files in {}", files.len(), directory.display());
    Ok(())
}

/// `tests/vectors`.
fn directory() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("xtask lies in the workspace")
        .join("tests/vectors")
}

fn areas() -> Vec<Area> {
    let both = [Dialect::Ffi, Dialect::Legacy];
    let mut areas = vec![tracker::area(), handshake::area(), packets::area()];
    areas.extend(both.map(values::area));
    areas.extend(both.map(syscalls::area));
    areas.extend(both.map(returns::area));
    areas
}

/// The names and texts of all files.
fn generate() -> Result<Vec<(String, String)>> {
    let traces = Traces::read(&directory().join("traces"))?;
    let mut files = Vec::new();
    for area in areas() {
        let mut names = BTreeSet::new();
        for vector in &area.vectors {
            ensure!(
                names.insert(&vector.name),
                "{}: two vectors have the name {}",
                area.name,
                vector.name
            );
        }
        files.push((format!("{}.json", area.name), area.text(&traces)?));
    }
    Ok(files)
}

/// The files that are not there, are there and should not be, or say something else.
fn differences(directory: &Path, files: &[(String, String)]) -> Result<Vec<String>> {
    let mut different = present(directory)?;
    different.retain(|name| !files.iter().any(|(file, _)| file == name));
    for (name, text) in files {
        match fs::read_to_string(directory.join(name)) {
            Ok(present) if present == *text => {}
            _ => different.push(name.clone()),
        }
    }
    Ok(different)
}

fn present(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

//! The main job on the reference's own tracker and server, to look at.

use anyhow::Result;
use cargo_metadata::MetadataCommand;

use crate::reference::Reference;
use crate::sh;

pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let reference = Reference::prepare(&metadata)?;
    let mut example = sh::cargo();
    example.args([
        "run",
        "--quiet",
        "--package",
        "rpc-tests",
        "--example",
        "try",
    ]);
    sh::run(reference.tell(&mut example))
}

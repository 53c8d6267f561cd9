//! Reports beside each other.

use std::path::Path;

use rpc_conformance::compare::Comparison;
use rpc_conformance::lists::List;
use rpc_conformance::report::{self, Column};

use super::output::{show, tell};
use super::{Failure, read, read_run, usage, write};

pub(super) fn diff(old: &Path, new: &Path) -> Result<u8, Failure> {
    let (old, new) = (read_run(old)?, read_run(new)?);
    if old.role != new.role {
        let (old, new) = (old.role, new.role);
        return Err(usage(anyhow::anyhow!(
            "one is of a {old}, the other of a {new}"
        )));
    }
    let comparison = Comparison::of(&old, &new);
    show(&comparison.to_string());
    Ok(comparison.exit_status())
}

pub(super) fn matrix(
    reports: &[String],
    notes: Option<&Path>,
    out: Option<&Path>,
) -> Result<u8, Failure> {
    let columns: Vec<_> = reports
        .iter()
        .map(|report| column(report))
        .collect::<Result<_, _>>()?;
    let notes = notes.map(read).transpose()?.unwrap_or_default();
    let notes = List::parse(&notes).map_err(usage)?;
    let text = report::matrix(&columns, &notes);
    let unexplained = report::unexplained(&columns, &notes);
    if !unexplained.is_empty() {
        let unexplained = unexplained.join(", ");
        tell(&format!("without an explanation: {unexplained}"));
    }
    match out {
        Some(file) => write(file, &text)?,
        None => show(&text),
    }
    Ok(0)
}

/// `NAME=FILE`, or a file of which the run says who was tested.
fn column(report: &str) -> Result<Column, Failure> {
    let (name, file) = match report.split_once('=') {
        Some((name, file)) => (Some(name.to_owned()), file),
        None => (None, report),
    };
    let run = read_run(Path::new(file))?;
    let name = name.unwrap_or_else(|| run.peer.shown());
    Ok(Column { name, run })
}

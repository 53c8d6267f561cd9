//! What is left over from a run before: `--rerun-failed`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::anyhow;
use rpc_conformance::{Chunking, Role, Status};

use super::arguments::factor_in_range;
use super::{Failure, read_run, usage};

/// What did not pass in a run before.
#[derive(Debug)]
pub(super) struct Last {
    /// Cases, and the ways in which they did not pass, which are the same for all of a group.
    pub(super) groups: Vec<(BTreeSet<String>, Vec<Chunking>)>,
    pub(super) seed: u64,
    pub(super) slow: f64,
}

impl Last {
    pub(super) fn read(file: &Path, role: Role) -> Result<Self, Failure> {
        let run = read_run(file)?;
        let file = file.display();
        if run.role != role {
            return Err(usage(anyhow!("{file} is about a {}", run.role)));
        }
        if !factor_in_range(run.slow) {
            return Err(usage(anyhow!("{file} has the factor {}", run.slow)));
        }
        let again = |status| {
            matches!(
                status,
                Status::Fail | Status::Warn | Status::Error | Status::NotRun
            )
        };
        let failed: Vec<_> = run.cases.iter().filter(|case| again(case.status)).collect();
        if failed.is_empty() {
            return Err(usage(anyhow!(
                "in {file} there is nothing that did not pass"
            )));
        }
        let ids: BTreeSet<_> = failed.iter().map(|case| case.id.as_str()).collect();
        let mut groups: Vec<(BTreeSet<String>, Vec<Chunking>)> = Vec::new();
        for id in ids {
            let failed = |chunking: &Chunking| {
                let mut failed = failed.iter();
                failed.any(|case| case.id == id && case.chunking == *chunking)
            };
            let ways: Vec<_> = Chunking::ALL.into_iter().filter(failed).collect();
            match groups.iter_mut().find(|(_, others)| *others == ways) {
                Some((ids, _)) => {
                    ids.insert(id.to_owned());
                }
                None => groups.push((BTreeSet::from([id.to_owned()]), ways)),
            }
        }
        Ok(Self {
            groups,
            seed: run.seed,
            slow: run.slow,
        })
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &String> {
        self.groups.iter().flat_map(|(ids, _)| ids)
    }
}
